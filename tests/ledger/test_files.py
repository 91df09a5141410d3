"""Run folders: what a crash, a full disk, a vandal or a second process can do to them."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fault_points import FaultPoints
from process_kit import WAIT_S, start
from spak import canon
from spak.errors import LedgerError
from spak.ledger import FileLedger, FileLedgers, verify
from spak.records import Record


def genesis(run: str = "r1") -> Record:
    return Record("genesis", "proposal", {"host": {"run": run}, "rules": {"spec": "x" * 80}}, at=17)


def act(number: int, size: int = 40) -> Record:
    return Record("act", "proposal", {"n": number, "out": "o" * size}, "Main", "s1", number, at=18)


@pytest.fixture
def ledgers(tmp_path: Path) -> FileLedgers:
    return FileLedgers(tmp_path / "runs")


def trace(ledgers: FileLedgers, run: str = "r1") -> Path:
    return ledgers.root / run / "trace.jsonl"


def lines_of(ledgers: FileLedgers) -> list[bytes]:
    return trace(ledgers).read_bytes().splitlines(keepends=True)


def write_run(ledgers: FileLedgers, records: int = 6) -> bytes:
    with ledgers.create("r1", genesis()) as ledger:
        for number in range(1, records):
            ledger.append([act(number)])
    return trace(ledgers).read_bytes()


class TestCuts:
    def test_every_byte_of_the_last_two_records(self, ledgers: FileLedgers) -> None:
        data = write_run(ledgers)
        lines = data.splitlines(keepends=True)
        kept = sum(len(line) for line in lines[:-2])
        reference = {len(b"".join(lines[:count])): count for count in range(1, len(lines) + 1)}
        for cut in range(kept, len(data) + 1):
            trace(ledgers).write_bytes(data[:cut])
            whole = max(size for size in reference if size <= cut)
            report = verify(lines_of(ledgers), exported=False)
            assert report.ok and report.records == reference[whole]
            assert [problem.code for problem in report.problems] == ([] if whole == cut else ["torn_tail"])
            assert ledgers.reader("r1").count == reference[whole]
            with ledgers.open("r1") as ledger:
                assert (ledger.count, ledger.healed) == (reference[whole], cut - whole)
                assert trace(ledgers).read_bytes() == data[:whole]
                for number in range(ledger.count, len(lines)):
                    ledger.append([act(number)])
            assert trace(ledgers).read_bytes() == data

    def test_a_genesis_that_is_cut_is_no_torn_tail(self, ledgers: FileLedgers) -> None:
        data = write_run(ledgers, records=1)
        for cut in (0, 1, len(data) // 2, len(data) - 1):
            trace(ledgers).write_bytes(data[:cut])
            for call in (ledgers.open, ledgers.reader):
                with pytest.raises(LedgerError) as caught:
                    call("r1")
                assert caught.value.code == "ledger.tampered" and "record 0" in str(caught.value)
            assert trace(ledgers).read_bytes() == data[:cut]

    def test_a_checkpoint_finds_a_cut_at_a_boundary(self, ledgers: FileLedgers) -> None:
        from spak.ledger import Checkpoint

        data = write_run(ledgers)
        lines = data.splitlines(keepends=True)
        whole = verify(lines, exported=False)
        kept = Checkpoint("r1", whole.records, whole.head)
        assert verify(lines, exported=False, checkpoint=kept).ok
        for count in range(1, len(lines)):
            assert verify(lines[:count], exported=False).ok
            report = verify(lines[:count], exported=False, checkpoint=kept)
            assert not report.ok and [problem.code for problem in report.problems] == ["checkpoint"]


class TestTampering:
    def test_every_byte_of_the_middle(self, ledgers: FileLedgers) -> None:
        data = write_run(ledgers, records=5)
        lines = data.splitlines(keepends=True)
        start, end = len(lines[0]), len(data) - len(lines[-1])
        for at in range(start, end):
            spoiled = bytearray(data)
            spoiled[at] ^= 0x01
            seq = next(n for n in range(len(lines)) if at < sum(len(line) for line in lines[: n + 1]))
            report = verify(bytes(spoiled).splitlines(keepends=True), exported=False)
            assert not report.ok and report.problems[0].seq == seq, at
            if at % 7 == 0:
                trace(ledgers).write_bytes(spoiled)
                with pytest.raises(LedgerError) as caught:
                    ledgers.open("r1")
                assert caught.value.code == "ledger.tampered" and f"record {seq} " in str(caught.value)
                assert trace(ledgers).read_bytes() == bytes(spoiled), "a tampered ledger is left as it is"

    def test_lines_moved_dropped_doubled_or_put_in(self, ledgers: FileLedgers) -> None:
        lines = write_run(ledgers).splitlines(keepends=True)
        for spoiled, seq in (
            ([lines[0], lines[2], lines[1], *lines[3:]], 1),
            ([lines[0], *lines[2:]], 1),
            ([*lines[:3], lines[2], *lines[3:]], 3),
            ([*lines[:2], b"\n", *lines[2:]], 2),
            ([*lines[:4], b'{"#":"' + b"A" * 43 + b'"}\n', *lines[4:]], 4),
            (lines[1:], 0),
        ):
            report = verify(spoiled, exported=False)
            assert not report.ok and report.problems[0].seq == seq
            trace(ledgers).write_bytes(b"".join(spoiled))
            with pytest.raises(LedgerError) as caught:
                ledgers.reader("r1")
            assert caught.value.code == "ledger.tampered" and f"record {seq} " in str(caught.value)

    def test_a_rechained_line_that_is_not_canonical(self, ledgers: FileLedgers) -> None:
        first, *_ = write_run(ledgers, records=1).splitlines(keepends=True)
        rest = b'"authority":"proposal", "body":{},"kind":"act","seq":1}'
        previous = first[6:49].decode()
        line = b'{"#":"' + canon.digest(previous.encode() + rest).encode() + b'",' + rest + b"\n"
        report = verify([first, line], exported=False)
        assert [problem.code for problem in report.problems] == ["form"]

    def test_a_missing_or_spoiled_blob(self, ledgers: FileLedgers) -> None:
        with ledgers.create("r1", genesis()) as ledger:
            digest = ledger.blobs.put(b"output")
            ledger.append([Record("act", "proposal", {"blob": digest, "text": f'"blob":"{"A" * 43}"'})])
        lines = trace(ledgers).read_bytes().splitlines(keepends=True)
        assert verify(lines, exported=False, blobs=ledgers.reader("r1").blobs).ok
        path = ledgers.root / "r1" / "blobs" / digest[:2] / digest
        for spoil in (lambda: path.write_bytes(b"0utput"), path.unlink):
            spoil()
            report = verify(lines, exported=False, blobs=ledgers.reader("r1").blobs)
            assert [(problem.seq, problem.code) for problem in report.problems] == [(1, "blob")]
        with ledgers.open("r1") as ledger:
            path.write_bytes(b"")  # as a loss of power may leave it
            assert ledger.blobs.put(b"output") == digest and ledger.blobs.get(digest) == b"output"


class TestDurability:
    def test_one_sync_per_flush_and_none_for_nothing(self, ledgers: FileLedgers) -> None:
        ledger = ledgers.create("r1", genesis())
        assert ledger.fsyncs == 3
        ledger.flush()
        assert ledger.fsyncs == 3
        for number in range(10):
            ledger.append([act(number), act(number), act(number)])
            ledger.flush()
            ledger.flush()
        assert ledger.fsyncs == 13
        ledger.close()
        again = ledgers.open("r1")
        again.flush()
        assert again.fsyncs == 1, "what a dead writer left unflushed is made durable first"
        again.close()

    def test_one_write_per_append(self, ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch) -> None:
        ledger = ledgers.create("r1", genesis())
        sizes = []
        really = os.pwrite
        monkeypatch.setattr(
            os, "pwrite", lambda fd, data, at: sizes.append(len(data)) or really(fd, data, at)
        )
        before = trace(ledgers).stat().st_size
        ledger.append([act(number) for number in range(100)])
        assert sizes == [trace(ledgers).stat().st_size - before]

    def test_blobs_are_synced_before_the_records_that_name_them(
        self, ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        order: list[str] = []
        really, data_only = os.fsync, os.fdatasync
        monkeypatch.setattr(os, "fsync", lambda fd: order.append("blob") or really(fd))
        monkeypatch.setattr(os, "fdatasync", lambda fd: order.append("ledger") or data_only(fd))
        ledger = ledgers.create("r1", genesis())
        order.clear()
        ledger.append([Record("act", "proposal", {"blob": ledger.blobs.put(b"x")})])
        ledger.flush()
        assert order == ["blob", "blob", "blob", "ledger"]
        assert ledger.blobs.fsyncs == 3

    def test_memory_does_not_grow_with_the_run(self, ledgers: FileLedgers) -> None:
        ledger = ledgers.create("r1", genesis())
        ledger.append([act(number, 500) for number in range(50)])
        tracemalloc.start()
        try:
            for number in range(3000):
                ledger.append([act(number, 500)])
            assert sum(1 for _ in ledger.read()) == ledger.count == 3051
            ledger.close()
            ledgers.open("r1").close()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 300_000 < trace(ledgers).stat().st_size

    @pytest.mark.faults
    @pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.1])
    def test_kill_9_of_a_writer(
        self, ledgers: FileLedgers, seconds: float, fault_points: FaultPoints
    ) -> None:
        child = multiprocessing.get_context("fork").Process(target=_write_for_ever, args=(ledgers,))
        child.start()
        while not ledgers.runs():
            pass
        child.join(seconds)
        os.kill(child.pid, signal.SIGKILL)  # type: ignore[arg-type]
        child.join()
        assert verify(lines_of(ledgers), exported=False).ok
        with ledgers.open("r1") as ledger:
            assert [record.seq for record, _ in ledger.read()] == list(range(ledger.count))
            ledger.append([act(0)])
        assert verify(lines_of(ledgers), exported=False).problems == ()
        fault_points["killed"] += 1

    def test_a_create_that_is_stopped_leaves_no_run(
        self, ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Stopped(BaseException):
            pass

        def stop(*args: object) -> None:
            raise Stopped

        for target, name in ((os, "fsync"), (Path, "rename")):
            with monkeypatch.context() as patched:
                patched.setattr(target, name, stop)
                with pytest.raises(Stopped):
                    ledgers.create("r1", genesis())
            assert ledgers.runs() == [] and list(ledgers.root.iterdir()) == []
        (ledgers.root / "r1" / "workspace").mkdir(parents=True)
        ledgers.create("r1", genesis()).close()
        assert ledgers.runs() == ["r1"]


def _write_for_ever(ledgers: FileLedgers) -> None:
    ledger = ledgers.create("r1", genesis())
    while True:
        ledger.append([act(ledger.count, 3000) for _ in range(5)])
        ledger.flush()


class TestFaults:
    def test_a_full_disk_loses_nothing(self, small_disk: Callable[[int], object], tmp_path: Path) -> None:
        ledgers = FileLedgers(tmp_path / "small" / "runs")
        small_disk(40_000)
        ledger = ledgers.create("r1", genesis())
        ballast = tmp_path / "small" / "ballast"
        ballast.write_bytes(bytes(12_000))
        with pytest.raises(LedgerError) as caught:
            for number in range(10_000):
                before = (ledger.count, ledger.head)
                ledger.append([act(number, 2000), act(number, 300)])
                ledger.flush()
        assert caught.value.code == "ledger.full" and caught.value.hint
        assert (ledger.count, ledger.head) == before and ledger.count > 10
        report = verify(lines_of(ledgers), exported=False)
        assert (report.records, report.head, report.problems) == (*before, ())
        with pytest.raises(LedgerError) as blob:
            ledger.blobs.put(bytes(200_000))
        assert blob.value.code == "ledger.full"
        with pytest.raises(LedgerError):
            ledger.append([act(0, 60_000)])
        ballast.unlink()
        small_disk(resource.RLIM_INFINITY)
        ledger.append([act(1, 300)])
        ledger.close()
        assert ledgers.open("r1").count == before[0] + 1
        assert verify(lines_of(ledgers), exported=False).problems == ()

    def test_a_run_that_cannot_begin_is_none(
        self, small_disk: Callable[[int], object], tmp_path: Path
    ) -> None:
        small_disk(60_000)
        ledgers = FileLedgers(tmp_path / "small" / "runs")
        large = Record("genesis", "proposal", {"rules": "x" * 100_000})
        with pytest.raises(LedgerError) as caught:
            ledgers.create("r1", large)
        assert caught.value.code == "ledger.full"
        assert ledgers.runs() == [] and list(ledgers.root.iterdir()) == []

    @pytest.mark.parametrize(
        ("number", "code"),
        [(errno.EIO, "ledger.io"), (errno.ENOSPC, "ledger.full"), (errno.EDQUOT, "ledger.full")],
    )
    @pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
    def test_what_the_system_refuses_is_typed_and_can_be_tried_again(
        self, ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: str
    ) -> None:
        ledger = ledgers.create("r1", genesis())
        ledger.append([act(1)])
        ledger.flush()
        really = getattr(os, call)

        def fail(fd: int, *args: object) -> int:
            if call == "pwrite":
                really(fd, bytes(args[0])[:30], args[1])  # type: ignore[call-overload]
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail)
            with pytest.raises(LedgerError) as caught:
                ledger.append([act(2)])
                ledger.flush()
        assert caught.value.code == code and caught.value.hint
        count = 2 if call == "pwrite" else 3
        assert ledger.count == count and ledgers.reader("r1").count == count
        assert verify(lines_of(ledgers), exported=False).problems == ()
        ledger.append([act(3)])
        ledger.close()
        assert verify(lines_of(ledgers), exported=False).records == count + 1

    def test_a_failed_sync_is_never_taken_for_done(
        self, ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a failed sync the kernel may call pages clean: the next one must write them again."""
        ledger = ledgers.create("r1", genesis())
        synced = trace(ledgers).stat().st_size
        ledger.append([act(1), act(2)])
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", _raise_io)
            with pytest.raises(LedgerError):
                ledger.flush()
        written: list[tuple[int, bytes]] = []
        really = os.pwrite
        monkeypatch.setattr(
            os, "pwrite", lambda fd, data, at: written.append((at, bytes(data))) or really(fd, data, at)
        )
        ledger.flush()
        assert written == [(synced, trace(ledgers).read_bytes()[synced:])]
        ledger.flush()
        assert len(written) == 1

    def test_closing_gives_the_lease_back_even_if_the_flush_fails(
        self, ledgers: FileLedgers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = ledgers.create("r1", genesis())
        ledger.append([act(1)])
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", _raise_io)
            with pytest.raises(LedgerError) as caught:
                ledger.close()
        assert caught.value.code == "ledger.io"
        assert ledgers.open("r1").count == 2

    def test_a_folder_that_is_read_only(self, ledgers: FileLedgers, tmp_path: Path) -> None:
        write_run(ledgers)
        with _read_only(ledgers.root):
            for call in (lambda: ledgers.open("r1"), lambda: ledgers.create("r2", genesis("r2"))):
                with pytest.raises(LedgerError) as caught:
                    call()
                assert caught.value.code == "ledger.readonly" and caught.value.hint
            assert ledgers.reader("r1").count == 6 and ledgers.runs() == ["r1"]
            assert verify(lines_of(ledgers), exported=False).ok


def _raise_io(*args: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


class _read_only:
    """A read-only bind mount for root, whom rights do not stop; taken rights for everybody else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mounted = False

    def __enter__(self) -> None:
        if os.geteuid() == 0:
            subprocess.run(["mount", "--bind", str(self.folder), str(self.folder)], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", str(self.folder)], check=True)
            self.mounted = True
            return
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)

    def __exit__(self, *error: object) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)
            return
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


class TestProcesses:
    def test_four_processes_append_to_their_own_runs(self, ledgers: FileLedgers) -> None:
        """Claim 5 of seed 001: 4 x 200 steps, the sum is exact."""
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=_append_steps, args=(ledgers, f"r{n}", 200)) for n in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join()
            assert child.exitcode == 0
        assert ledgers.runs() == ["r0", "r1", "r2", "r3"]
        total = 0
        for run in ledgers.runs():
            records = [record for record, _ in ledgers.reader(run).read(1)]
            assert {record.body["by"] for record in records} == {run}
            total += sum(record.body["n"] for record in records)
        assert total == 4 * sum(range(200))

    def test_many_creators_of_one_run_make_it_once(self, ledgers: FileLedgers) -> None:
        context = multiprocessing.get_context("fork")
        results: multiprocessing.Queue[str] = context.Queue()
        children = [context.Process(target=_create, args=(ledgers, results)) for _ in range(6)]
        for child in children:
            child.start()
        said = sorted(results.get(timeout=WAIT_S) for _ in children)
        for child in children:
            child.join()
        assert said.count("made") == 1 and set(said) <= {"made", "ledger.exists", "ledger.busy"}
        assert ledgers.open("r1").count == 1

    def test_a_lease_names_its_holder_and_dies_with_it(self, ledgers: FileLedgers) -> None:
        write_run(ledgers)
        code = (
            "import sys; from pathlib import Path; from spak.ledger import FileLedgers\n"
            "held = FileLedgers(Path(sys.argv[1])).open('r1')\nprint('held', flush=True)\ninput()"
        )
        holder = start(
            [sys.executable, "-c", code, str(ledgers.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(LedgerError) as caught:
            ledgers.open("r1", wait_s=0.1)
        assert caught.value.code == "ledger.busy" and f"process {holder.pid}" in str(caught.value)
        holder.kill()
        holder.communicate()
        ledgers.open("r1", wait_s=5.0).close()

    def test_a_child_does_not_inherit_the_lease(self, ledgers: FileLedgers) -> None:
        ledger = ledgers.create("r1", genesis())
        child = start([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
        try:
            ledger.close()
            ledgers.open("r1", wait_s=5.0).close()  # the child closes it a moment after it was started
            assert child.poll() is None
        finally:
            child.communicate(b"\n")


def _append_steps(ledgers: FileLedgers, run: str, steps: int) -> None:
    with ledgers.create(run, genesis(run)) as ledger:
        for number in range(steps):
            ledger.append([Record("act", "proposal", {"by": run, "n": number})])
            if number % 20 == 0:
                ledger.flush()


def _create(ledgers: FileLedgers, results: multiprocessing.Queue[str]) -> None:
    try:
        made: FileLedger | None = ledgers.create("r1", genesis())
        results.put("made")
        if made is not None:
            made.close()
    except LedgerError as error:
        results.put(error.code)


def test_what_an_import_left_aside_is_swept_up(ledgers: FileLedgers) -> None:
    intake = ledgers.intake()
    aside = next(ledgers.root.glob(".import-*"))
    ledgers.intake().drop()
    assert aside.exists() and ledgers.runs() == [], "somebody is importing it right now"
    intake._close()  # as the death of its process does
    ledgers.intake().drop()
    assert not aside.exists() and list(ledgers.root.iterdir()) == []
    shutil.rmtree(ledgers.root)
