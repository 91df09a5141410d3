"""The file of a measured space: what it holds, what is refused, and whether it still fits its problem."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spak import data
from spak.errors import UsageError
from spak.spaces import Header, Row, cache, read, write
from spak.spaces.cache import Source

SPACE = {"WIDTH": [4, 8], "FORM": ["SUM", "SPLIT"], "require": ["WIDTH == 4 or FORM == 'SUM'"]}
HEADER = Header(
    problem=Source.of("own.py", b"problem"),
    template=Source.of("own_template.c", b"template"),
    space=SPACE,
    points=3,
    n=16,
    cpu="a processor",
    compiler="a compiler",
    measured="2026-01-02",
    rule={"turns": 5},
)
ROWS = [
    Row(0, {"FORM": "SUM", "WIDTH": 4}, "ok", "", 1200, 1000, 1300, 5, 900),
    Row(1, {"FORM": "SUM", "WIDTH": 8}, "void", "unsteady", 1500, 800, 1900, 20, 900),
    Row(2, {"FORM": "SPLIT", "WIDTH": 4}, "compile_error", "error"),
]
SHIPPED = sorted(data.path("specs/problems/spaces").glob("*.jsonl.gz"))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl.gz"
    write(path, HEADER, ROWS[::-1])
    found = read(path)
    assert (found.header, list(found.rows), found.space.size) == (HEADER, ROWS, 3)
    best = found.best()
    assert best is not None and best.number == 0
    before = path.read_bytes()
    write(path, HEADER, ROWS)
    assert path.read_bytes() == before and [item.name for item in tmp_path.iterdir()] == ["own.jsonl.gz"]


def lines(change: Callable[[list[dict[str, Any]]], Any]) -> bytes:
    """A cache's text with its lines changed."""
    found = [json.loads(line) for line in (cache.head_line(HEADER), *(row.line() for row in ROWS))]
    change(found)
    return gzip.compress("\n".join(map(json.dumps, found)).encode())


BAD: dict[str, bytes] = {
    "empty": b"",
    "not gzip": b"{}",
    "cut short": lines(lambda found: None)[:-30],
    "no lines": gzip.compress(b""),
    "no JSON": gzip.compress(b"\xff\n"),
    "deep": gzip.compress(b"[" * 100_000),
    "no header": lines(lambda found: found.pop(0)),
    "another format": lines(lambda found: found[0].update(format=2)),
    "a name is missing": lines(lambda found: found[0].pop("cpu")),
    "a name too many": lines(lambda found: found[0].update(more=1)),
    "a source without a hash": lines(lambda found: found[0].update(problem={"name": "own.py"})),
    "a bad space": lines(lambda found: found[0].update(space={"WIDTH": []})),
    "another number of points": lines(lambda found: found[0].update(points=4)),
    "a point is missing": lines(lambda found: found.pop()),
    "a point twice": lines(lambda found: found.append(found[1])),
    "another order": lines(lambda found: found.reverse() or found.insert(0, found.pop())),
    "no point of the space": lines(lambda found: found[1]["params"].update(WIDTH=16)),
    "an outcome that is none": lines(lambda found: found[1].update(outcome="fine")),
    "ok without times": lines(lambda found: found[3].update(outcome="ok")),
    "a negative time": lines(lambda found: found[1].update(least_ns=-1)),
    "times as texts": lines(lambda found: found[1].update(least_ns="1000")),
    "least above median": lines(lambda found: found[1].update(least_ns=1250)),
    "larger than its limit": gzip.compress(b"\0" * (cache.MAX_BYTES + 1), 1),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl.gz"
    path.write_bytes(BAD[name])
    with pytest.raises(UsageError) as caught:
        read(path)
    assert caught.value.code == "cache.format"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "own.jsonl.gz")
    assert caught.value.code == "usage.file"


def test_three_spaces_ship() -> None:
    large = [path for path in SHIPPED if read(path).header.points >= 2_000]
    assert len(large) >= 3


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_space_fits_its_problem(path: Path) -> None:
    """A problem or template that was changed does not fit its space any more: measure it again."""
    folder = data.path("specs/problems")
    found = read(path)
    header = found.header
    for source in (header.problem, header.template):
        assert Source.of(source.name, (folder / source.name).read_bytes()) == source
    assert path.stat().st_size < 300_000
    assert header.space == json.loads((folder / f"{Path(header.problem.name).stem}_space.json").read_text())
    assert header.cpu and header.compiler and header.measured and header.rule
    ok = sum(row.outcome == "ok" for row in found.rows)
    assert ok >= 0.9 * header.points
