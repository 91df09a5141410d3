"""The snapshot of a run folder: what it spares, and everything that makes it worthless without harm."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spak import canon
from spak.errors import LedgerError
from spak.kernel.snapshot import Snapshot
from spak.ledger import FileLedgers, snapshots
from spak.ledger.scan import head_at
from spak.records import Record


def act(number: int, out: str = "o") -> Record:
    return Record("act", "proposal", {"n": number, "out": out}, "Main", "s1", number, at=18)


@pytest.fixture
def ledgers(tmp_path: Path) -> FileLedgers:
    """A run of six records whose snapshot knows three."""
    found = FileLedgers(tmp_path / "runs")
    ledger = found.create("r1", Record("genesis", "proposal", {"host": {"run": "r1"}, "rules": {}}, at=17))
    ledger.append([act(1), act(2, "x" * 3_000_000)])
    ledger.flush()
    ledger.keep(Snapshot(ledger.count, ledger.head, b"the state"))
    ledger.append([act(3), act(4), act(5)])
    ledger.close()
    return found


def folder(ledgers: FileLedgers) -> Path:
    return ledgers.root / "r1"


def change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))


def header(path: Path, **members: Any) -> None:
    first, _, data = path.read_bytes().partition(b"\n")
    path.write_bytes(canon.dumps({**canon.loads(first), **members}) + b"\n" + data)


def test_lines_that_a_snapshot_knows_are_not_read_one_by_one(
    ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spak.ledger import scan

    seen: list[int] = []
    follow = scan.follow

    def counted(*args: Any) -> Any:
        for record, line in follow(*args):
            seen.append(record.seq)
            yield record, line

    monkeypatch.setattr(scan, "follow", counted)
    ledger = ledgers.open("r1")
    assert seen == [3, 4, 5] and (ledger.count, ledger.kept()) == (
        6,
        Snapshot(3, head(ledgers), b"the state"),
    )
    ledger.close()


def head(ledgers: FileLedgers) -> str:
    return [record.hash for record, _ in ledgers.reader("r1").read()][2]


def lose_the_end(ledgers: FileLedgers) -> None:
    path = folder(ledgers) / "trace.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def put_a_folder(ledgers: FileLedgers) -> None:
    (folder(ledgers) / "snapshot").unlink()
    (folder(ledgers) / "snapshot").mkdir()


DOUBTS: dict[str, Callable[[FileLedgers], None]] = {
    "empty": lambda at: change(folder(at) / "snapshot", (folder(at) / "snapshot").read_bytes(), b""),
    "cut": lambda at: change(folder(at) / "snapshot", b"the state", b"the"),
    "another byte": lambda at: change(folder(at) / "snapshot", b"the state", b"the stat3"),
    "no JSON": lambda at: change(folder(at) / "snapshot", b'{"count"', b'{"count'),
    "another count": lambda at: header(folder(at) / "snapshot", count=2),
    "a count that is none": lambda at: header(folder(at) / "snapshot", count=True),
    "another head": lambda at: header(folder(at) / "snapshot", head=canon.ZERO),
    "another size": lambda at: header(folder(at) / "snapshot", size=400),
    "more than there is": lambda at: header(folder(at) / "snapshot", size=1 << 40),
    "less than nothing": lambda at: header(folder(at) / "snapshot", size=-1),
    "another prefix": lambda at: header(folder(at) / "snapshot", prefix="0" * 64),
    "records lost with the power": lose_the_end,
    "a folder": put_a_folder,
}


@pytest.mark.parametrize("doubt", DOUBTS.values(), ids=DOUBTS)
def test_a_snapshot_in_doubt_is_not_used(ledgers: FileLedgers, doubt: Callable[[FileLedgers], None]) -> None:
    doubt(ledgers)
    lines = (folder(ledgers) / "trace.jsonl").read_bytes().splitlines(keepends=True)
    ledger = ledgers.open("r1")
    assert [line for _, line in ledger.read()] == lines and ledger.count == len(lines)
    with pytest.raises(LedgerError) as caught:
        ledger.kept()
    assert caught.value.code == "ledger.snapshot_discarded"
    ledger.append([act(9)])
    ledger.flush()
    ledger.keep(Snapshot(ledger.count, ledger.head, b"next"))
    ledger.close()
    again = ledgers.open("r1")
    assert again.count == len(lines) + 1
    if doubt is not DOUBTS["a folder"]:  # in whose place no file can be put
        assert again.kept() == Snapshot(again.count, again.head, b"next")
    again.close()


@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_a_changed_record_is_found_wherever_it_is(ledgers: FileLedgers, at: int) -> None:
    change(folder(ledgers) / "trace.jsonl", b'"n":%d' % at, b'"n":9')
    with pytest.raises(LedgerError) as caught:
        ledgers.open("r1")
    assert caught.value.code == "ledger.tampered" and f"record {at} " in caught.value.message


def test_a_torn_line_after_it_is_cut(ledgers: FileLedgers) -> None:
    with (folder(ledgers) / "trace.jsonl").open("ab") as file:
        file.write(b'{"#":"torn')
    ledger = ledgers.open("r1")
    assert (ledger.healed, ledger.count) == (10, 6) and ledger.kept() is not None
    ledger.append([act(6)])
    ledger.close()
    assert ledgers.reader("r1").count == 7


def test_a_disk_that_takes_no_snapshot_is_no_error(
    ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> Any:
        raise OSError(errno.ENOSPC, "full")

    ledger = ledgers.open("r1")
    monkeypatch.setattr(snapshots, "open_file", full)
    ledger.keep(Snapshot(ledger.count, ledger.head, b"new"))
    ledger.close()
    again = ledgers.open("r1")
    assert again.kept() == Snapshot(3, head(ledgers), b"the state")
    again.close()


def test_a_snapshot_is_for_its_owner_alone(ledgers: FileLedgers) -> None:
    assert (folder(ledgers) / "snapshot").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in folder(ledgers).iterdir()} == {"trace.jsonl", "lock", "snapshot"}


@pytest.mark.parametrize("line", [10, 5_000, (1 << 20) - 60, 1 << 20, 3_000_000])
def test_the_head_is_that_of_the_line_which_ends_there(tmp_path: Path, line: int) -> None:
    path, before, hash_ = tmp_path / "f", b'{"#":"%s","x":1}\n' % (b"B" * 43), "C" * 43
    text = b'{"#":"%s",' % hash_.encode() + b"x" * line + b"}\n"
    path.write_bytes(before + text + b"more")
    assert head_at(path, len(before) + len(text)) == hash_
    assert head_at(path, len(before)) == "B" * 43


def test_records_from_any_place_on(ledgers: FileLedgers) -> None:
    """Looked for from the nearest of the ends and the snapshot, over a line longer than one piece."""
    whole = [line for _, line in ledgers.reader("r1").read()]
    with ledgers.open("r1") as held:
        for ledger in (held, ledgers.reader("r1"), ledgers.viewer("r1")):
            for start in range(-1, 8):
                assert [line for _, line in ledger.read(start)] == whole[max(start, 0) :]
        held.append([act(6)])
        assert [record.seq for record, _ in held.read(5)] == [5, 6]
