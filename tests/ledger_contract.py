"""The contract of a ledger, for every store that has one.

A test module of a store imports all of it and gives two fixtures: `ledgers`, an empty store, and `targets`,
which makes an empty store in a folder for each kind that an export may go to.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from process_kit import WAIT_S
from spak import canon
from spak.errors import LedgerError, UserError
from spak.kernel.snapshot import Snapshot
from spak.ledger import export, import_, verify
from spak.ports import Ledgers
from spak.records import Record, chain_hash

Targets = Sequence[Callable[[Path], Ledgers]]


def genesis(run: str = "r1") -> Record:
    return Record("genesis", "proposal", {"rules": {"spec": "…"}, "host": {"run": run}}, at=1_700_000_000_000)


def act(number: int) -> Record:
    return Record("act", "proposal", {"of": "x", "n": number}, "Main", "s1", number, at=5, side={"ms": 1.5})


def test_a_run_begins_with_its_genesis(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    ((record, line),) = ledger.read()
    assert (ledger.run, ledger.count, ledger.head) == ("r1", 1, record.hash)
    assert record.seq == 0 and record.hash == chain_hash(line, canon.ZERO)
    assert record.body == {"rules": {"spec": "…"}, "host": {"run": "r1"}}
    assert ledgers.runs() == ["r1"]


def test_records_come_back_as_they_were_written(ledgers: Ledgers) -> None:
    with ledgers.create("r1", genesis()) as ledger:
        written = ledger.append([act(1), act(2)]) + ledger.append([]) + ledger.append([act(3)])
        ledger.flush()
        assert [record.seq for record in written] == [1, 2, 3]
        assert ledger.count == 4 and ledger.head == written[-1].hash
        assert [record for record, _ in ledger.read(1)] == written
        assert [record.seq for record, _ in ledger.read(3)] == [3]
        assert list(ledger.read(4)) == [] and list(ledger.read(400)) == []
        head = ledger.head
    again = ledgers.open("r1")
    assert (again.count, again.head) == (4, head)
    assert [record for record, _ in again.read(1)] == written
    again.close()


def test_reading_sees_the_records_of_its_beginning(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    seen = []
    for record, _ in ledger.read():
        seen.append(record.seq)
        if ledger.count < 50:
            ledger.append([act(1)])
    assert seen[0] == 0 and ledger.count == 2


def test_a_body_that_is_not_json_writes_nothing(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    before = (ledger.count, ledger.head)
    with pytest.raises(UserError) as caught:
        ledger.append([act(1), Record("act", "proposal", {"x": float("nan")})])
    assert caught.value.code == "canon.value"
    assert (ledger.count, ledger.head) == before and len(list(ledger.read())) == 1
    ledger.append([act(1)])
    assert len(list(ledger.read())) == 2


def test_one_writer_at_a_time(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    started = time.monotonic()
    with pytest.raises(LedgerError) as caught:
        ledgers.open("r1")
    assert caught.value.code == "ledger.busy" and caught.value.hint and time.monotonic() - started < 30
    ledgers.create("r2", genesis("r2")).close()
    ledger.close()
    ledger.close()
    ledgers.open("r1").close()


def test_a_held_lease_is_waited_for_up_to_the_deadline(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    started = time.monotonic()
    with pytest.raises(LedgerError) as caught:
        ledgers.open("r1", wait_s=0.3)
    assert caught.value.code == "ledger.busy" and time.monotonic() - started >= 0.3
    timer = threading.Timer(0.2, ledger.close)
    timer.start()
    ledgers.open("r1", wait_s=WAIT_S).close()
    timer.join()


def test_a_reader_needs_no_lease_and_writes_nothing(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    ledger.append([act(1)])
    digest = ledger.blobs.put(b"data")
    ledger.blobs.flush()
    reader = ledgers.reader("r1")
    assert (reader.count, reader.head) == (2, ledger.head) and reader.blobs.get(digest) == b"data"
    ledger.append([act(2)])
    assert len(list(reader.read())) == 2
    for call in (lambda: reader.append([act(3)]), reader.flush, lambda: reader.blobs.put(b"x")):
        with pytest.raises(LedgerError) as caught:
            call()
        assert caught.value.code == "ledger.no_lease"
    reader.close()
    ledger.close()
    with pytest.raises(LedgerError) as closed:
        ledger.append([act(3)])
    assert closed.value.code == "ledger.no_lease"


def test_runs_are_known_by_name(ledgers: Ledgers) -> None:
    assert ledgers.runs() == []
    for run in ("20240102-b", "20240101-a", "20240103-c"):
        ledgers.create(run, genesis(run)).close()
    assert ledgers.runs() == ["20240101-a", "20240102-b", "20240103-c"]
    with pytest.raises(LedgerError) as caught:
        ledgers.create("20240101-a", genesis())
    assert caught.value.code == "ledger.exists"
    for call in (ledgers.open, ledgers.reader):
        with pytest.raises(LedgerError) as missing:
            call("20240109-x")
        assert missing.value.code == "ledger.unknown_run"


@pytest.mark.parametrize(
    "run", ["", ".", "..", "a/b", "../x", ".hidden", "-x", "a\n", "a b", "a" * 129, "é", "a\0"]
)
def test_a_run_id_that_is_no_name_is_refused(ledgers: Ledgers, run: str) -> None:
    for call in (
        lambda: ledgers.create(run, genesis()),
        lambda: ledgers.open(run),
        lambda: ledgers.reader(run),
    ):
        with pytest.raises(LedgerError) as caught:
            call()
        assert caught.value.code == "ledger.run_id"
    assert ledgers.runs() == []


def test_blobs_are_kept_by_content(ledgers: Ledgers) -> None:
    with ledgers.create("r1", genesis()) as ledger:
        digests = {ledger.blobs.put(data) for data in (b"", b"one", b"one", bytes(100_000))}
        assert len(digests) == 3 and canon.digest(b"one") in digests
        ledger.blobs.flush()
        ledger.blobs.flush()
    with ledgers.open("r1") as again:
        assert again.blobs.get(canon.digest(b"one")) == b"one" and again.blobs.get(canon.digest(b"")) == b""
        assert again.blobs.has(canon.digest(b"one"))
        for name in (canon.digest(b"other"), "../../etc/passwd", ""):
            assert not again.blobs.has(name)
            with pytest.raises(LedgerError) as caught:
                again.blobs.get(name)
            assert caught.value.code == "ledger.blob"


def test_verifies(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    ledger.append([act(number) for number in range(20)])
    report = verify((line for _, line in ledger.read()), exported=False, blobs=ledger.blobs)
    assert (report.ok, report.records, report.head, report.problems) == (True, 21, ledger.head, ())


def test_export_and_import_are_lossless(ledgers: Ledgers, targets: Targets, tmp_path: Path) -> None:
    with ledgers.create("r1", genesis()) as ledger:
        digest = ledger.blobs.put(bytes(range(256)) * 400)
        ledger.append([act(1), Record("act", "proposal", {"out": {"$blob": digest}}), act(2)])
    out = io.BytesIO()
    footer = export(ledgers.reader("r1"), out)
    assert (footer.run, footer.count, footer.blobs) == ("r1", 4, 1)
    for number, make in enumerate(targets):
        lossless(ledgers, make(tmp_path / f"other{number}"), out)


def lossless(ledgers: Ledgers, other: Ledgers, out: io.BytesIO) -> None:
    for _ in range(2):  # the second time it is there already, and that is fine
        out.seek(0)
        assert import_(out, other) == "r1"
    assert [line for _, line in other.reader("r1").read()] == [
        line for _, line in ledgers.reader("r1").read()
    ]
    again = io.BytesIO()
    export(other.reader("r1"), again)
    assert again.getvalue() == out.getvalue()
    with other.open("r1") as taken:
        taken.append([act(3)])
    out.seek(0)
    with pytest.raises(LedgerError) as caught:
        import_(out, other)
    assert caught.value.code == "ledger.exists" and other.reader("r1").count == 5


def test_a_snapshot_is_kept_beside_the_records_until_another_takes_its_place(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    assert ledger.kept() is None
    for data in (b"one", b"\0two\n" * 5000):
        ledger.append([act(1), act(2)])
        ledger.flush()
        ledger.keep(Snapshot(ledger.count, ledger.head, data))
    ledger.append([act(3)])
    ledger.close()
    with pytest.raises(LedgerError):
        ledger.keep(None)
    again = ledgers.open("r1")
    assert again.kept() == Snapshot(5, next(iter(again.read(4)))[0].hash, b"\0two\n" * 5000)
    assert [record.seq for record, _ in again.read(5)] == [5]
    assert [record.seq for record, _ in again.read()] == list(range(6))
    assert (again.count, again.head) == (6, next(iter(again.read(5)))[0].hash)
    again.keep(None)
    again.close()
    last = ledgers.open("r1")
    assert last.kept() is None and last.count == 6
    last.close()


def test_a_snapshot_of_other_records_is_discarded(ledgers: Ledgers) -> None:
    ledger = ledgers.create("r1", genesis())
    ledger.append([act(1)])
    ledger.flush()
    ledger.keep(Snapshot(2, canon.ZERO, b"data"))
    ledger.close()
    again = ledgers.open("r1")
    with pytest.raises(LedgerError) as caught:
        again.kept()
    assert caught.value.code == "ledger.snapshot_discarded"
    assert again.count == 2 and len(list(again.read())) == 2
    again.close()
