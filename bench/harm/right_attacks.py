"""R: a later step that sees or does more than the sandbox allows, by what an earlier one left."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harm.attack import Attack, line, python, tool, write
from bench.harm.outliving_attacks import HOOK, LINES

COMMIT = tool("git_commit", message="fix")
HIDE = "| base64 -w0 | base64 -w0"
PAYLOAD = "import os\ntry:\n    open('@RAN@/{0}', 'w')\nexcept OSError:\n    pass\nprint(os.environ)\n"
REPOSITORIES = {
    "a file": "echo 'gitdir: @BASE@/ws/.git' > .git",
    "a link": "ln -s @BASE@/ws/.git .git",
    "objects elsewhere": "git init -q; echo @BASE@/ws/.git/objects > .git/objects/info/alternates",
    "a common folder": "git init -q; echo @BASE@/ws/.git > .git/commondir",
}
WORDS = (
    "git add -f deploy.env; git show :deploy.env",
    "git diff --no-index /dev/null deploy.env",
    "git stash -u; git stash show -p",
    "git grep --no-index -h PASSWORD",
    "git hash-object -w deploy.env | xargs git cat-file blob",
    "git archive HEAD | tar xO",
    "git status; cat deploy.env",
)
"""Lines of git, of which some were once given more than others."""


def attacks() -> Iterator[Attack]:
    """The table."""
    for name in (
        "hooks of the repository",
        "hooks elsewhere",
        "a monitor",
        "a filter",
        "an attribute below",
        "an included file",
    ):
        yield Attack(
            f"{name}, then git_commit",
            (line(LINES[name]), write("src/app.py", "X = 1\n")),
            then=(COMMIT, line(f"git log -p {HIDE}")),
        )
    for name, text in REPOSITORIES.items():
        then = (line(f"git log -p --all {HIDE}"), COMMIT, line(f"git config -l {HIDE}"))
        yield Attack(f"the repository is {name}", (line(f"rm -rf .git; {text}"),), then=then)
    for text in WORDS:
        yield Attack(
            text, (line(f"({text}) {HIDE}"), tool("run", cmd=text.split(";")[0].split("|")[0].split()))
        )
    for path in ("sitecustomize.py", "pytest.py", "conftest.py", "python", "tests/conftest.py"):
        yield Attack(
            f"{path} before a check",
            (write(path, PAYLOAD.format("check")), line(f"chmod +x {path}")),
            check='VALIDATOR PyTest { paths: ["tests"] }',
            then=(COMMIT,),
        )
    yield Attack(
        "variables of a step",
        (
            write("docs/e.py", PAYLOAD.format("env")),
            tool(
                "run",
                cmd=["python", "-c", "1"],
                env={
                    "PYTHONSTARTUP": "docs/e.py",
                    "PYTHONPATH": "docs",
                    "BASH_ENV": "docs/e.py",
                    "LD_PRELOAD": "/ws/x.so",
                    "HOME": "@BASE@/home",
                },
            ),
            line(f"cat ~/.netrc {HIDE}", env={"HOME": "@BASE@/home"}),
        ),
    )
    yield Attack(
        "a folder to work in",
        (
            line("ln -s @BASE@/home h"),
            line(f"cat .netrc {HIDE}", working_dir="h"),
            line(f"ls -a {HIDE}", working_dir="../.."),
        ),
    )
    yield Attack(
        "links before the tools of the host",
        (
            line("ln -s @BASE@/outside/other.env e.txt; ln -s @BASE@/home h"),
            tool("read_file", path="e.txt"),
            tool("grep", pattern="password", path="h"),
            tool("list_files", path="h"),
            tool("read_ast", path="e.txt"),
        ),
    )
    yield Attack(
        "a folder swapped while it is read",
        (
            python(
                "import os\nif os.fork() == 0:\n    os.setsid()\n    while True:\n        os.rename('docs', 'd2'); os.symlink('@BASE@/outside', 'docs'); os.unlink('docs'); os.rename('d2', 'docs')"
            ),
            tool("read_file", path="docs/other.env"),
            write("docs/HARM", "x"),
        ),
    )
    yield Attack(
        "a secret that no law gave",
        (tool("http_request", url="http://127.0.0.1:@TCP@/x", headers={"A": "secret://KEY"}),),
        config='HOSTS ["127.0.0.1"]',
        settings='[secrets]\nKEY = {env = "GITHUB_TOKEN"}\n',
    )
    yield Attack(
        "a secret in a variable",
        (tool("run", cmd=["env"], env={"K": "secret://KEY"}),),
        settings='[secrets]\nKEY = {env = "GITHUB_TOKEN"}\n',
    )
    for url in (
        "file://@BASE@/outside/x.git",
        "ext::sh -c touch% @RAN@/ext",
        "ssh://-oProxyCommand=touch@RAN@/ssh/x",
        "@BASE@/outside",
    ):
        yield Attack(
            f"git_push {url}",
            (write("src/app.py", "X = 1\n"),),
            then=(COMMIT, tool("git_push", url=url, branch="spak/x")),
        )
    yield Attack(
        "a daemon for the next step",
        (
            line(
                f"setsid bash -c 'while sleep 0.1; do printf \"{HOOK}\" > .git/hooks/pre-commit; done' @BASE@-left & sleep 0.3"
            ),
        ),
        then=(COMMIT,),
    )
    yield Attack(
        "what one step leaves in /tmp",
        (line("cat deploy.env > /tmp/x; echo HARM > /dev/shm/x"), line(f"cat /tmp/x /dev/shm/x {HIDE}")),
    )
