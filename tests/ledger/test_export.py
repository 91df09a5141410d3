"""Exported runs: cut, spoiled, forged; nothing of them may come in."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from pathlib import Path

import pytest

from spak import canon
from spak.errors import LedgerError
from spak.ledger import Checkpoint, FileLedgers, MemoryLedgers, export, import_, read_checkpoint, verify
from spak.ledger.verify import Footer
from spak.records import Record


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    ledgers = FileLedgers(tmp_path_factory.mktemp("export"))
    with ledgers.create("r1", Record("genesis", "proposal", {"host": {"run": "r1"}})) as ledger:
        blobs = [ledger.blobs.put(data) for data in (b"one", b"two")]
        ledger.append([Record("act", "proposal", {"blob": digest}, attempt=1) for digest in blobs])
    out = io.BytesIO()
    export(ledgers.reader("r1"), out)
    return out.getvalue()


def refused(data: bytes, tmp_path: Path) -> str:
    """The message with which an import refuses; whatever refuses leaves nothing behind."""
    for ledgers in (MemoryLedgers(), FileLedgers(tmp_path / "runs")):
        with pytest.raises(LedgerError) as caught:
            import_(io.BytesIO(data), ledgers)
        assert caught.value.code == "ledger.import" and caught.value.hint
        assert ledgers.runs() == []
    assert list((tmp_path / "runs").iterdir()) == []
    return caught.value.message


def test_whole(exported: bytes) -> None:
    report = verify(exported.splitlines(keepends=True), exported=True)
    assert (report.ok, report.records, report.problems) == (True, 3, ())
    footer = json.loads(exported.splitlines()[-1])
    assert footer == {"blobs": 2, "count": 3, "footer": 1, "head": report.head, "run": "r1"}


def test_cut_anywhere_is_found(exported: bytes, tmp_path: Path) -> None:
    for cut in range(len(exported)):
        report = verify(exported[:cut].splitlines(keepends=True), exported=True)
        assert not report.ok and "footer" in {problem.code for problem in report.problems}, cut
        if cut % 97 == 0 or exported[cut - 1 : cut] == b"\n":
            refused(exported[:cut], tmp_path)


def test_every_spoiled_byte_is_found(exported: bytes, tmp_path: Path) -> None:
    for at in range(len(exported)):
        spoiled = bytearray(exported)
        spoiled[at] ^= 0x01
        assert not verify(bytes(spoiled).splitlines(keepends=True), exported=True).ok, at
        if at % 61 == 0:
            refused(bytes(spoiled), tmp_path)


def test_lines_that_do_not_belong(exported: bytes, tmp_path: Path) -> None:
    lines = exported.splitlines(keepends=True)
    extra = canon.dumps({"blob": canon.digest(b"three"), "data": b64encode(b"three").decode()}) + b"\n"
    for spoiled, code in (
        (lines[:3] + lines[4:], "footer"),  # a blob gone
        ([*lines[:3], lines[4], lines[3], lines[5]], "order"),
        ([*lines[:5], extra, lines[5]], "footer"),
        ([*lines, lines[-1]], "order"),
        ([*lines, extra], "order"),
        ([lines[0], lines[3], *lines[1:3], *lines[4:]], "order"),
        ([*lines[:-1], Footer("r2", 3, lines[2][6:49].decode(), 2).line()], "footer"),
        ([*lines[:-1], Footer("r1", 2, lines[2][6:49].decode(), 2).line()], "footer"),
        ([b"not a ledger\n"], "line"),
        ([], "genesis"),
    ):
        report = verify(spoiled, exported=True)
        assert not report.ok and code in {problem.code for problem in report.problems}
        refused(b"".join(spoiled), tmp_path)


def test_a_footer_of_another_layout_is_named(exported: bytes) -> None:
    lines = exported.splitlines(keepends=True)
    newer = canon.dumps({**json.loads(lines[-1]), "footer": 2}) + b"\n"
    (problem,) = verify([*lines[:-1], newer], exported=True).problems
    assert problem.code == "footer" and "layout 2" in problem.message


def test_a_run_id_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    source = MemoryLedgers()
    source.create("r1", Record("genesis", "proposal", {"host": {"run": "../escape"}})).close()
    out = io.BytesIO()
    export(source.reader("r1"), out)
    out.seek(0)
    with pytest.raises(LedgerError) as caught:
        import_(out, FileLedgers(tmp_path / "runs"))
    assert caught.value.code == "ledger.run_id" and list(tmp_path.iterdir()) == [tmp_path / "runs"]
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_folder_in_the_way_is_not_taken(exported: bytes, tmp_path: Path) -> None:
    (tmp_path / "runs" / "r1" / "workspace").mkdir(parents=True)
    with pytest.raises(LedgerError) as caught:
        import_(io.BytesIO(exported), FileLedgers(tmp_path / "runs"))
    assert caught.value.code == "ledger.exists"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["r1"]


def test_problems_have_an_end() -> None:
    report = verify([b"garbage\n"] * 5000, exported=False)
    assert len(report.problems) == 101 and report.problems[-1].code == "too_many"


class TestCheckpoint:
    def test_agrees_or_names_the_difference(self, exported: bytes) -> None:
        lines = exported.splitlines(keepends=True)[:3]
        heads = [line[6:49].decode() for line in lines]
        for count in (1, 2, 3):
            assert verify(lines, exported=False, checkpoint=Checkpoint("r1", count, heads[count - 1])).ok
        for wrong in (
            Checkpoint("r1", 2, heads[2]),
            Checkpoint("r2", 2, heads[1]),
            Checkpoint("r1", 4, heads[2]),
        ):
            report = verify(lines, exported=False, checkpoint=wrong)
            assert [problem.code for problem in report.problems] == ["checkpoint"]

    def test_finds_a_ledger_that_was_written_anew(self, exported: bytes) -> None:
        forged = MemoryLedgers().create("r1", Record("genesis", "proposal", {"host": {"run": "r1"}}))
        forged.append([Record("act", "proposal", {"forged": True})] * 2)
        lines = [line for _, line in forged.read()]
        kept = Checkpoint("r1", 3, exported.splitlines()[2][6:49].decode())
        assert verify(lines, exported=False).ok
        assert not verify(lines, exported=False, checkpoint=kept).ok

    def test_is_read_from_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.json"
        path.write_text('{"run": "r1", "count": 3, "head": "abc", "signature": "later"}')
        assert read_checkpoint(path) == Checkpoint("r1", 3, "abc")
        for text in (
            "",
            "[]",
            "{}",
            '{"run":"r1","count":0,"head":"x"}',
            '{"run":"r1","count":"3","head":"x"}',
        ):
            path.write_text(text)
            with pytest.raises(LedgerError) as caught:
                read_checkpoint(path)
            assert caught.value.code == "ledger.checkpoint"
        with pytest.raises(LedgerError):
            read_checkpoint(tmp_path / "missing")


def test_a_record_of_nobody_is_named() -> None:
    ledgers = MemoryLedgers()
    with ledgers.create("r1", Record("genesis", "proposal", {"host": {"run": "r1"}})) as ledger:
        ledger.append([Record("act", "somebody", {}, attempt=1)])
        lines = [line for _, line in ledger.read()]
    report = verify(lines, exported=False)
    assert not report.ok
    assert [(problem.seq, problem.code) for problem in report.problems] == [(1, "authority")]
