"""A folder of runs against a checkpoint kept elsewhere: whatever somebody does to it afterwards is found."""

from __future__ import annotations

import random
import shutil
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest

import log_kit
from spak.errors import LedgerError
from spak.ledger import merkle, proofs
from spak.ledger.against import histories, mark, verify_all, verify_run
from spak.ledger.file_log import FileLog, prove
from spak.ledger.files import FileLedgers
from spak.ledger.log import checkpoint, consistency, leaf_of
from spak.ledger.note import Head


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log_kit.store(tmp_path / "runs")
    return tmp_path / "runs"


def codes(root: Path, *heads: Head) -> set[str]:
    return {problem.code for _, problem in verify_all(root, heads).problems}


def test_an_untouched_store_is_whole_also_when_it_has_grown(root: Path) -> None:
    head = log_kit.signed(root)
    log_kit.write(root, "r0", 9)
    log_kit.write(root, "r9", 2)
    seen = verify_all(root, [head])
    assert (seen.problems, seen.covered, seen.newer) == ((), 5, 1)
    later = log_kit.signed(root)
    assert (head.size, later.size) == (5, 7)
    assert codes(root, head, later) == set()
    assert log_kit.signed(root) == later  # nothing has changed


@pytest.mark.parametrize("kind", log_kit.RUN_KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_every_kind_of_tampering_with_a_run_is_found(root: Path, kind: str, seed: int) -> None:
    head = log_kit.signed(root)
    rnd = random.Random(seed)
    run = f"r{rnd.randrange(5)}"
    log_kit.RUN_KINDS[kind](root / run / "trace.jsonl", rnd)
    assert {name for name, _ in verify_all(root, [head]).problems} == {run}
    if kind == "a run removed":
        assert codes(root, head) == {"missing"}
    else:
        found = mark(FileLog(root), run, head.size)
        assert not verify_run(root / run, found).ok


@pytest.mark.parametrize("kind", ["insertion", "tail cut", "full rehash"])
def test_what_is_chained_again_is_found_by_the_checkpoint_only(root: Path, kind: str) -> None:
    head = log_kit.signed(root)
    log_kit.RUN_KINDS[kind](root / "r2/trace.jsonl", random.Random(1))
    assert codes(root) == set()
    assert codes(root, head) == {"checkpoint"}


def test_who_changes_the_log_as_well_is_found(root: Path) -> None:
    """Run, leaf and cache computed anew: the log is then another one than was signed."""
    head = log_kit.signed(root)
    log_kit.rehash(root / "r2/trace.jsonl", random.Random(1))
    shutil.rmtree(root / ".log")
    log_kit.signed(root)
    assert codes(root) == set()
    assert codes(root, head) == {"history"}


def test_an_old_copy_of_the_whole_store_is_found(root: Path, tmp_path: Path) -> None:
    log_kit.signed(root)
    shutil.copytree(root, tmp_path / "old")
    log_kit.write(root, "r3", 20)
    head = log_kit.signed(root)
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "old", root)
    (problem,) = [problem for run, problem in verify_all(root, [head]).problems if not run]
    assert problem.code == "history" and "the log has 5 leaves, the checkpoint 6" in problem.message
    log_kit.write(root, "r4", 30)  # and goes on: as many leaves, another history
    log_kit.signed(root)
    assert codes(root, head) == {"history"}


def test_a_run_that_was_removed_on_purpose_leaves_a_tombstone(root: Path) -> None:
    before = log_kit.signed(root)
    shutil.rmtree(root / "r1")
    log = FileLog(root)
    with log.held():
        assert log.update(FileLedgers(root)) == ["run r1, of 7 records, is gone without a tombstone"]
        assert log.update(FileLedgers(root), ["r1"]) == []
        with pytest.raises(LedgerError) as caught:
            log.update(FileLedgers(root), ["r1", "r2"])
        assert caught.value.code == "ledger.exists"
    (unsigned,) = verify_all(root, [before]).problems
    assert unsigned[1].code == "missing" and "name the checkpoint that covers it" in unsigned[1].message
    with log.held(), pytest.raises(LedgerError) as refused:
        log.update(FileLedgers(root))
    assert refused.value.code == "ledger.tombstone"
    with log.held():  # the command that was killed before it signed is given once more
        assert log.update(FileLedgers(root), ["r1"]) == []
    after = log_kit.signed(root, ["r1"])
    seen = verify_all(root, [before, after])
    assert (seen.problems, seen.erased, after.size) == ((), ("r1",), 6)
    assert mark(FileLog(root), "r1", after.size) is None


def test_a_tombstone_that_nobody_signed_hides_no_run(root: Path) -> None:
    head = log_kit.signed(root)
    last = FileLog(root).last()["r1"]
    shutil.rmtree(root / "r1")
    with (root / ".log/leaves.jsonl").open("ab") as file:
        file.write(replace(last, root=None).text() + b"\n")
    assert codes(root, head) == {"missing"}
    log = FileLog(root)
    with log.held(), pytest.raises(LedgerError) as caught:
        log.update(FileLedgers(root))
    assert caught.value.code == "ledger.tombstone"


def shorten(root: Path, run: str, count: int) -> bytes:
    """Cut a run to its first records; gives the line that the log has of a run of so many."""
    path = root / run / "trace.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)[:count]
    path.write_bytes(b"".join(lines))
    return leaf_of(run, lines).text() + b"\n"


def test_a_later_leaf_of_fewer_records_hides_no_cut(root: Path) -> None:
    """Somebody cuts a run and adds a leaf that says so; the next checkpoint then has it."""
    head = log_kit.signed(root)
    forged = shorten(root, "r0", 2)
    with (root / ".log/leaves.jsonl").open("ab") as file:
        file.write(forged)
    later = log_kit.signed(root)
    for heads in ([head], [head, later], [later]):
        assert codes(root, *heads) == {"checkpoint"}
    assert not verify_run(root / "r0", mark(FileLog(root), "r0", later.size)).ok


def test_a_later_leaf_of_other_records_hides_no_rewriting(root: Path) -> None:
    head = log_kit.signed(root)
    log_kit.insert(root / "r0/trace.jsonl", random.Random(1))
    forged = shorten(root, "r0", 7)
    with (root / ".log/leaves.jsonl").open("ab") as file:
        file.write(forged)
    assert codes(root, head, log_kit.signed(root)) == {"checkpoint"}


def test_a_leaf_is_not_hidden_by_another_end_of_its_line(root: Path) -> None:
    first = log_kit.signed(root)
    log_kit.write(root, "r0", 9)
    log_kit.signed(root)
    log_kit.write(root, "r1", 12)
    head = log_kit.signed(root)
    path = root / ".log/leaves.jsonl"
    *lines, hidden, last = path.read_bytes().splitlines(keepends=True)
    old = shorten(root, "r0", 6)
    assert len(lines) == first.size and old in lines
    path.write_bytes(b"".join(lines) + hidden[:-1] + b"\r" + last + old)
    assert [problem.code for problem in histories(FileLog(root), [head])] == ["history"]


def test_a_log_that_is_shorter_than_its_checkpoint_proves_nothing(root: Path) -> None:
    log_kit.signed(root)
    path = root / ".log/leaves.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    log = FileLog(root)
    note = log.signed()
    assert note is not None
    for wanted in (lambda: prove(root, "r0"), lambda: consistency(log, 2, note)):
        with pytest.raises(LedgerError) as caught:
            wanted()
        assert caught.value.code == "ledger.forked"


def test_two_histories_that_were_shown_to_two_people_are_found(root: Path, tmp_path: Path) -> None:
    """Each person's checkpoint is signed. They differ, and no log continues both."""
    shutil.copytree(root, tmp_path / "other")
    log_kit.rehash(tmp_path / "other/r0/trace.jsonl", random.Random(3))
    ours, theirs = log_kit.signed(root), log_kit.signed(tmp_path / "other")
    assert [item.code for item in histories(FileLog(root), [ours, theirs])] == ["history", "history"]
    log_kit.write(tmp_path / "other", "r8", 3)
    later = log_kit.signed(tmp_path / "other")
    log = FileLog(tmp_path / "other")
    note = log.signed()
    assert note is not None
    text = consistency(log, ours.size, note)
    with pytest.raises(LedgerError) as caught:
        proofs.check_consistency(text, ours, log_kit.KEY)
    assert caught.value.code == "ledger.proof"
    assert proofs.check_consistency(text, theirs, log_kit.KEY) == later
    with pytest.raises(LedgerError) as forked:
        checkpoint(FileLog(root), log_kit.ORIGIN, log_kit.SEED, [later])
    assert forked.value.code == "ledger.forked"


def test_a_run_that_was_rewritten_gets_no_new_leaf(root: Path) -> None:
    log_kit.signed(root)
    log_kit.rehash(root / "r2/trace.jsonl", random.Random(1))
    log_kit.cut(root / "r3/trace.jsonl", random.Random(1))
    log_kit.write(root, "r4", 11)
    log = FileLog(root)
    with log.held():
        wrong = log.update(FileLedgers(root))
    assert [line.split(":")[0] for line in wrong] == [
        f"run {run} is not what the log says" for run in ("r2", "r3")
    ]
    assert log.size == 6 and log.last()["r4"].count == 11


def test_each_record_of_each_run_is_proved_and_no_other_line(root: Path) -> None:
    log_kit.signed(root)
    for number in range(5):
        run = f"r{number}"
        lines = (root / run / "trace.jsonl").read_bytes().splitlines(keepends=True)
        for seq, line in enumerate(lines):
            found = proofs.check_inclusion(prove(root, run, seq), log_kit.KEY)
            assert (found.leaf.run, found.seq, found.line) == (run, seq, line)
        assert proofs.check_inclusion(prove(root, run), log_kit.KEY).leaf.count == len(lines)


def test_a_proof_of_a_record_does_not_become_one_of_the_run(root: Path) -> None:
    """A byte of `record` is changed: nobody is to read it as a proof that leaves the record out."""
    log_kit.signed(root)
    first, extra, rest = prove(root, "r0", 2).split("\n", 2)
    changed = b64encode(b64decode(extra[6:]).replace(b'"record"', b'"recore"')).decode()
    with pytest.raises(LedgerError) as caught:
        proofs.check_inclusion(f"{first}\nextra {changed}\n{rest}", log_kit.KEY)
    assert caught.value.code == "ledger.proof"


@pytest.mark.parametrize(("run", "seq"), [("r0", 6), ("nobody", None), ("r9", 0)])
def test_what_the_checkpoint_does_not_cover_is_not_proved(root: Path, run: str, seq: int | None) -> None:
    log_kit.signed(root)
    log_kit.write(root, "r0", 9)
    log_kit.write(root, "r9", 9)
    with pytest.raises(LedgerError) as caught:
        prove(root, run, seq)
    assert caught.value.code == "ledger.not_covered"


def test_a_rewritten_run_and_a_rewritten_log_are_not_proved(root: Path) -> None:
    log_kit.signed(root)
    log_kit.rehash(root / "r2/trace.jsonl", random.Random(1))
    with pytest.raises(LedgerError) as caught:
        prove(root, "r2", 1)
    assert caught.value.code == "ledger.rewritten"
    leaves = root / ".log/leaves.jsonl"
    leaves.write_bytes(leaves.read_bytes().replace(b'"count":7', b'"count":6'))
    with pytest.raises(LedgerError) as caught:
        prove(root, "r1", 1)
    assert caught.value.code == "ledger.forked"


class TestTheFiles:
    def test_the_cache_is_used_and_never_believed(self, root: Path) -> None:
        head = log_kit.signed(root)
        nodes = root / ".log/nodes"
        whole = nodes.read_bytes()
        cached = FileLog(root, cached=True)
        assert merkle.root(head.size, cached.node) == head.root and cached._tree is None
        for damaged in (b"", whole[:-32], b"\0" * len(whole)):
            nodes.write_bytes(damaged)
            assert proofs.check_inclusion(prove(root, "r4", 2), log_kit.KEY).seq == 2
            assert codes(root, head) == set()
        log_kit.write(root, "r5", 3)
        log_kit.signed(root)
        assert len(nodes.read_bytes()) == 32 * merkle.position(0, 6)

    def test_a_line_that_was_never_finished_is_no_leaf(self, root: Path) -> None:
        head = log_kit.signed(root)
        leaves = root / ".log/leaves.jsonl"
        leaves.write_bytes(leaves.read_bytes() + b'{"count":3,"he')
        assert FileLog(root).size == 5 and codes(root, head) == set()
        log_kit.write(root, "r6", 4)
        assert log_kit.signed(root).size == 6
        assert codes(root, head) == set()

    def test_a_damaged_leaf_is_found_and_no_crash(self, root: Path) -> None:
        head = log_kit.signed(root)
        leaves = root / ".log/leaves.jsonl"
        leaves.write_bytes(b"nothing\n" + leaves.read_bytes())
        assert codes(root, head) == {"history"}
        with pytest.raises(LedgerError) as caught:
            log_kit.signed(root)
        assert caught.value.code == "ledger.log"

    def test_one_process_at_a_time_writes_the_log(self, root: Path) -> None:
        with FileLog(root).held(), pytest.raises(LedgerError) as caught, FileLog(root).held():
            pass
        assert caught.value.code == "ledger.busy"
