"""guard(/symbols) where the model of the code cannot be made, or does not know all: denied, with a code."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from spak import data
from spak.datalog import Policy, load
from spak.paths import CODE, OURS
from spak.policy.actions import Action, World
from spak.policy.judge import Decision, judge
from spak.tools.observe.paths import Observer
from spak.tools.observe.predicates import knowing
from spak.world import store as stores
from world_kit import in_process

FILES = {
    "rate.py": "class Rate:\n    def at(self) -> int:\n        return 1\n",
    "price.py": "from rate import Rate\n\ndef price() -> int:\n    return Rate().at()\n",
    "bill.py": "from price import price\n\ndef bill() -> int:\n    return price()\n",
    "test_bill.py": "from bill import bill\n\ndef test_bill():\n    assert bill()\n",
}


@cache
def law() -> Policy:
    files = {path.name: path.read_text() for path in sorted(data.path("specs/policy").glob("*.mg"))}
    return load({**files, "POLICY": "guard(/symbols)."})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_process(monkeypatch)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def judged(root: Path) -> Decision:
    """What the law says of a change of rate.py."""
    eyes = Observer(root)
    world = World(eyes.look, eyes.spread, eyes.read, frozenset(), below=eyes.below)
    action = Action("write_file", {"path": "rate.py", "content": "x = 1\n"})
    return judge(law(), action, world, answers=knowing(root))


def index(root: Path) -> Path:
    return root / OURS / CODE


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def sql(path: Path, line: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(line)
        db.commit()


def test_a_change_whose_reach_is_tested_and_known_is_allowed(root: Path) -> None:
    assert judged(root).decision == "allow"


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda root: folder(index(root)), "world.store"),
        (lambda root: sql(index(root), "DROP TABLE link"), "world.store"),
        (lambda root: root.joinpath(*["d"] * 70).mkdir(parents=True), "world.too_large"),
    ],
    ids=["a-folder", "a-table-less", "too-deep"],
)
def test_a_model_that_cannot_be_made_denies_with_its_code(
    root: Path, damage: Callable[[Path], object], code: str
) -> None:
    assert judged(root).decision == "allow"
    damage(root)
    found = judged(root)
    assert (found.decision, found.code) == ("deny", code)


def test_an_index_that_another_process_writes_denies(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(root).decision == "allow"
    monkeypatch.setattr(stores, "BUSY_S", 0.01)
    (root / "bill.py").write_text(FILES["bill.py"] + "\n")
    with closing(sqlite3.connect(index(root), isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        found = judged(root)
    assert (found.decision, found.code) == ("deny", "world.busy")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text("no database"),
        lambda path: sql(path, "PRAGMA user_version = 1"),
        lambda path: sql(path, "UPDATE OR REPLACE tree SET root = '/elsewhere'"),
    ],
    ids=["missing", "no-database", "another-version", "another-folder"],
)
def test_an_index_that_is_missing_or_stale_is_made_anew_before_the_law_decides(
    root: Path, damage: Callable[[Path], object]
) -> None:
    assert judged(root).decision == "allow"
    damage(index(root))
    assert judged(root).decision == "allow"
    (root / "late.py").write_text("from bill import bill\n\ndef late():\n    return bill()\n")
    damage(index(root))
    found = judged(root)
    assert (found.decision, found.code) == ("deny", "policy.forbidden")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("more.py", b"def more(thing):\n    return thing.at()\n"),
        ("more.py", b"def more(thing):\n    return thing.bill()\n"),
        ("more.py", b"def more(thing):\n    return getattr(thing, 'at', None)\n"),
        ("more.py", b"from rate import Rate\n\ndef more(name):\n    return getattr(Rate(), name)()\n"),
        ("more.py", b"from rate import Rate\n\ndef more(name):\n    return getattr(Rate(), f'{name}t')()\n"),
        ("more.py", b"def more(:\n"),
        ("more.py", b"x = '\xe9'\n"),
        ("more.py", b"x = 1\0\n"),
        ("more.py", b"x = " + b"1+" * 30_000 + b"1\n"),
        ("test_bill.py", b"def test(:\n"),
    ],
    ids=[
        "receiver", "receiver-in-reach", "getattr", "computed", "formatted", "unparsed", "encoding", "binary",
        "minified", "test",
    ],
)  # fmt: skip
def test_what_is_not_known_in_reach_is_unsafe(root: Path, path: str, text: bytes) -> None:
    (root / path).write_bytes(text)
    found = judged(root)
    assert (found.decision, found.code) == ("deny", "policy.forbidden")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("more.js", "x='\udce9'"),
        ("vendor/more.py", "x = '\udce9'"),
        ("more.py", "def more(thing):\n    return getattr(thing, 'else')()\n"),
        ("more.py", "def more(thing, name):\n    return getattr(thing, name)()\n"),
    ],
    ids=["another-language", "vendored", "another-name", "no-import"],
)
def test_what_can_not_lead_there_denies_nothing(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_bytes(text.encode(errors="surrogateescape"))
    assert judged(root).decision == "allow"


def test_an_index_that_was_cut_is_made_anew_or_denies(root: Path) -> None:
    (root / "late.py").write_text("from bill import bill\n\ndef late():\n    return bill()\n")
    assert judged(root).decision == "deny"
    whole = index(root).read_bytes()
    for size in range(0, len(whole), 8192):
        index(root).write_bytes(whole[:size])
        assert judged(root).decision == "deny"
