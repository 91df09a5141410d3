"""The table of programs that do nothing but read and print (readers.toml), and what one reads by its words.

`reads` takes the words of a command; gives the paths that it reads, or None where the table does not say that
it does no more than that: an unknown program, an option that is not listed, a word that only a shell could
know.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_FILE = Path(__file__).resolve().parent / "readers.toml"
_TABLE: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
PLAIN_SHELLS = frozenset(_TABLE["shells"]["plain"].split())
SHELLS = PLAIN_SHELLS | frozenset(_TABLE["shells"]["others"].split())
_ABOVE = re.compile(r"(?:\A|/)\.[^/]*[*?\[]")
"""A pattern that some shell takes for the folder above too."""


@dataclass(frozen=True, slots=True)
class Said:
    """A word: its text as a program gets it, or unexpanded where a shell would expand it first."""

    text: str
    kind: Literal["known", "pattern", "unknown"] = "known"


@dataclass(frozen=True, slots=True)
class Read:
    """A path that is read."""

    path: str
    walks: bool = False
    """With all that is below it."""
    pattern: bool = False
    there: bool = False
    """It is no path of a program's reading unless it exists."""


@dataclass(frozen=True, slots=True)
class Starts:
    """A program that starts the command in its words."""

    flags: frozenset[str]
    values: frozenset[str]
    skip: int
    asks: bool
    """It does more than that, or for somebody else."""
    appends: bool
    """It appends more words to those of the command."""


@dataclass(frozen=True, slots=True)
class Row:
    """A program that only reads."""

    any: re.Pattern[str] | None
    """It opens nothing where each of its words fits."""
    texts: tuple[re.Pattern[str], ...]
    more: bool
    """Any number of further texts like the last."""
    paths: int
    there: bool
    flags: frozenset[str]
    values: frozenset[str]
    instead: frozenset[str]
    below: frozenset[str]
    needs: frozenset[str]


def _set(row: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(str(row.get(key, "")).split())


STARTS: Mapping[str, Starts] = {
    name: Starts(
        _set(row, "flags"),
        _set(row, "values"),
        int(row.get("skip", 0)),
        bool(row.get("asks")),
        bool(row.get("appends")),
    )
    for name, row in _TABLE["starts"].items()
}


def _row(row: Mapping[str, Any]) -> Row:
    if "like" in row:
        return _row(_TABLE["reads"][row["like"]])
    paths = row.get("paths", "0")
    return Row(
        re.compile(row["any"]) if "any" in row else None,
        tuple(map(re.compile, row.get("texts", ()))),
        bool(row.get("more")),
        10_000 if paths == "*" else int(paths),
        bool(row.get("there")),
        _set(row, "flags"),
        _set(row, "values"),
        _set(row, "instead"),
        _set(row, "below"),
        _set(row, "needs"),
    )


ROWS: Mapping[str, Row] = {name: _row(row) for name, row in _TABLE["reads"].items()}


def reads(said: Sequence[Said]) -> tuple[Read, ...] | None:
    """The paths that a command reads, where it does nothing else; None where it may."""
    if any(word.kind == "unknown" or _ABOVE.search(word.text) for word in said if word.kind != "known"):
        return None
    for length in (3, 2, 1):
        name = " ".join(word.text for word in said[:length])
        if len(said) >= length and name in ROWS:
            return _read(ROWS[name], said[length:])
    return None


def _read(row: Row, said: Sequence[Said]) -> tuple[Read, ...] | None:
    if row.any is not None:
        fit = all(word.kind == "known" and row.any.fullmatch(word.text) for word in said)
        return () if fit else None
    given: set[str] = set()
    operands: list[Said] = []
    rest, ended = list(said), False
    while rest:
        word = rest.pop(0)
        plain = word.text == "-" or not word.text.startswith("-")
        if ended or (plain and word.text not in row.flags):
            operands.append(word)
        elif word.text == "--":
            ended = True
        elif (found := _option(row, word, rest)) is None:
            return None
        else:
            given |= found
    wanted = () if row.instead & given else row.texts
    texts, paths = operands[: len(wanted)], operands[len(wanted) :]
    if row.more:
        texts, paths = operands, []
        wanted = wanted[-1:] * len(texts)
    fits = all(
        one.kind == "known" and pattern.fullmatch(one.text)
        for one, pattern in zip(texts, wanted, strict=False)
    )
    if not fits or len(paths) > row.paths or (row.needs and not row.needs & given):
        return None
    walks = "always" in row.below or bool(row.below & given)
    if any(one.text.startswith("@") for one in paths):  # a file of further words, to some
        return None
    named = [one for one in paths if one.text != "-"] or ([Said(".")] if walks and row.paths else [])
    return tuple(Read(one.text, walks, one.kind == "pattern", row.there) for one in named)


def _option(row: Row, word: Said, rest: list[Said]) -> set[str] | None:
    """The options that a word gives, its value taken from the next word; None for one that is not listed."""
    text = word.text
    name, joined, _ = text.partition("=")
    if word.kind != "known":
        return None
    if text in row.flags:
        return {text}
    if text in row.values:
        return {text} if rest and rest.pop(0).kind == "known" else None
    if joined and name in row.values and name.startswith("--"):
        return {name}
    if "-#" in row.flags and re.fullmatch(r"-\d{1,6}", text):
        return {"-#"}
    if text.startswith("--"):
        return None
    if text[:2] in row.values:  # a value after its letter
        return {text[:2]}
    letters = {f"-{letter}" for letter in text[1:]}
    last = f"-{text[-1]}"
    if last in row.values and letters - {last} <= row.flags:
        return letters if rest and rest.pop(0).kind == "known" else None
    return letters if letters and letters <= row.flags else None
