"""A suite as a folder: cases, hashes, splits, the ledger of its own, and what can be wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from process_kit import WAIT_S
from spak.errors import SuiteError
from spak.evolve.suites import SPLITS, Book, Case, Check, Right, Suite
from spak.evolve.suites.book import draw
from spak.evolve.suites.model import read_case


def written(suite: Path, name: str, files: Mapping[str, str] | None = None, **members: Any) -> Path:
    """A case written by hand."""
    folder = suite / name
    for path, text in (files or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "case.json").write_text(json.dumps({"case": 1, **members}))
    return folder


def codes(suite: Path) -> list[str]:
    return sorted(problem.code for problem in Suite.open(suite).problems())


def test_a_case_is_named_by_what_decides_in_it(tmp_path: Path) -> None:
    one = read_case(written(tmp_path, "one", {"workspace/a.txt": "a"}, seed=1, tags=["x"]))
    same = read_case(written(tmp_path, "same", {"workspace/a.txt": "a"}, seed=1, origin={"run": "r"}))
    assert one.hash == same.hash
    others = [
        written(tmp_path, "o1", {"workspace/a.txt": "b"}, seed=1),
        written(tmp_path, "o2", {"workspace/b.txt": "a"}, seed=1),
        written(tmp_path, "o3", {"workspace/a.txt": "a"}, seed=2),
        written(tmp_path, "o4", {"workspace/a.txt": "a"}, seed=1, right={"state": "refused"}),
        written(tmp_path, "o5", {"workspace/a.txt": "a"}, seed=1, inputs={"n": 1}),
        written(tmp_path, "o6", {"workspace/a.txt": "a", "recording.jsonl": ""}, seed=1),
    ]
    assert len({one.hash, *(read_case(folder).hash for folder in others)}) == 7
    executable = tmp_path / "one/workspace/a.txt"
    executable.chmod(0o755)
    assert read_case(tmp_path / "one").hash != one.hash


@pytest.mark.parametrize(
    "members",
    [
        {"case": 2},
        {"right": {"state": "running"}},
        {"right": {"sealed": [{"cmd": "true"}]}},
        {"right": {"sealed": [{"cmd": ["true"], "timeout_s": 0}]}},
        {"right": {"files": {"a": 1}}},
        {"right": {"wrong": 1}},
        {"seed": -1},
        {"seed": True},
        {"inputs": []},
        {"tags": "x"},
        {"unknown": 1},
    ],
)
def test_a_case_that_is_none_is_refused(tmp_path: Path, members: dict[str, Any]) -> None:
    folder = written(tmp_path, "c", **members)
    with pytest.raises(SuiteError) as found:
        read_case(folder)
    assert found.value.code == "suite.case"


def test_sealed_files_without_a_command_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"right\.sealed"):
        read_case(written(tmp_path, "c", {"sealed/check.py": "pass"}))


def test_problems_are_all_named(tmp_path: Path) -> None:
    assert codes_of_empty(tmp_path / "none") == ["suite.empty"]
    suite = tmp_path / "suite"
    written(suite, "one", seed=1)
    assert codes(suite) == ["suite.unlisted"]
    Suite.open(suite).enter()
    assert codes(suite) == []
    written(suite, "one", seed=2)
    assert codes(suite) == ["suite.changed"]
    Suite.open(suite).enter()
    written(suite, "two", seed=2)
    Suite.open(suite).enter()
    assert codes(suite) == ["suite.duplicate"]
    (suite / "two/case.json").unlink()
    assert codes(suite) == ["suite.missing"]
    (suite / "two").rmdir()
    assert codes(suite) == ["suite.missing"]
    with pytest.raises(SuiteError) as found:
        Suite.open(suite).sound()
    assert found.value.code == "suite.missing"


def codes_of_empty(suite: Path) -> list[str]:
    with pytest.raises(SuiteError) as found:
        Suite.open(suite)
    assert found.value.code == "suite.none"
    suite.mkdir()
    return codes(suite)


def test_a_recording_holds_an_answer(tmp_path: Path) -> None:
    for text, wanted in (('{"text":"a"}\n', []), ("none\n", ["suite.recording"]), ("", ["suite.recording"])):
        written(tmp_path, "c", {"recording.jsonl": text}, semantics=4)
        Suite.open(tmp_path).enter()
        assert codes(tmp_path) == wanted


def test_a_split_is_drawn_once_for_a_name_and_by_shares(tmp_path: Path) -> None:
    for number in range(60):
        written(tmp_path, f"c{number}", seed=number)
    suite = Suite.open(tmp_path).enter()
    first = {case.name: suite.split(case) for case in suite.cases}
    for number in range(60):
        written(tmp_path, f"c{number}", seed=1_000 + number)
    again = Suite.open(tmp_path).enter()
    assert {case.name: again.split(case) for case in again.cases} == first
    assert set(first.values()) == set(SPLITS)
    drawn = [draw(7, str(number)) for number in range(10_000)]
    for split, share in SPLITS.items():
        assert abs(drawn.count(split) / 100 - share) < 2


def test_looks_are_counted_and_a_book_of_another_kind_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "c")
    suite = Suite.open(tmp_path).enter()
    assert suite.book.looks == 0
    assert suite.book.look("anna", "e1", ["c"]).look("anna", "e2", ["c"]).looks == 2
    assert Book.read(tmp_path).entries == suite.book.entries
    other = tmp_path / "other"
    (other / "ledger").mkdir(parents=True)
    from spak.ledger.files import FileLedgers
    from spak.records import Authority, Kind, Record

    (other / "ledger").rmdir()
    FileLedgers(other).create("ledger", Record(Kind.GENESIS, Authority.HOST, {"x": 1})).close()
    with pytest.raises(SuiteError) as found:
        Suite.open(other)
    assert found.value.code == "suite.ledger"


def test_a_case_is_added_whole_or_not_at_all(tmp_path: Path) -> None:
    case = Case("c", tmp_path, seed=3, right=Right())

    def half(place: Path) -> None:
        (place / "workspace").mkdir()
        raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        Suite.open(tmp_path / "s", new=True).add(case, half, None)
    assert list((tmp_path / "s").iterdir()) == []
    suite = Suite.open(tmp_path / "s").add(case, lambda place: None, None)
    assert [item.name for item in suite.cases] == ["c"]
    for name, code in (("c", "suite.exists"), ("d", "suite.duplicate"), ("../d", "suite.case")):
        with pytest.raises(SuiteError) as found:
            suite.add(replace(case, name=name), lambda place: None, None)
        assert found.value.code == code
    assert suite.problems() == []


CHECKS = (Check(("false",)),)

KILLED = """
import os, sys
from pathlib import Path
from spak.evolve.suites import Book, Check, Suite
left, real, enter = int(sys.argv[2]), Path.rename, Book.enter

def counted(act):
    def doing(*args):
        global left
        left -= 1
        if left == 0:
            os._exit(9)
        return act(*args)
    return doing

Path.rename, Book.enter = counted(real), counted(enter)
Suite.open(Path(sys.argv[1])).seal("c", (Check(("false",)),), "", lambda place: None, None)
os._exit(0)
"""


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_case_is_sealed_whole_or_not_at_all_when_it_is_killed(tmp_path: Path, step: int) -> None:
    suite = Suite.open(tmp_path, new=True).add(Case("c", tmp_path, right=Right()), lambda place: None, None)
    before = suite.cases[0].hash, suite.split(suite.cases[0])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(step)], timeout=WAIT_S, check=False
    )
    assert done.returncode == (9 if step < 4 else 0)
    after = Suite.open(tmp_path).add(Case("d", tmp_path, seed=1), lambda place: None, None)
    assert after.problems() == []
    found = after.cases[0]
    assert after.split(found) == before[1]
    assert (found.hash == before[0]) is (step < 4) and bool(found.right.sealed) is (step == 4)
    again = after if step == 4 else after.seal("c", CHECKS, "", lambda place: None, None)
    assert again.cases[0].right.sealed == CHECKS and again.problems() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d", "ledger"]


def test_a_case_that_was_changed_or_is_sealed_or_unknown_gets_no_checks(tmp_path: Path) -> None:
    written(tmp_path, "a")
    written(tmp_path, "b", seed=1, right={"sealed": [{"cmd": ["false"]}]})
    suite = Suite.open(tmp_path).enter()
    written(tmp_path, "a", seed=2)
    for name, code in (("a", "suite.changed"), ("b", "suite.sealed"), ("c", "suite.missing")):
        with pytest.raises(SuiteError) as found:
            Suite.open(tmp_path).seal(name, CHECKS, "", lambda place: None, None)
        assert found.value.code == code
    assert Book.read(tmp_path).entries == suite.book.entries


def test_a_case_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "c1").mkdir()
    (tmp_path / "c1/case.json").write_text("{")
    with pytest.raises(SuiteError) as found:
        Suite.open(tmp_path).sound()
    assert found.value.code == "suite.case" and found.value.message.count("c1") == 1
