"""The class of one changed path by its name: runs, checks or ordinary, with the reason in words.

Takes a path and what is known of its surroundings. Ordinary is a positive form: an ending that is listed
(`classes.toml`, with the reason beside it), no name that a tool reads by itself, no dot, nothing new at the
top but prose, no new executable, and no module that is imported in the place of another. All else runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from spak.word_lists import WordLists

LISTS = WordLists(Path(__file__).resolve().parent / "classes.toml")
PROSE = frozenset({"md", "rst", "txt", "adoc"})
"""Endings of texts that are read, which may be new at the top."""
HARMLESS_DOTS = frozenset({".gitkeep", ".keep"})
"""Names with a dot that say nothing: they keep an empty folder."""


_PINNED = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[[\w., -]*\])?\s*(?:(?:[=<>!~]=?=?)\s*[\w.*+!-]+\s*,?\s*)*"
    r"(?:;[^@:/\\#]*)?(?:\s#.*)?"
)
"""A line that names a package and versions of it, as pip reads it."""


class Class(StrEnum):
    """What becomes of a changed path at the door."""

    IGNORED = "ignored"
    SECRET = "secret"
    ODD = "odd"
    RUNS = "runs"
    CHECKS = "checks"
    ORDINARY = "ordinary"


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds the changes: folders at the top that were there, what is there after them, and what
    was there before."""

    tops: frozenset[str]
    exists: Callable[[str], bool]
    existed: Callable[[str], bool]


def named(path: str, how: str, around: Around, *, new_x: bool = False) -> tuple[Class, str]:
    """The class of a plain file that is no secret, and why; `how` is A, M or D as git has them. One that goes
    away has the class that another content of it would have."""
    name = path.rpartition("/")[2]
    why = read_by(path, lambda beside: around.exists(beside) or around.existed(beside))
    why = why or _unknown(path, name, how, around) or ("it is new as a program (mode x)" if new_x else "")
    if why:
        return Class.RUNS, why
    if is_check(path):
        return Class.CHECKS, "a test, or read by one"
    return Class.ORDINARY, _ordinary(path, how) or "it says nothing"


def _unknown(path: str, name: str, how: str, around: Around) -> str:
    """Why it is not known what takes a changed file up; else empty."""
    if not _ordinary(path, how) and name.casefold() not in HARMLESS_DOTS:
        return "not known what takes a file of this ending up"
    top, below, _ = path.partition("/")
    if how != "A":
        return ""
    if below and top not in around.tops:
        return f"the folder {top} is new at the top"
    if not below and not is_prose(name):
        return "it is new at the top, where tools look"
    return _shadow(path, name, around)


def _shadow(path: str, name: str, around: Around) -> str:
    """Which import a new module takes the place of; else empty. In a package it has the package's name before
    its own, and takes the place of none."""
    folder = path.rpartition("/")[0]
    stem, _, ending = name.rpartition(".")
    if ending not in ("py", "pyi"):
        return ""
    if stem == "__init__":
        folder, _, stem = folder.rpartition("/")
        if around.exists(f"{folder}/{stem}.py".lstrip("/")):
            return f"the package is imported in the place of {stem}.py"
    if f"/{folder}".endswith("/management/commands") and stem in LISTS.names("shadows", "commands"):
        return f"it takes the place of the command {stem}"
    packaged = around.existed(f"{folder}/__init__.py".lstrip("/"))  # one that comes may wait, or go again
    if stem in LISTS.names("shadows", "imported") and not packaged:
        return f"it may be imported in the place of {stem}"
    return ""


def read_by(path: str, exists: Callable[[str], bool] = lambda _: True) -> str:
    """Which tool reads a file of this path by itself, in words; empty where none is known to. `exists` says
    what else is there."""
    dotted = next(
        (part for part in path.split("/") if part[0] == "." and part.casefold() not in HARMLESS_DOTS), ""
    )
    if dotted:
        return f"{dotted}: tools read names with a dot by themselves"
    by, beside = _reader(path.casefold())
    folder = path.rpartition("/")[0]
    if beside and not any(exists(f"{folder}/{name}".lstrip("/")) for name in beside):
        return ""
    return f"read by {by}" if by else ""


@lru_cache(1 << 14)
def _reader(low: str) -> tuple[str, tuple[str, ...]]:
    """The first row that a path in small letters fits: who reads it, and next to what."""
    return next(((by, beside) for fits, by, beside in _read() if fits(low)), ("", ()))


def is_known(path: str) -> bool:
    """Whether the ending is one of a file that is ordinary where it was there before."""
    return bool(_ordinary(path, "M"))


def is_prose(path: str) -> bool:
    """Whether the ending is one of texts that are read."""
    return _ending(path.rpartition("/")[2]) in PROSE


def other_versions(path: str, before: bytes, after: bytes) -> bool:
    """Whether a list of packages for pip names the same packages, or fewer, from the same places."""
    if not _lists_packages()(path.casefold()):
        return False
    (old, rest_before), (new, rest_after) = map(_packages, (before, after))
    return new <= old and rest_before == rest_after


@lru_cache(1 << 14)
def is_check(path: str) -> bool:
    """Whether it is a test, or lies among what tests read."""
    low = path.casefold()
    *folders, _ = low.split("/")
    return not LISTS.names("checks", "folders").isdisjoint(folders) or _of_checks()(low)


@cache
def _read() -> tuple[tuple[Callable[[str], bool], str, tuple[str, ...]], ...]:
    return tuple(
        (_fits(row["names"].split()), row["by"], tuple(row.get("beside", "").split()))
        for row in _rows("read")
    )


def _rows(section: str) -> list[dict[str, str]]:
    found: Any = LISTS.sections[section]
    return list(found)


@cache
def _lists_packages() -> Callable[[str], bool]:
    row = next(row for row in _rows("read") if row.get("key") == "requirements")
    return _fits(row["names"].split())


def _packages(data: bytes) -> tuple[set[str], list[str]]:
    """The packages that are named with only a version, and the lines that say more."""
    found, more = set(), []
    for line in map(str.strip, data.decode("utf-8", "replace").splitlines()):
        pinned = _PINNED.fullmatch(line)
        if pinned is not None:
            found.add(re.sub(r"[-_.]+", "-", pinned[1]).casefold())
        elif line and line[0] != "#":
            more.append(line)
    return found, more


@cache
def _of_checks() -> Callable[[str], bool]:
    return _fits(LISTS.ordered("checks", "names"))


def _fits(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path ends as one of these patterns does; one that begins with a stroke fits from the top."""
    found = [translate(one[1:]) if one[0] == "/" else rf"(?:.*/)?{translate(one)}" for one in patterns]
    fits = re.compile("|".join(found), re.DOTALL).match
    return lambda path: fits(path) is not None


@cache
def _endings(section: str) -> dict[str, str]:
    rows = _rows(section)
    return {ending: row["reason"] for row in rows for ending in row["endings"].split()}


def _ending(name: str) -> str:
    return name.rpartition(".")[2].casefold() if "." in name[1:] else ""


def _ordinary(path: str, how: str) -> str:
    """Why a file of that ending is ordinary; empty where it is not."""
    ending = _ending(path.rpartition("/")[2])
    found = _endings("ordinary").get(ending, "")
    return found if found or how == "A" or "/" not in path else _endings("changed").get(ending, "")
