"""Files that say what is run, after a call of a tool: which of them it changed though nothing permitted it.

The judge of command lines foresees what the words of a line do. What the programs of a permitted line do by
themselves it cannot know, nor what a line does in a way that nobody has thought of: so a file that a command
line may not write (`permitted_place` of specs/policy/base.mg) is looked at again when the tool has ended.
Takes the tool with its arguments and the paths that it changed; gives the first that must be as before. It
reads no file and undoes nothing (spak.runner.changes does).

Not held against a call: paths that its permit named, what git alone restores in the workspace's own
repository, what formatters alone rewrite, lock files and installed packages where package managers alone
ran, programs and packages of an environment that `python -m venv` of the line makes, new files in folders of
builds, and files that hold the same words and signs as before.
Held whoever named it: a list of requirements that says anew where packages come from, a `.gitignore` that
ignores a file of secrets no more, and a file of code with nothing left in it (`emptied`).
Source: ADR 0082.
"""

from __future__ import annotations

import ast
import fnmatch
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak import shell
from spak.commandline import lists, places
from spak.commandline.commands import read_line
from spak.commandline.findings import Reading
from spak.datalog import Policy
from spak.datalog.values import Name
from spak.errors import UserError
from spak.policy.actions import Seen, World

_BLIND = World(lambda path: Seen("inside", path), lambda pattern: (), None)
_LOCKS = lists.pattern("control_files", "locks", re.IGNORECASE)
_RESTORE = lists.names("control_files", "git_restores")
_FORMAT = lists.names("control_files", "formatters")
_INSTALL = lists.names("control_files", "package_managers")
_CACHES = lists.names("control_files", "caches")
_REQUIREMENTS = lists.pattern("control_files", "requirements", re.IGNORECASE)
_SOURCES = lists.pattern("control_files", "sources", re.IGNORECASE)
_SECRETS = tuple(sorted(lists.names("control_files", "usual_secrets")))
_STARTED = lists.pattern("control_files", "started", re.IGNORECASE)
"""What an environment starts by itself, or finds by its name: where one was, a new one is another program."""
_WRITTEN = frozenset({"writes", "redirects", "edits"})
_REMOVED = frozenset({"moves", "deletes"})
_WORD = re.compile(rb"[\w\x80-\xff]+|[^\s'\",;()\\]")
"""A word, or a sign that formatters neither add nor remove: programs can be written in signs alone."""
_COMMENT = re.compile(rb"(?m)(?:^|(?<=\s))(?:#|//).*$")
"""The rest of a line that is no code in most files that say what is run."""
_PIP_COMMENT = re.compile(r"(?:^|\s)#.*$")
_QUOTES = str.maketrans("", "", "'\"\\")
MAX_MATCHES = 200_000
"""Names times patterns of a `.gitignore` that are compared; one with more is held."""
MAX_WORDS = 1 << 20
"""Bytes of a content whose words are compared; a longer one is another."""


def may_change(policy: Policy) -> bool:
    """Whether the law lets command lines write such files: then nothing is looked at."""
    try:
        return policy.session([]).holds("permitted_place", Name("/writes"), Name("/control"))
    except UserError:
        return False


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a path, asked of few of them."""

    existed: Callable[[str], bool]
    """Whether something was there before."""
    gone: Callable[[str], bool]
    """Whether nothing is there now."""
    before: Callable[[str], bytes | None]
    after: Callable[[str], bytes | None]
    """What a file held, and what it holds; None where there was none, or a link leads to it."""
    size: Callable[[str], int]
    """Bytes of the file that is there; none of them is read."""
    in_other: Callable[[str], bool]
    """Whether a file lies in a repository below the top, whose index any program can write."""


def unpermitted(tool: str, args: Mapping[str, Any], touched: Iterable[str], change: Change) -> str:
    """The first path of `touched` that says what is run and that this call may not change; else empty."""
    suspects, held = [], []
    for path in touched:
        if _is_suspect(path, change):
            suspects.append(path)
        elif _is_turned(path, change):
            held.append(path)
    if not suspects and not held:
        return ""
    reading = _reading(tool, args)
    if _alone(reading, _FORMAT):
        return ""
    if _alone(reading, _RESTORE):
        suspects = [path for path in (*suspects, *held) if change.in_other(path)]
        held = []
    installs = _alone(reading, _INSTALL, "installs_locked")
    written = {use.path for use in reading.uses if use.how in _WRITTEN} | {str(args.get("verdict_file"))}
    made = _environments(reading, change)
    removed = {use.path for use in reading.uses if use.how in _REMOVED}
    for path in suspects:
        same = same_words(change.before(path), change.after(path), path)
        named = path in written or (path in removed and change.gone(path))
        if not (named or (installs and of_packages(path)) or same or _in_new(path, made, change)):
            return path
    return held[0] if held else ""


def _environments(reading: Reading, change: Change) -> tuple[str, ...]:
    """The folders that a line makes environments of by `python -m venv`."""
    if not any(deed.about == "python-m-venv" for deed in reading.deeds):
        return ()
    named = {use.path for use in reading.uses if use.how == "writes"}
    settings = {path: f"{path}/pyvenv.cfg" for path in named}
    return tuple(
        path for path, file in settings.items() if change.after(file) is not None and not change.existed(file)
    )


def _in_new(path: str, made: Iterable[str], change: Change) -> bool:
    """Whether a file is new where an environment that a line made has its programs and packages."""
    inside = any(path.startswith((f"{top}/bin/", f"{top}/lib/")) for top in made)
    return inside and not change.existed(path)


def emptied(tool: str, args: Mapping[str, Any], touched: Iterable[str], change: Change) -> str:
    """The first file of code or text in which nothing is left, though the line does not remove it and what
    was in it is in no new file; else empty."""
    touched = tuple(touched)
    suspects = [path for path in touched if _may_be_emptied(path, change)]
    if not suspects:
        return ""
    reading = _reading(tool, args)
    if _alone(reading, _RESTORE):
        return ""
    removed = {use.path for use in reading.uses if use.how in _REMOVED}
    lost = {path: _sum(change.before(path)) for path in suspects if path not in removed}
    sizes = {size for size, _ in lost.values()}
    new = (path for path in touched if not change.existed(path) and change.size(path) in sizes)
    moved = {_sum(change.after(path)) for path in new}
    return next((path for path, held in lost.items() if held not in moved), "")


def _sum(data: bytes | None) -> tuple[int, bytes]:
    """Size and hash of a content."""
    return len(data or b""), hashlib.sha256(data or b"").digest()


def same_words(before: bytes | None, after: bytes | None, path: str = "") -> bool:
    """Whether two contents of a file have the same words and signs one after the other, and the same of them
    in comments, but for space, quotes, commas, semicolons, parentheses and backslashes: formatters change no
    more. Of Python they are the same statements in some order, since imports are sorted."""
    if before is None or after is None:
        return False
    if before == after:
        return True
    if max(len(before), len(after)) > MAX_WORDS:
        return False
    if path.lower().endswith((".py", ".pyi")):
        statements = _statements(before)
        return statements is not None and statements == _statements(after)
    return _words(before) == _words(after)


def _words(text: bytes) -> list[bytes]:
    """The words and signs in their order; those of comments with a sign of their own."""
    found, end = list[bytes](), 0
    for comment in _COMMENT.finditer(text):
        found += _WORD.findall(text[end : comment.start()])
        found += (b"#" + word for word in _WORD.findall(comment[0]))
        end = comment.end()
    return found + _WORD.findall(text[end:])


def _statements(source: bytes) -> list[str] | None:
    """The statements of a module, sorted; None where it is none."""
    try:
        return sorted(map(ast.dump, ast.parse(source).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def of_packages(path: str) -> bool:
    """Whether package managers alone may change it: a lock file, or what lies where they install."""
    return _LOCKS.fullmatch(path.rpartition("/")[2]) is not None or _in_build(path)


def is_hidden(path: str) -> bool:
    """Whether a path is not looked at for its name, since it lies where builds or caches do."""
    return not _CACHES.isdisjoint(path.split("/")) or _in_build(path)


def _is_suspect(path: str, change: Change) -> bool:
    parts = path.split("/")
    if ".git" in parts or not _CACHES.isdisjoint(parts):
        return False
    if _in_build(path):
        return places.in_installed(parts) and (change.existed(path) or _starts(parts, change))
    return places.says_what_is_run(parts, "deletes" if change.gone(path) else "edits")


def _starts(parts: Sequence[str], change: Change) -> bool:
    """Whether it is a program, or started by itself, in an environment that was there or is none: packages of
    node, which only their manager brings, and a folder that no `pyvenv.cfg` makes one."""
    root = next(at for at in range(1, len(parts)) if places.in_installed(parts[: at + 1]))
    if _STARTED.fullmatch("/".join(parts[root:])) is None:
        return False
    tops = ["/".join(parts[:at]) for at in range(root, len(parts))]
    there = parts[root - 1] == "node_modules" or change.existed(tops[0])
    return there or all(change.after(f"{top}/pyvenv.cfg") is None for top in tops)


def _is_turned(path: str, change: Change) -> bool:
    """Whether a file that any line may write says now what it did not say: where packages come from, or that
    a file of secrets is no longer ignored. A link is held: what it leads to may be written later."""
    ignores = path.rpartition("/")[2] == ".gitignore"
    if not ignores and (not _REQUIREMENTS.fullmatch(path) or is_hidden(path)):
        return False
    after = change.after(path)
    if after is None and not change.gone(path):
        return True
    texts = [(data or b"").decode("utf-8", "replace") for data in (change.before(path), after)]
    if ignores:
        return _shows_secrets(*(text.splitlines() for text in texts))
    before, now = map(_requirements, texts)
    return any(map(_SOURCES.match, now - before))


def _requirements(text: str) -> set[str]:
    """The lines of a list of requirements as pip joins them, without comments and quotes."""
    found, begun = set(), ""
    for line in text.splitlines():
        comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not comment:
            begun += line.strip("\\")
            continue
        found.add(f"{begun} {line}" if comment else begun + line)
        begun = ""
    return {_PIP_COMMENT.sub("", line).translate(_QUOTES) for line in (*found, begun)}


def _shows_secrets(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether patterns ignored a file of secrets and now do not, or now take one back: of the usual names,
    and of those in lines that are not in both."""
    changed = set(before) ^ set(after) or {*before, *after}
    named = {_pattern(line) + "x" * line.rstrip().endswith("/") for line in changed if before != after}
    names = {*_SECRETS, *filter(places.secret, named)}
    if len(names) * (len(before) + len(after)) > MAX_MATCHES:
        return True
    was, now = _ignored(names, before), _ignored(names, after)
    return any(now.get(name, not was.get(name)) is False and was.get(name) is not False for name in names)


def _ignored(names: Collection[str], lines: Iterable[str]) -> dict[str, bool]:
    """What the last line that fits a name says of it; nothing where none does."""
    found = dict[str, bool]()
    for line in lines:
        pattern = _pattern(line).removeprefix("**/").rstrip("/")
        if pattern and not line.startswith("#"):
            fits = re.compile(fnmatch.translate(pattern)).match
            of_folders = line.rstrip().endswith("/")
            for name in names:
                parts = name.split("/")
                if any(map(fits, parts[:-1] if of_folders else (name, *parts))):
                    found[name] = not line.startswith("!")
    return found


def _pattern(line: str) -> str:
    return line.removeprefix("!").strip().lstrip("/")


def _may_be_emptied(path: str, change: Change) -> bool:
    name = path.rpartition("/")[2]
    if not places.is_code(name) or name == "__init__.py" or is_hidden(path) or not change.existed(path):
        return False
    after = change.after(path)
    return after is not None and not after.strip() and bool((change.before(path) or b"").strip())


def _in_build(path: str) -> bool:
    return places.generated(path.rpartition("/")[0])


def _reading(tool: str, args: Mapping[str, Any]) -> Reading:
    """What the line of the call does; nothing where it has none."""
    words = args.get("cmd")
    if not isinstance(words, (list, tuple)):
        return Reading()
    try:
        return read_line(shell.join([str(word) for word in words]), _BLIND)
    except (UserError, RecursionError):
        return Reading()


def _alone(reading: Reading, programs: frozenset[str], kind: str = "") -> bool:
    """Whether all commands of a line that do more than compute are of these, or of that kind, and nothing is
    redirected."""
    found = [deed for deed in reading.deeds if deed.kind != "computes"]
    redirected = any(use.how == "redirects" for use in reading.uses)
    fits = all(
        deed.kind == kind or not programs.isdisjoint((deed.about.replace(" ", "-"), deed.about.split(" ")[0]))
        for deed in found
    )
    return bool(found) and fits and not redirected and reading.trouble is None
