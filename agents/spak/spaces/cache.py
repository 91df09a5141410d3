"""A cache: one space of one problem, every point with its outcome and its time, as a file.

The file is JSON lines, compressed with gzip. The first line is the header, each other line is a point, in the
order in which the space numbers them:

    {"format": 1, "problem": {"name", "sha256"}, "template": {"name", "sha256"}, "space": {...},
     "points": 2160, "n": 192, "cpu": "...", "compiler": "...", "measured": "2026-11-28", "rule": {...}}
    {"params": {...}, "outcome": "ok", "median_ns", "least_ns", "high_ns", "turns", "anchor_ns"}
    {"params": {...}, "outcome": "compile_error" | "wrong" | "void", "code": "..."}

Takes bytes that anybody may have written; gives a Cache, or an error with a code. It measures nothing.
Raise FORMAT when a reader of the old format would misread the new one.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from spak.errors import UsageError, UserError
from spak.inputs import read_at_most
from spak.proposers import space as parsing
from spak.proposers.space import Space

FORMAT = 1
MAX_POINTS = 20_000
MAX_FILE_BYTES = 16 << 20
MAX_BYTES = 64 << 20
"""Of a file, as it lies there and decompressed."""

Outcome = Literal["ok", "compile_error", "wrong", "void"]
"""`wrong` compiled but failed a check; `void` could not be measured steadily."""

_TIMES = ("median_ns", "least_ns", "high_ns", "turns", "anchor_ns")
_HINT = "spak problem measure writes such files"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a cache was made from."""

    name: str
    sha256: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Source:
        """Of a file's content."""
        return cls(name, hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class Header:
    """What was measured, on what, and by which rule."""

    problem: Source
    template: Source
    space: Mapping[str, Any]
    points: int
    n: int
    cpu: str
    compiler: str
    measured: str
    """The day on which the measuring began, in UTC: YYYY-MM-DD."""
    rule: Mapping[str, int]

    def identity(self) -> dict[str, Any]:
        """All but the day: what two files share if one continues the other."""
        return {name: value for name, value in asdict(self).items() if name != "measured"}


@dataclass(frozen=True, slots=True)
class Row:
    """One point. Times are nanoseconds of CPU; all 0 where none was taken."""

    number: int
    params: Mapping[str, Any]
    outcome: Outcome
    code: str = ""
    """Why it is not ok: the code of docs/errors.md or of the check that failed."""
    median_ns: int = 0
    least_ns: int = 0
    high_ns: int = 0
    """Three quarters of the turns took no longer."""
    turns: int = 0
    anchor_ns: int = 0
    """The least time of the anchor, one kernel that is measured beside every group of points."""

    def line(self) -> str:
        """The row as a line of the file, without what is empty."""
        found: dict[str, Any] = {"params": self.params, "outcome": self.outcome}
        if self.code:
            found["code"] = self.code
        if self.turns:
            found |= {name: getattr(self, name) for name in _TIMES}
        return _line(found)


@dataclass(frozen=True, slots=True)
class Cache:
    """A space with all its points, by number."""

    header: Header
    rows: Sequence[Row]
    space: Space = field(repr=False)

    def best(self) -> Row | None:
        """The fastest point, by its median; None where no point is ok."""
        return fastest(self.rows)


def fastest(rows: Iterable[Row]) -> Row | None:
    """The row that is ok and has the lowest median; None where none is ok."""
    return min((row for row in rows if row.outcome == "ok"), key=lambda row: row.median_ns, default=None)


def read(path: Path) -> Cache:
    """The cache in a file. Raises: UsageError `cache.format`, `usage.file`."""
    try:
        data = read_at_most(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(
            "usage.file", f"{path}: {error.strerror}", "check the path and its rights"
        ) from error
    if data is None:
        raise _bad(path, f"more than {MAX_FILE_BYTES} bytes")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            text = unpacked.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _bad(path, f"not gzip, or damaged: {error}") from error
    if len(text) > MAX_BYTES:
        raise _bad(path, f"more than {MAX_BYTES} bytes when decompressed")
    first, *lines = text.split(b"\n")
    header = header_of(first, path)
    space = parsing.parse(header.space)
    rows = rows_of(lines, space, path)
    if [row.number for row in rows] != list(range(space.size)):
        raise _bad(path, f"{len(rows)} rows do not list the {space.size} points of the space in order")
    return Cache(header, tuple(rows), space)


def write(path: Path, header: Header, rows: Sequence[Row]) -> None:
    """Write the file whole or not at all; the same rows give the same bytes. Raises: OSError."""
    text = "\n".join([head_line(header), *(row.line() for row in sorted(rows, key=lambda row: row.number))])
    data = gzip.compress(text.encode() + b"\n", 9, mtime=0)
    aside = path.with_name(f"{path.name}.new")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)


def head_line(header: Header) -> str:
    """The header as a line of the file."""
    return _line({"format": FORMAT, **asdict(header)})


def header_of(line: bytes, path: Path) -> Header:
    """The header in a file's first line. Raises: UsageError `cache.format`."""
    value = _object(line, f"{path}, line 1")
    if value.pop("format", None) != FORMAT:
        raise _bad(path, f"the first line has no `format` {FORMAT}")
    kinds: Mapping[str, type] = {
        **dict.fromkeys(("problem", "template", "space", "rule"), dict),
        **dict.fromkeys(("points", "n"), int),
        **dict.fromkeys(("cpu", "compiler", "measured"), str),
    }
    if set(value) != set(kinds) or any(type(value[name]) is not kind for name, kind in kinds.items()):
        raise _bad(path, f"the header is not an object of {', '.join(kinds)}")
    try:
        sources = {name: Source(**value[name]) for name in ("problem", "template")}
        space = parsing.parse(value["space"])
    except TypeError as error:
        raise _bad(path, "`problem` and `template` have a `name` and a `sha256`") from error
    except UserError as error:
        raise _bad(path, error.message) from error
    if not space.size == value["points"] <= MAX_POINTS:
        raise _bad(
            path, f"`points` is {value['points']}, and the space has {space.size}; at most {MAX_POINTS}"
        )
    return Header(**{**value, **sources})


def rows_of(lines: Sequence[bytes], space: Space, path: Path) -> list[Row]:
    """The rows in the lines after the header. Raises: UsageError `cache.format`."""
    numbers = {_key(space.point(number)): number for number in range(space.size)}
    return [_row(line, numbers, f"{path}, line {at}") for at, line in enumerate(lines, 2) if line]


def _key(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True)


def _row(line: bytes, numbers: Mapping[str, int], where: str) -> Row:
    value = _object(line, where)
    params, outcome, code = value.pop("params", None), value.pop("outcome", None), value.pop("code", "")
    number = numbers.get(_key(params)) if isinstance(params, dict) else None
    if number is None:
        raise _bad(where, "`params` is not a point of the space")
    if outcome not in get_args(Outcome) or not isinstance(code, str):
        raise _bad(where, f"`outcome` is not one of {', '.join(get_args(Outcome))}")
    if set(value) not in (set(), set(_TIMES)) or not all(
        type(item) is int and item >= 0 for item in value.values()
    ):
        raise _bad(where, f"the times are not whole numbers of nanoseconds named {', '.join(_TIMES)}")
    if outcome == "ok" and not 0 < value.get("least_ns", 0) <= value["median_ns"] <= value["high_ns"]:
        raise _bad(where, "a point that is ok has times, the least above 0")
    return Row(number, params, outcome, code, **value)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(where, "not a line of JSON") from error
    if not isinstance(value, dict):
        raise _bad(where, "not an object")
    return value


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _bad(where: Path | str, message: str) -> UsageError:
    return UsageError("cache.format", f"{where}: {message}", _HINT)
