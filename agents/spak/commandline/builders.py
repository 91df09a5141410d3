"""Build tools and package managers: what runs the project, and what fetches or publishes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import binaries, environment
from spak.commandline.commands import Judge
from spak.commandline.interpreters import python
from spak.commandline.words import Arg, texts_of
from spak.shell import Command


def make(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    for position, item in enumerate(rest):
        text = item.text
        if text is None:
            if not item.mild and not re.match(r'-j"?\$\(nproc\)"?\Z', item.written):
                judge.deed("unknown_word", item.written, "a word that is not known before the line runs")
            continue
        if re.match(r"--eval|-E|-I\W|--include-dir", text):
            judge.deed("executes", f"make {text}", "rules on the command line")
        elif "=" in text and not text.startswith("-"):
            key, _, value = text.partition("=")
            key = key.rstrip(":?+")
            why = (
                None
                if key in ("CFLAGS", "CXXFLAGS") and environment.trouble(key, [value]) is None
                else environment.trouble(key, [value])
            )
            if (
                why
                or not re.match(r"[\w./,:+ =-]*\Z", value)
                or key in ("SHELL", ".SHELLFLAGS", "MAKE", "RM")
            ):
                judge.deed("sets_environment", key, why or "a value that make hands to a shell")
            else:
                judge.pathlike(item, value)
        elif re.match(r"-[A-Za-z]*[fC]\Z|--(file|makefile|directory)\Z", text):
            continue
        elif re.match(r"-[fC].+", text):
            judge.path("runs" if text[1] == "f" else "reads", Arg(text, (text[2:],), tilde=text[2:3] == "~"))
        elif position and re.match(
            r"-[A-Za-z]*[fC]\Z|--(file|makefile|directory)\Z", rest[position - 1].text or ""
        ):
            if text == "-":
                judge.deed("executes", "make -f -", "rules from standard input")
            else:
                judge.path(
                    "runs" if (rest[position - 1].text or "").endswith(("f", "file")) else "reads", item
                )
        else:
            judge.pathlike(item, text)
    _installs(judge, name, texts_of(rest))
    judge.deed("builds", name)


def targets(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Runners of targets by their table, but for what installs."""
    _installs(judge, name, texts_of(rest))
    judge.by_table(name, binaries.table()[name], rest)


def _installs(judge: Judge, name: str, texts: Sequence[str]) -> None:
    """The target `install` puts files where the system has its own, but for a folder that the line names."""
    if any(re.match(r"(un)?install([-_/].*)?\Z", text) for text in texts) and not any(
        re.match(r"(DESTDIR|PREFIX|prefix)=.|-n\Z|--dry-run\Z", text) for text in texts
    ):
        judge.deed("installs", f"{name} install", "it installs outside of the workspace")


def cmake(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    texts = texts_of(rest)
    for text in texts:
        if re.match(r"-E\Z|-P", text) or re.match(
            r"-D\w*(COMPILER|LAUNCHER|LINKER|PROGRAM|MAKE_PROGRAM|TOOLCHAIN|RULE|PROJECT.*INCLUDE|COMMAND)",
            text,
        ):
            judge.deed("refused_flag", f"cmake {text}", "it runs a script or chooses what is run")
            return
    if "--install" in texts and not any(text.startswith("--prefix") for text in texts):
        judge.deed("installs", f"{name} --install", "it installs outside of the workspace")
    elif "--build" in texts:
        _installs(judge, name, texts)
    if "--" in texts and any(
        re.match(r"(SHELL|CC|CXX|--eval|-f)", text) for text in texts[texts.index("--") :]
    ):
        judge.deed("refused_flag", "cmake --", "words for the build tool that choose what is run")
    judge.deed("builds", name)
    judge.plain_paths(rest)


def coverage(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    texts = texts_of(rest)
    if texts[:1] == ["run"]:
        at = 1
        while at < len(rest) and texts[at].startswith("-") and texts[at] != "-m":
            judge.plain_paths(rest[at : at + 1])
            at += 1
        python(judge, "python3", rest[at:], before)
        return
    judge.deed(
        "builds"
        if texts[:1] and texts[0] in ("report", "html", "xml", "json", "combine", "erase", "lcov", "debug")
        else "unknown_flag",
        name,
    )
    judge.plain_paths(rest[1:])


def precommit(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    calm = judge.only_asks(rest) or (bool(rest) and rest[0].text in ("run", "validate-config"))
    judge.deed(
        "builds" if calm else "refused_flag", name, "" if calm else "it installs hooks or fetches code"
    )
    judge.plain_paths(rest[1:])


def npm(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    words = [
        item
        for item in rest
        if not re.match(
            r"--(silent|if-present|workspaces|no-audit|no-fund|production|omit=dev|frozen-lockfile|json|prefer-offline|ignore-scripts)\Z|-s\Z",
            item.text or "",
        )
    ]
    while len(words) > 1 and name == "pnpm":
        if words[0].text in ("-r", "--recursive", "-w", "--workspace-root"):
            words = words[1:]
        elif words[0].text in ("--filter", "-F") and re.match(r"[\w@/.*-]+\Z", words[1].text or ""):
            words = words[2:]
        else:
            break
    texts = texts_of(words)
    verb = texts[0] if texts else ("install" if name in ("yarn",) else "")
    rest_words = words[1:]
    if judge.only_asks(rest) or texts in (
        ["-v"],
        ["ls"],
        ["list"],
        ["outdated"],
        ["root"],
        ["bin"],
        ["prefix"],
        ["audit"],
    ):
        judge.deed("computes", name)
    elif any(
        re.match(
            r"--(script-shell|prefix|node-options|registry|userconfig|globalconfig|init-module|editor|git|shell|proxy|https-proxy|location|global|cache|ignore-scripts=false)|-g\Z|-C",
            text,
        )
        for text in texts
    ):
        judge.deed(
            "refused_flag", f"{name} {' '.join(texts)[:80]}", "a setting that chooses what is run or where"
        )
    elif verb in (
        "test",
        "t",
        "start",
        "stop",
        "build",
        "lint",
        "run",
        "run-script",
        "tst",
        "format",
        "typecheck",
        "check",
        "ls",
        "list",
        "why",
        "explain",
        "pack",
        "dedupe",
        "prune",
    ) or (name != "npm" and verb in ("dev", "coverage", "fmt")):
        judge.deed("builds", name)
        judge.plain_paths(rest_words)
    elif verb in ("ci", "install", "i") and not [
        item for item in rest_words if not (item.text or "-").startswith("-")
    ]:
        judge.deed("installs_locked", name)
    elif verb in ("exec", "x", "dlx") and rest_words:
        npx(
            judge,
            name,
            [item for item in rest_words if item.text not in ("--", "--no-install", "--no")],
            before,
        )
    else:
        judge.deed("unknown_flag", f"{name} {verb}", "it fetches, publishes or changes settings")


_NPX = frozenset(
    [
        "tsc",
        "eslint",
        "jest",
        "prettier",
        "vitest",
        "mocha",
        "webpack",
        "vite",
        "rollup",
        "cypress",
        "playwright",
        "stylelint",
        "tslint",
        "nyc",
        "ava",
        "tap",
    ]
)


def npx(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    rest = [
        item
        for index, item in enumerate(rest)
        if not (item.text in ("--no-install", "--no", "--") and index < 2)
    ]
    tool = rest[0].text if rest else None
    if tool in _NPX and tool is not None:
        if tool in binaries.table():
            judge.run([Arg(tool, (tool,)), *rest[1:]], before)
        else:
            judge.deed("builds", tool)
            judge.plain_paths(rest[1:])
        return
    judge.deed("connects", f"{name} {tool}", "it may fetch and run a package")


def pip(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    texts = texts_of(rest)
    if name == "uv" and texts[:1] == ["pip"]:
        rest, texts = rest[1:], texts[1:]
    if (
        name == "uv"
        and texts[:1] == ["sync"]
        and all(
            re.match(r"--(frozen|locked|dev|no-dev|all-extras|all-groups|extra=[\w-]+|group=[\w-]+)\Z", text)
            for text in texts[1:]
        )
    ):
        judge.deed("installs_locked", name)
        return
    if name == "uv" and texts[:1] == ["run"]:
        inner = rest[1:]
        if inner and not (inner[0].text or "-").startswith("-"):
            judge.run(inner, before)
            return
    verb = texts[0] if texts else ""
    if judge.only_asks(rest) or verb in (
        "list",
        "show",
        "freeze",
        "check",
        "debug",
        "help",
        "tree",
        "inspect",
    ):
        judge.deed("computes", name)
        judge.plain_paths(rest[1:])
        return
    if verb in ("install", "sync") and len(texts) > 1:
        at = 1
        while at < len(rest):
            text = texts[at]
            if text in ("-r", "-e", "-c", "--requirement", "--editable", "--constraint") and at + 1 < len(
                rest
            ):
                judge.path(
                    "runs",
                    Arg(rest[at + 1].written, (re.sub(r"\[[\w,-]*\]\Z", "", texts[at + 1]),))
                    if texts[at + 1]
                    else rest[at + 1],
                )
                if re.search(r"://|git\+", texts[at + 1]):
                    judge.deed("connects", texts[at + 1], "it fetches code")
                at += 2
            elif text in (
                "-q",
                "-U",
                "--upgrade",
                "--no-deps",
                "--no-build-isolation",
                "--quiet",
                "-v",
                "--user",
                "--no-cache-dir",
                "--no-index",
            ) or re.match(r"\.(\[[\w,-]+\])?/?\Z", text):
                at += 1
            else:
                judge.deed(
                    "connects",
                    f"pip install {text}",
                    "it fetches and runs a package that no file of the project names",
                )
                return
        judge.deed("installs_locked", name)
        return
    if (
        name == "uv"
        and verb in ("lock", "venv")
        and all(text.startswith("--") or text in (".venv",) for text in texts[1:])
    ):
        judge.deed("installs_locked", name)
        return
    judge.deed("unknown_flag", f"{name} {verb}", "it fetches, sends or changes settings")


def poetry(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    verb = rest[0].text if rest else ""
    if judge.only_asks(rest) or (verb in ("check", "show", "env", "version") and len(rest) < 3):
        judge.deed("computes", name)
    elif verb in ("install", "lock", "build", "sync") and all(
        (item.text or "").startswith("--") for item in rest[1:]
    ):
        judge.deed("installs_locked", name)
    elif verb == "run" and len(rest) > 1:
        judge.run(rest[1:], before)
    else:
        judge.deed("unknown_flag", f"{name} {verb}", "it fetches, sends or changes settings")


def cargo(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    words = [item for item in rest if not re.match(r"\+(stable|nightly|beta)\Z", item.text or "")]
    verb = words[0].text if words else ""
    texts = texts_of(words)
    if judge.only_asks(rest):
        judge.deed("computes", name)
    elif any(re.match(r"--config|-Z|-C\Z|--manifest-path=?/|--target-dir=?/", text) for text in texts):
        judge.deed("refused_flag", "cargo " + " ".join(texts)[:80], "a setting that chooses what is run")
    elif verb in (
        "build",
        "b",
        "check",
        "c",
        "test",
        "t",
        "bench",
        "run",
        "r",
        "clippy",
        "fmt",
        "doc",
        "tree",
        "metadata",
        "clean",
        "nextest",
        "fetch",
        "generate-lockfile",
        "locate-project",
        "pkgid",
        "verify-project",
        "audit",
        "deny",
        "expand",
        "update",
    ):
        if (
            verb == "clippy"
            and "--" in texts
            and any(not re.match(r"--|-[WDAF]|clippy::|[\w:-]+\Z", text) for text in texts)
        ):
            judge.deed("refused_flag", "cargo clippy", "an option that is not known")
        judge.deed("builds", name)
        judge.plain_paths(words[1:])
    else:
        judge.deed("unknown_flag", f"cargo {verb}", "it fetches, publishes or changes settings")


def go(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    verb = rest[0].text if rest else ""
    texts = texts_of(rest)
    bad = re.compile(
        r"--?(exec|toolexec|vettool|overlay|modfile|pkgdir|gccgoflags|ldflags|gcflags|asmflags|pgo|C|modcacherw)(=|\Z)"
    )
    if any(
        bad.match(text) and not re.match(r"--?ldflags=?['\"]?(-s|-w| |-X [\w./-]+=[\w./-]+)*['\"]?\Z", text)
        for text in texts
    ):
        judge.deed(
            "refused_flag", "go " + " ".join(texts)[:80], "it runs another program or changes the build"
        )
    elif verb in (
        "build",
        "test",
        "vet",
        "run",
        "fmt",
        "list",
        "doc",
        "version",
        "generate",
        "env",
        "clean",
        "tool",
    ):
        if verb == "env" and any(
            (text.startswith("-") and text not in ("-json",)) or "=" in text for text in texts[1:]
        ):
            judge.deed("refused_flag", "go env", "it changes settings")
        if any(re.match(r"[^-].*@|[A-Za-z0-9-][\w.-]*\.[A-Za-z]{2,}/", text) for text in texts[1:]):
            judge.deed("connects", f"go {verb}", "a package from the network")
        if verb == "clean" and "-modcache" in texts:
            judge.deed("deletes_widely", "go clean", "it deletes a cache that others use")
        if verb == "tool" and texts[1:2] not in (["cover"], ["pprof"], ["vet"], ["nm"]):
            judge.deed("unknown_flag", "go tool", "nothing is known about this tool")
        judge.deed("builds", name)
        judge.plain_paths([item for item in rest[1:] if not re.match(r"\./\.\.\.|\.\.\.", item.text or "")])
        for position, text in enumerate(texts):
            if text in ("-o", "-coverprofile", "-cpuprofile", "-memprofile") and position + 1 < len(rest):
                judge.path("writes", rest[position + 1])
    elif (
        verb == "mod" and texts[1:2] and texts[1] in ("tidy", "verify", "graph", "why", "download", "vendor")
    ):
        judge.deed("installs_locked", name)
    else:
        judge.deed("unknown_flag", f"go {verb}", "it fetches code or changes settings")
