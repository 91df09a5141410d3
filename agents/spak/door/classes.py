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

from spak.word_lists import WordLists

LISTS = WordLists(Path(__file__).resolve().parent / "classes.toml")
PROSE = frozenset({"md", "rst", "txt", "adoc"})
"""Endings of what may be new at the top."""
HARMLESS_DOTS = frozenset({".gitkeep", ".keep"})
"""Names with a dot that say nothing: they keep an empty folder."""


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
    """What surrounds the changes: folders at the top that were there, and what is there after them."""

    tops: frozenset[str]
    exists: Callable[[str], bool]


def named(path: str, how: str, around: Around, *, new_x: bool = False) -> tuple[Class, str]:
    """The class of a plain file that is no secret, and why; `how` is A, M or D as git has them."""
    name = path.rpartition("/")[2]
    why = read_by(path)
    if not why and how != "D":
        why = _unknown(path, name, how, around) or ("it is new as a program (mode x)" if new_x else "")
    if why:
        return Class.RUNS, why
    return (Class.CHECKS, "a test, or read by one") if is_check(path) else (Class.ORDINARY, _ordinary(name))


def _unknown(path: str, name: str, how: str, around: Around) -> str:
    """Why it is not known what takes a changed file up; else empty."""
    if not _ordinary(name) and name.casefold() not in HARMLESS_DOTS:
        return "not known what takes a file of this ending up"
    top, below, _ = path.partition("/")
    if how != "A":
        return ""
    if below and top not in around.tops:
        return f"the folder {top} is new at the top"
    if not below and _ending(name) not in PROSE:
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
    packaged = around.exists(f"{folder}/__init__.py".lstrip("/"))
    if stem in LISTS.names("shadows", "imported") and not packaged:
        return f"it may be imported in the place of {stem}"
    return ""


@lru_cache(1 << 14)
def read_by(path: str) -> str:
    """Which tool reads a file of this path by itself, in words; empty where none is known to."""
    dotted = next(
        (part for part in path.split("/") if part[0] == "." and part.casefold() not in HARMLESS_DOTS), ""
    )
    if dotted:
        return f"{dotted}: tools read names with a dot by themselves"
    low = path.casefold()
    by = next((by for fits, by in _read() if fits(low)), "")
    return f"read by {by}" if by else ""


@lru_cache(1 << 14)
def is_check(path: str) -> bool:
    """Whether it is a test, or lies among what tests read."""
    low = path.casefold()
    *folders, _ = low.split("/")
    return not LISTS.names("checks", "folders").isdisjoint(folders) or _of_checks()(low)


@cache
def _read() -> tuple[tuple[Callable[[str], bool], str], ...]:
    rows = LISTS.sections["read"]
    return tuple((_fits(str(row["names"]).split()), row["by"]) for row in rows)  # type: ignore[index]


@cache
def _of_checks() -> Callable[[str], bool]:
    return _fits(LISTS.ordered("checks", "names"))


def _fits(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path ends as one of these patterns does; one that begins with a stroke fits from the top."""
    found = [translate(one[1:]) if one[0] == "/" else rf"(?:.*/)?{translate(one)}" for one in patterns]
    fits = re.compile("|".join(found), re.DOTALL).match
    return lambda path: fits(path) is not None


@cache
def _endings() -> dict[str, str]:
    rows = LISTS.sections["ordinary"]
    return {ending: row["reason"] for row in rows for ending in row["endings"].split()}  # type: ignore[index]


def _ending(name: str) -> str:
    return name.rpartition(".")[2].casefold() if "." in name[1:] else ""


def _ordinary(name: str) -> str:
    """Why a file of that ending is ordinary; empty where it is not."""
    return _endings().get(_ending(name), "")
