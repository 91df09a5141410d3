"""`spak problem measure`: every point of a small space, outcomes, going on after a stop, what is refused."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from cli_kit import spak
from spak.errors import UsageError
from spak.ports import Limits
from spak.sandbox.restricted import Restricted
from spak.spaces import Header, measure, read
from spak.spaces.cache import Source
from spak.spaces.measure import Place, Progress, Task
from validator_calls import toolchain

PROBLEM = b"""
import numpy as np
prototype = "void scale(long n, const float *x, float *y)"
sizes = {"least": 1, "most": 24, "timed": 16}
kinds = ["usual", "zeros"]
tolerance = {"rel": 1e-6}
def shapes(n): return {"x": (n, 8), "y": (n, 8)}
def flops(n): return 8 * n
def inputs(random, n, kind):
    x = random.standard_normal((n, 8), dtype=np.float32)
    return {"x": x * 0 if kind == "zeros" else x}
def reference(n, x):
    return 3 * x.astype(np.float64)
"""
TEMPLATE = b"""
#define RIGHT 1
#define WRONG 2
#define BROKEN 3
#define DIES 4
#define WRITES 5
#if FORM == BROKEN
#error "this one does not compile"
#endif
void scale(long n, const float *x, float *y) {
    for (volatile long turn = 0; turn < 20000L * TURNS; turn++)
        ;
    for (long i = 0; i < 8 * n; i++)
        y[i] = (FORM == WRONG ? 2 : 3) * x[i];
    if (FORM == DIES)
        __builtin_trap();
    if (FORM == WRITES)
        ((float *)x)[0] += 1;
}
"""
SPACE: dict[str, Any] = {
    "FORM": ["RIGHT", "WRONG", "BROKEN", "DIES", "WRITES"],
    "TURNS": [1, 2],
    "FLAGS": ["-O1"],
    "require": ["FORM == 'RIGHT' or TURNS == 1"],
}
TASK = Task(("own.py", PROBLEM), ("own_template.c", TEMPLATE), SPACE)


def place(folder: Path) -> Place:
    folder.mkdir()
    folder.chmod(0o755)
    return Place(Restricted(), toolchain(), Limits(), folder, "a processor", "a compiler")


def outcomes(rows: Any) -> dict[str, tuple[str, str]]:
    return {
        f"{row.params['FORM']} {row.params['TURNS']}": (
            "ok" if row.turns else row.outcome,
            "" if row.turns else row.code,
        )
        for row in rows
    }


@pytest.mark.sandbox
def test_every_point_gets_its_outcome(tmp_path: Path) -> None:
    path, seen = tmp_path / "own.jsonl.gz", list[Progress]()
    done = measure.measure(TASK, place(tmp_path / "work"), path, seen.append)
    found = read(path)
    assert outcomes(found.rows) == {
        "RIGHT 1": ("ok", ""),
        "RIGHT 2": ("ok", ""),
        "WRONG 1": ("wrong", "incorrect"),
        "BROKEN 1": ("compile_error", "error"),
        "DIES 1": ("wrong", "died"),
        "WRITES 1": ("wrong", "wrote_inputs"),
    }
    assert (done.done, sum(done.counts().values())) == (6, 6) and seen
    assert found.header.problem == Source.of("own.py", PROBLEM)
    assert (found.header.n, found.header.cpu, found.header.rule["turns"]) == (
        16,
        "a processor",
        measure.TURNS,
    )
    assert not path.with_name("own.jsonl.gz.part").exists()


@pytest.mark.sandbox
def test_it_goes_on_where_it_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, part = tmp_path / "own.jsonl.gz", tmp_path / "own.jsonl.gz.part"
    monkeypatch.setattr(measure, "GROUP", 2)
    begun = measure.measure(TASK, place(tmp_path / "one"), path, lambda progress: None, lambda: True)
    assert begun.done < 6 and not path.exists()
    before = part.read_bytes()
    part.write_bytes(before + b'{"params":{"FORM":"RI')
    measured: list[int] = []
    whole = measure._Measuring._group

    def watched(self: Any, group: Any) -> Any:
        measured.extend(group)
        return whole(self, group)

    monkeypatch.setattr(measure._Measuring, "_group", watched)
    done = measure.measure(TASK, place(tmp_path / "two"), path, lambda progress: None)
    kept = {row.number for row in begun.rows if row.outcome != "void"}
    assert done.done == 6 and not kept & set(measured)
    rows = {row.number: row for row in read(path).rows}
    assert all(rows[row.number] == row for row in begun.rows if row.outcome != "void")
    again = measure.measure(TASK, place(tmp_path / "three"), path, lambda progress: None)
    assert again.done == 6 and list(again.rows) == list(read(path).rows)


@pytest.mark.sandbox
def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl.gz"
    measure.measure(TASK, place(tmp_path / "one"), path, lambda progress: None)
    before = path.read_bytes()
    other = Task(TASK.problem, ("own_template.c", TEMPLATE + b"\n"), SPACE)
    for name in (path.name, f"{path.name}.part"):  # the finished one, then one that is begun
        if name.endswith(".part"):
            (tmp_path / name).write_bytes(measure.cache.head_line(read(path).header).encode() + b"\n")
            path.rename(tmp_path / "kept")
        with pytest.raises(UsageError) as caught:
            measure.measure(other, place(tmp_path / f"work {name}"), path, lambda progress: None)
        assert caught.value.code == "cache.other" and "template" in caught.value.message
    assert (tmp_path / "kept").read_bytes() == before


@pytest.mark.sandbox
def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl.gz"
    with (tmp_path / "own.jsonl.gz.part").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError) as caught:
            measure.measure(TASK, place(tmp_path / "work"), path, lambda progress: None)
    assert caught.value.code == "cache.busy"


def test_a_space_that_is_too_large(tmp_path: Path) -> None:
    task = Task(TASK.problem, TASK.template, {"A": {"range": [1, 200]}, "B": {"range": [1, 200]}})
    with pytest.raises(UsageError) as caught:
        measure.measure(task, place(tmp_path / "work"), tmp_path / "own.jsonl.gz", lambda progress: None)
    assert caught.value.code == "cache.space"
    assert [item.name for item in tmp_path.iterdir()] == ["work"]


SOURCES = [Source.of(*pair) for pair in (TASK.problem, TASK.template)]
HEADER = Header(*SOURCES, SPACE, 6, 16, "", "", "", {})
JUDGED: dict[str, tuple[list[int], bool, tuple[str, str]]] = {
    "steady": ([100, 101, 102, 300, 400], False, ("ok", "")),
    "unsteady": ([100, 101, 103, 103, 103], False, ("void", "unsteady")),
    "too few": ([100, 100], False, ("void", "unsteady")),
    "of a slower time": ([100, 101, 102, 102, 103], True, ("void", "drift")),
    "a clock that stood still": ([0, 101, 101, 101, 101], False, ("void", "zero_sample")),
}


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_steady(name: str) -> None:
    times, drifted, expected = JUDGED[name]
    space = measure.parsing.parse(SPACE)
    row = measure._Measuring(TASK, None, space, HEADER, {})._row(0, "", times, 50, drifted)  # type: ignore[arg-type]
    assert (row.outcome, row.code) == expected
    if expected[0] == "ok":
        assert (row.least_ns, row.median_ns, row.high_ns, row.turns, row.anchor_ns) == (100, 102, 300, 5, 50)


def test_what_kernels_print_is_no_answer() -> None:
    printed = (
        b'hello\n{"kernel": "k9.so", "code": ""}\n[]\n{"kernel": []}\n'
        b'{"kernel": "k1.so", "times": [-1]}\n{"kernel": "k1.so", "code": ""}\n'
    )
    assert measure._answers(printed, {"k1.so": 1, "k2.so": 2}, "died") == ({1: ""}, {})
    assert measure._answers(printed, {"k1.so": 1}, "timeout") == ({1: "timeout"}, {})


@pytest.mark.sandbox
def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_bytes(PROBLEM)
    (tmp_path / "own_template.c").write_bytes(TEMPLATE)
    small = {**SPACE, "FORM": ["RIGHT"], "require": ["TURNS == 1"]}
    (tmp_path / "own_space.json").write_text(json.dumps(small))
    code, seen = spak(tmp_path, "problem", "measure", "own.py", "--out", "own.jsonl.gz", "--json")
    assert (code, seen["points"], seen["done"], seen["cache"]) == (0, 1, 1, "own.jsonl.gz")
    assert sum(seen["outcomes"].values()) == 1 and read(tmp_path / "own.jsonl.gz").header.n == 16


REFUSED: dict[str, tuple[dict[str, str], int, str]] = {
    "no template": ({"own_template.c": ""}, 2, "usage.file"),
    "no space": ({"own_space.json": ""}, 2, "usage.file"),
    "a space that is no JSON": ({"own_space.json": "{"}, 2, "tuner.space"),
    "a space that is no object": ({"own_space.json": "[1]"}, 2, "tuner.space"),
    "a space without parameters": ({"own_space.json": "{}"}, 2, "tuner.space"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_command_refuses(name: str, tmp_path: Path) -> None:
    files, expected, error = REFUSED[name]
    given = {
        "own.py": PROBLEM.decode(),
        "own_template.c": TEMPLATE.decode(),
        "own_space.json": json.dumps(SPACE),
    }
    for file, text in {**given, **files}.items():
        if text:
            (tmp_path / file).write_text(text)
    code, seen = spak(tmp_path, "problem", "measure", "own.py", "--out", "own.jsonl.gz", "--json")
    assert (code, seen["error"]["code"]) == (expected, error)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.sandbox
@pytest.mark.parametrize(("more", "expected"), [(("--n", "99"), "problem.size"), ((), "problem.failed")])
def test_a_problem_that_cannot_be_measured_by(more: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    text = PROBLEM if more else PROBLEM.replace(b"return 3", b"raise ValueError\n    return 3")
    (tmp_path / "own.py").write_bytes(text)
    (tmp_path / "own_template.c").write_bytes(TEMPLATE)
    (tmp_path / "own_space.json").write_text(json.dumps(SPACE))
    code, seen = spak(tmp_path, "problem", "measure", "own.py", "--out", "own.jsonl.gz", "--json", *more)
    assert (code, seen["error"]["code"]) == (3, expected)
