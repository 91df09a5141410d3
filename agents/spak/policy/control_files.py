"""Files that say what is run, after a call of a tool: which of them it changed though nothing permitted it.

The judge of command lines foresees what the words of a line do. What the programs of a permitted line do by
themselves it cannot know, nor what a line does in a way that nobody has thought of: so a file that a command
line may not write (`permitted_place` of specs/policy/base.mg) is looked at again when the tool has ended.
Takes the tool with its arguments and the paths that it changed; gives the first that must be as before. It
reads no file and undoes nothing (spak.runner.changes does).

Not held against a call: paths that its permit named, what git alone restores in the workspace's own
repository, what formatters alone rewrite, lock files and installed packages where package managers alone
ran, new files in folders of builds, and files that hold the same words and signs as before in any order.
Source: ADR 0082.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
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
_NAMED = frozenset({"writes", "redirects", "edits", "moves", "deletes"})
_WORD = re.compile(rb"[\w\x80-\xff]+|[^\s'\",;()\\]")
"""A word, or a sign that formatters neither add nor remove: programs can be written in signs alone."""
MAX_WORDS = 1 << 20
"""Bytes of a content whose words are compared; a longer one is another."""


def may_change(policy: Policy) -> bool:
    """Whether the law lets command lines write such files: then nothing is looked at."""
    try:
        return policy.session([]).holds("permitted_place", Name("/writes"), Name("/control"))
    except UserError:
        return False


def unpermitted(
    tool: str,
    args: Mapping[str, Any],
    touched: Iterable[str],
    existed: Callable[[str], bool],
    gone: Callable[[str], bool],
    same: Callable[[str], bool],
    in_other: Callable[[str], bool],
) -> str:
    """The first path of `touched` that says what is run and that this call may not change; else empty.

    `existed` says whether something was there before, `gone` whether nothing is there now, `same` whether a
    file holds the words that it held (`same_words`), `in_other` whether a file lies in a repository below the
    top, whose index any program can write; they are asked of few paths.
    """
    suspects = [path for path in touched if _is_suspect(path, existed, gone)]
    if not suspects:
        return ""
    reading = _reading(tool, args)
    if _alone(reading, _FORMAT):
        return ""
    if _alone(reading, _RESTORE):
        suspects = [path for path in suspects if in_other(path)]
    installs = _alone(reading, _INSTALL, "installs_locked")
    named = {use.path for use in reading.uses if use.how in _NAMED} | {str(args.get("verdict_file"))}
    for path in suspects:
        of_packages = _LOCKS.fullmatch(path.rpartition("/")[2]) or _in_build(path)
        if path not in named and not (installs and of_packages) and not same(path):
            return path
    return ""


def same_words(before: bytes | None, after: bytes | None, path: str = "") -> bool:
    """Whether two contents of a file have the same words and signs, each as often, but for space, quotes,
    commas, semicolons, parentheses and backslashes: formatters change no more. Of Python they are the same
    statements in some order, so that no comment becomes one."""
    if before is None or after is None:
        return False
    if before == after:
        return True
    if max(len(before), len(after)) > MAX_WORDS:
        return False
    if path.lower().endswith((".py", ".pyi")):
        statements = _statements(before)
        return statements is not None and statements == _statements(after)
    return sorted(_WORD.findall(before)) == sorted(_WORD.findall(after))


def _statements(source: bytes) -> list[str] | None:
    """The statements of a module, sorted; None where it is none."""
    try:
        return sorted(map(ast.dump, ast.parse(source).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_suspect(path: str, existed: Callable[[str], bool], gone: Callable[[str], bool]) -> bool:
    parts = path.split("/")
    if ".git" in parts or not _CACHES.isdisjoint(parts):
        return False
    if _in_build(path):
        return places.in_installed(parts) and existed(path)
    return places.says_what_is_run(parts, "deletes" if gone(path) else "edits")


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
