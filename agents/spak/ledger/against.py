"""A folder of runs against signed checkpoints that somebody kept outside of it.

Takes the folder's log and runs, and what the checkpoints say (their signatures are verified already); gives
every problem. The log must begin with the tree of each checkpoint, and each run that the checkpoints cover
must have the records that the log says, or a tombstone.

Codes of problems, besides those of `spak.ledger.verify`: `history` (the log is not the one that was signed,
or two were), `missing` (a run is gone without a tombstone that a checkpoint covers: whoever can write the log
can add one, and only whoever signs says that the run was to be erased).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from spak.errors import LedgerError
from spak.inputs import open_input
from spak.ledger.blobs import FileBlobs
from spak.ledger.chain import Problem, read_lines
from spak.ledger.file_log import FileLog, gone
from spak.ledger.files import FileLedgers
from spak.ledger.log import Log, continues
from spak.ledger.note import Head
from spak.ledger.proofs import Leaf
from spak.ledger.scan import TRACE
from spak.ledger.verify import Checkpoint, Report, verify


@dataclass(frozen=True, slots=True)
class Seen:
    """What a folder of runs is: `covered` runs by the checkpoints, `newer` ones that they do not cover, and
    `erased` ones by name; `problems` with the run, empty for those of the log."""

    covered: int
    newer: int
    erased: tuple[str, ...]
    records: int
    problems: tuple[tuple[str, Problem], ...]


def histories(log: Log, heads: Sequence[Head]) -> Iterator[Problem]:
    """Where the log is not the one that was signed; each with the size of the checkpoint."""
    for head in heads:
        if head.size > log.size:
            said = (
                f"the log has {log.size} leaves, the checkpoint {head.size}: an old copy, or its end was cut"
            )
            yield Problem(head.size, "history", said)
        elif not continues(log, head):
            said = f"the first {head.size} leaves of the log are not those that were signed: another history"
            yield Problem(head.size, "history", said)
    for one, other in combinations(heads, 2):
        if one.size == other.size and one.root != other.root:
            said = f"two checkpoints of {one.size} leaves differ: two histories were signed"
            yield Problem(one.size, "history", said)


def mark(log: FileLog, run: str, size: int) -> Checkpoint | None:
    """What a checkpoint of `size` leaves says of a run; None where it does not cover it, or it was erased."""
    found = [leaf for _, leaf in log.of(run, size)]
    return _said(found) if found and found[0].root is not None else None


def _said(leaves: Sequence[Leaf]) -> Checkpoint:
    """What the leaves of one run say of it together: whoever can write the log can add one of fewer records,
    or of others, and the next checkpoint covers that one too."""
    most = max(leaves, key=lambda leaf: leaf.count)
    return Checkpoint(most.run, most.count, most.head, {leaf.count: leaf.head for leaf in leaves})


def verify_run(folder: Path, checkpoint: Checkpoint | None = None) -> Report:
    """The report of one run's folder. Raises: OSError."""
    blobs = FileBlobs(folder / "blobs", writable=False)
    with open_input(folder / TRACE) as file:
        return verify(read_lines(file), exported=False, checkpoint=checkpoint, blobs=blobs)


def verify_all(root: Path, heads: Sequence[Head]) -> Seen:
    """Every run of the folder, and every run that the checkpoints cover."""
    log, ledgers = FileLog(root), FileLedgers(root)
    found = [("", problem) for problem in histories(log, heads)]
    size = max((head.size for head in heads), default=0)
    try:
        signed, later, covered = log.last(size), log.last(), defaultdict[str, list[Leaf]](list)
        for leaf in log.leaves(size):
            covered[leaf.run].append(leaf)
    except LedgerError as error:
        return Seen(0, 0, (), 0, (*found, ("", Problem(0, "history", error.message))))
    names = ledgers.runs()
    there, records = frozenset(names), 0
    for run in names:
        wanted = _said(covered[run]) if run in covered else None
        try:
            report = verify_run(root / run, wanted)
        except OSError as error:
            found.append((run, Problem(0, "line", f"it cannot be read: {error.strerror}")))
            continue
        records += report.records
        found += [(run, problem) for problem in report.problems]
    lost = [run for run in covered if run not in there]
    for run in lost:
        if signed[run].root is not None:
            said = gone(run, signed[run])
            if later[run].root is None:
                said += " that a given checkpoint covers; the log has one: name the checkpoint that covers it"
            found.append((run, Problem(0, "missing", said)))
    erased = tuple(sorted(run for run in lost if signed[run].root is None))
    newer = sum(run not in covered for run in names)
    return Seen(len(covered), newer, erased, records, tuple(found))
