"""Commands that run other commands: timeout, env, xargs, find and their like.

They hand the inner command back to the Judge, or refuse where its words are not known before the line runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import environment
from spak.commandline.commands import Judge
from spak.commandline.outputs import lists_paths
from spak.commandline.words import Arg, texts_of
from spak.shell import Command


def wrapper(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """timeout, nice, time, stdbuf, ionice, command: options, then a command."""
    takes = {"timeout": "sk", "nice": "n", "ionice": "cn", "stdbuf": "ioe", "time": "f", "chrt": ""}.get(
        name, ""
    )
    at = 0
    while at < len(rest) and (rest[at].text or "").startswith("-"):
        text = rest[at].text or ""
        if name == "time" and re.match(r"-[oa]|--(output|append)", text):
            judge.deed("refused_flag", f"{name} {text}", "it writes a file")
        if name == "command" and text in ("-v", "-V"):
            judge.deed("computes", name)
            return
        at += 2 if len(text) == 2 and text[1] in takes else 1
    if name == "timeout":
        if at >= len(rest) or not re.match(r"\d+(\.\d+)?[smh]?\Z", rest[at].text or ""):
            judge.deed("not_understood", name, "no plain duration")
            return
        at += 1
    if at >= len(rest):
        judge.deed("computes", name)
        return
    judge.deed("computes", name)
    if name == "time" and re.match(r"[A-Za-z_]\w*\+?=", rest[at].written):
        judge.deed("not_understood", rest[at].written, "an assignment behind `time` stays or is a program")
        return
    judge.run(rest[at:], before)


def env(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    at = 0
    while at < len(rest):
        text = rest[at].text or ""
        if text in ("-i", "-", "--ignore-environment"):
            at += 1
        elif text in ("-u", "--unset"):
            at += 2
        elif text.startswith("-"):
            judge.deed("refused_flag", f"env {rest[at].written}", "only -i and -u are understood")
            return
        elif re.match(r"[A-Za-z_]\w*=", text):
            key, _, value = text.partition("=")
            why = environment.trouble(key, [value])
            if why:
                judge.deed("sets_environment", key, why)
            elif environment.is_path_list(key):
                for item in filter(None, value.split(":")):
                    judge.path("reads", Arg(item, (item,), tilde=item.startswith("~")))
            at += 1
        else:
            break
    if at >= len(rest):
        judge.deed("shows_environment", name, "it prints the environment")
        return
    judge.deed("computes", name)
    judge.run(rest[at:], before)


def printenv(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    calm = bool(rest) and all(
        text in ("PATH", "HOME", "PWD", "LANG", "SHELL", "USER", "TERM", "PYTHONPATH")
        for text in texts_of(rest)
    )
    judge.deed("computes" if calm else "shows_environment", name, "" if calm else "it prints the environment")


def export(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    for text in texts_of(rest):
        key, _, value = text.partition("=")
        why = (
            environment.trouble(key, [value])
            if re.match(r"[A-Za-z_]\w*\Z", key)
            else "not a plain assignment"
        )
        judge.deed("sets_environment" if why else "computes", f"export {key}", why or "")
        if not why and environment.is_path_list(key):
            for item in filter(None, value.split(":")):
                judge.path("reads", Arg(item, (item,), tilde=item.startswith("~")))
    if not rest:
        judge.deed("shows_environment", name, "it prints the environment")


def unset(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Takes a variable away, as env -u does; not one that programs go by."""
    for text in texts_of(rest):
        why = environment.trouble(text, []) if re.match(r"[A-Za-z_]\w*\Z", text) else "not a plain name"
        judge.deed("sets_environment" if why else "computes", f"unset {text}", why or "")
    if not rest:
        judge.deed("computes", name)


_SAFE_APPENDED = frozenset(
    [
        "cat",
        "wc",
        "head",
        "tail",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "ls",
        "stat",
        "file",
        "du",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "basename",
        "dirname",
        "echo",
        "printf",
        "nl",
        "diff",
        "jq",
        "realpath",
        "cksum",
        "strings",
        "ruff",
        "black",
        "mypy",
        "flake8",
        "pylint",
        "clang-format",
        "gofmt",
        "isort",
        "eslint",
        "prettier",
        "shellcheck",
    ]
)


def xargs(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Only readers, and only of paths that a command before it lists."""
    at = 0
    marker = ""
    while at < len(rest) and (rest[at].text or "").startswith("-"):
        text = rest[at].text or ""
        if re.match(r"-(a|-arg-file|p|o|-interactive|-open-tty|-process-slot)", text):
            judge.deed("refused_flag", f"xargs {text}", "it reads its words from elsewhere")
            return
        if re.match(r"-I.+|-i.*|--replace", text):
            marker = text[2:] if not text.startswith("--") else "{}"
        if text == "-I":
            marker = (rest[at + 1].text or "") if at + 1 < len(rest) else ""
        at += (
            2
            if text in ("-I", "-n", "-P", "-L", "-d", "-s", "-E", "--max-args", "--max-procs", "--delimiter")
            else 1
        )
    inner = rest[at:]
    if not inner:
        judge.deed("computes", name)
        return
    start = len(before)
    while start and before[start - 1].operator in ("|",):
        start -= 1
    feed = tuple(before[start - 1 :]) if start else ()
    first = inner[0].text or ""
    if first.rpartition("/")[2] not in _SAFE_APPENDED and not _compiles(inner):
        judge.deed("executes", f"xargs {first}", "it is run with words that are not known before")
        return
    if first not in ("echo", "basename", "dirname", "printf") and not (feed and lists_paths(feed)):
        judge.deed("unknown_word", f"xargs {first}", "paths that are not known before the line runs")
        return
    judge.deed("computes", name)
    kept = [
        Arg("{}", lists_paths=True, literal=False) if marker and marker in (item.text or "") else item
        for item in inner
    ]
    judge.run(kept if marker else [*kept, Arg("{}", lists_paths=True, literal=False)], before)


def _compiles(inner: list[Arg]) -> bool:
    """`python3 -m py_compile`: reads, and runs nothing of what it reads."""
    return texts_of(inner[:3]) in (["python3", "-m", "py_compile"], ["python", "-m", "py_compile"])


_FIND_TAKES = frozenset(
    [
        "name",
        "iname",
        "path",
        "ipath",
        "wholename",
        "iwholename",
        "regex",
        "iregex",
        "regextype",
        "type",
        "xtype",
        "size",
        "mtime",
        "mmin",
        "atime",
        "amin",
        "ctime",
        "cmin",
        "newer",
        "anewer",
        "cnewer",
        "newermt",
        "newerct",
        "maxdepth",
        "mindepth",
        "perm",
        "user",
        "group",
        "uid",
        "gid",
        "links",
        "inum",
        "printf",
        "samefile",
        "used",
        "lname",
        "ilname",
        "fstype",
        "context",
    ]
)
_FIND_FLAGS = frozenset(
    [
        "print",
        "print0",
        "ls",
        "prune",
        "quit",
        "a",
        "and",
        "o",
        "or",
        "not",
        "empty",
        "executable",
        "readable",
        "writable",
        "depth",
        "d",
        "mount",
        "xdev",
        "noleaf",
        "true",
        "false",
        "daystart",
        "nouser",
        "nogroup",
        "ignore_readdir_race",
        "nowarn",
        "warn",
        "H",
        "P",
    ]
)
_RM_FLAGS = frozenset({"-f", "-r", "-R", "-rf", "-fr", "-Rf", "--"})
_JUNK = re.compile(
    r"\*?\.(pyc|pyo|o|obj|tmp|log|orig|rej|bak|swp|class|gcda|gcno)|__pycache__|\.DS_Store|\*~|\*\.egg-info|\.?\w+_cache"
)


def find(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    at = 0
    roots: list[Arg] = []
    while at < len(rest):
        text = rest[at].text
        if text in ("-H", "-P", "-O1", "-O2", "-O3"):
            at += 1
            continue
        if text == "-L" or any(item.text == "-follow" for item in rest):
            judge.deed("refused_flag", "find -L", "it follows links out of the workspace")
            return
        if text is not None and (text.startswith(("-", "(", "!", ")")) or text == ","):
            break
        roots.append(rest[at])
        at += 1
    for root in roots:
        judge.path("reads", root)
    names: list[str] = []
    judge.deed("computes", name)
    while at < len(rest):
        text = rest[at].text
        at += 1
        if text in ("(", ")", "!", ",") or (
            text is not None and text.lstrip("-") in _FIND_FLAGS and text.startswith("-")
        ):
            continue
        key = (text or "").lstrip("-")
        if key in _FIND_TAKES or re.match(r"newer[aBcm][aBcmt]\Z", key):
            value = rest[at].text if at < len(rest) else None
            if value is None:
                judge.deed(
                    "unknown_word",
                    rest[at].written if at < len(rest) else "-" + key,
                    "find's condition is not known",
                )
                return
            if key in ("newer", "anewer", "cnewer", "samefile"):
                judge.path("reads", rest[at])
            if key in ("name", "iname"):
                names.append(value)
            at += 1
        elif key in ("exec",) and text == "-exec":
            inner: list[Arg] = []
            while at < len(rest) and rest[at].text not in (";", "+"):
                inner.append(rest[at])
                at += 1
            at += 1
            words = [item.text for item in inner]
            if words[:1] == ["rm"] and words[-1:] == ["{}"] and set(words[1:-1]) <= _RM_FLAGS:
                _deletes(judge, names, rest)
            else:
                _exec(judge, inner, before)
        elif key == "delete":
            _deletes(judge, names, rest)
        else:
            judge.deed("refused_flag", f"find {text}", "it runs a command, writes a file or is not known")
            return


def _deletes(judge: Judge, names: list[str], rest: list[Arg]) -> None:
    """What is deleted has to be named before, and be what a build makes."""
    if not names or not all(_JUNK.fullmatch(item) for item in names):
        judge.deed("deletes_widely", "find -delete", "it deletes more than files that a build makes")
    elif any((item.text or "") in ("!", "-not") for item in rest):
        judge.deed("deletes_widely", "find -delete", "it deletes all but what is named")
    elif not _deletes_after_names(rest):
        judge.deed("deletes_widely", "find -delete", "it deletes before it looks at names")


def _deletes_after_names(rest: list[Arg]) -> bool:
    """True when each -delete stands behind a name in its own alternative."""
    named = False
    for text in texts_of(rest):
        if text in ("-name", "-iname"):
            named = True
        elif text in ("-o", "-or", ","):
            named = named and "(" in texts_of(rest)
        elif text in ("-delete", "-exec") and not named:
            return False
    return True


def _exec(judge: Judge, inner: list[Arg], before: Sequence[Command]) -> None:
    first = inner[0].text if inner else ""
    if (first or "").rpartition("/")[2] not in _SAFE_APPENDED and not _compiles(inner):
        judge.deed("executes", f"find -exec {first}", "it runs a command that does more than read")
        return
    kept = [Arg("{}", lists_paths=True, literal=False) if item.text == "{}" else item for item in inner]
    judge.run(kept, before)
