"""Binaries whose words are a language of their own: wrappers, interpreters, and tools with verbs.

Each judge takes the Judge, the name, the words behind it and the commands before it in the pipeline; it adds
deeds and paths, or hands an inner command back to the Judge. `JUDGES` is the table of them.
"""

from __future__ import annotations

from spak.commandline import builders, filetools, interpreters, programs, remotes, wrappers
from spak.commandline.commands import Special


def judges() -> dict[str, Special]:
    from spak.commandline.gitwords import git

    found: dict[str, Special] = {
        "git": git,
        "env": wrappers.env,
        "printenv": wrappers.printenv,
        "export": wrappers.export,
        "unset": wrappers.unset,
        "xargs": wrappers.xargs,
    }
    found |= dict.fromkeys(
        ("timeout", "nice", "nohup", "ionice", "time", "stdbuf", "command"), wrappers.wrapper
    )
    found |= dict.fromkeys(("find",), wrappers.find)
    found |= dict.fromkeys(("sh", "bash", "zsh", "dash", "ksh"), interpreters.shell)
    found |= dict.fromkeys(
        ("python", "python3", "python3.10", "python3.11", "python3.12", "python3.13", "pypy3"),
        interpreters.python,
    )
    found |= {
        "node": interpreters.node,
        "jq": interpreters.jq,
        "yq": interpreters.jq,
        "sed": interpreters.sed,
        "gsed": interpreters.sed,
    }
    found |= dict.fromkeys(("perl", "ruby", "lua", "php", "Rscript"), interpreters.script_only)
    found |= dict.fromkeys(("awk", "gawk", "mawk", "nawk"), interpreters.awk)
    found |= {
        "chmod": filetools.chmod,
        "ln": filetools.ln,
        "tar": filetools.tar,
        "sqlite3": filetools.sqlite,
        "make": builders.make,
        "gmake": builders.make,
    }
    found |= {
        "cmake": builders.cmake,
        "coverage": builders.coverage,
        "pre-commit": builders.precommit,
        "npx": builders.npx,
        "cargo": builders.cargo,
        "go": builders.go,
    }
    found |= dict.fromkeys(("npm", "yarn", "pnpm"), builders.npm) | dict.fromkeys(
        ("pip", "pip3", "uv"), builders.pip
    )
    found |= dict.fromkeys(("valgrind", "perf"), programs.watcher)
    found |= dict.fromkeys(("docker", "podman", "kubectl", "helm", "terraform"), programs.client)
    found |= dict.fromkeys(("pdm", "hatch", "rye", "composer"), programs.managed)
    found |= {
        "ar": programs.ar,
        "java": programs.java,
        "openssl": programs.openssl,
        "convert": programs.image,
        "less": programs.pager,
        "more": programs.pager,
        "bundle": programs.bundle,
        "mvn": programs.mvn,
    }
    found |= dict.fromkeys(("test", "[", "[["), programs.test)
    found |= dict.fromkeys(("ninja", "just", "rake"), builders.targets)
    found |= {"ps": programs.processes, "kill": programs.kill, "rsync": filetools.rsync}
    found |= {"ssh": remotes.ssh, "sftp": remotes.ssh, "scp": remotes.scp}
    found |= {"sleep": programs.sleep, "tail": programs.tail, "seq": programs.seq, "set": programs.setting}
    found |= dict.fromkeys(("source", "."), interpreters.source)
    return found | {"poetry": builders.poetry, "pipenv": builders.poetry}


JUDGES = judges()
"""Binary to its judge."""
