"""Folders of runs for tests of logs and checkpoints, and what somebody who may write there does to them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from spak import canon
from spak.ledger.file_log import FileLog
from spak.ledger.files import FileLedgers
from spak.ledger.log import checkpoint
from spak.ledger.note import Head, own_verifier
from spak.records import Record, decode, place

SEED, ORIGIN = b"k" * 32, "example.com/team"
KEY = own_verifier(ORIGIN, SEED)


def chained(records: list[Record]) -> bytes:
    """The lines of these records, all hashes computed anew."""
    head, lines = canon.ZERO, []
    for seq, record in enumerate(records):
        placed, line = place(record, seq, head)
        head = placed.hash
        lines.append(line)
    return b"".join(lines)


def records_of(run: str, count: int) -> list[Record]:
    first = Record("genesis", "proposal", {"host": {"run": run}, "rules": {"spec": "x"}}, at=17)
    return [
        first,
        *(Record("act", "proposal", {"n": n, "run": run}, "Main", "s", n, at=18) for n in range(1, count)),
    ]


def write(root: Path, run: str, count: int) -> None:
    """A run of so many records."""
    (root / run).mkdir(parents=True, exist_ok=True)
    (root / run / "trace.jsonl").write_bytes(chained(records_of(run, count)))


def store(root: Path, runs: int = 5, count: int = 6) -> None:
    """A folder with runs r0, r1, ..."""
    for number in range(runs):
        write(root, f"r{number}", count + number)


def signed(root: Path, erased: Sequence[str] = ()) -> Head:
    """A checkpoint of the folder as it is now, without the `erased` runs; gives what it says."""
    log = FileLog(root)
    with log.held():
        assert log.update(FileLedgers(root), erased) == []
        last = log.signed()
        note = checkpoint(log, ORIGIN, SEED, [] if last is None else [last.head()])
        log.keep(note)
    return note.head()


# ---- what somebody does, each with a run of the store --------------------------------------------------


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def edit(path: Path, rnd: random.Random) -> None:
    """One byte of one record."""
    data = bytearray(path.read_bytes())
    data[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
    path.write_bytes(data)


def drop(path: Path, rnd: random.Random) -> None:
    lines = _lines(path)
    del lines[rnd.randrange(len(lines))]
    path.write_bytes(b"".join(lines))


def reorder(path: Path, rnd: random.Random) -> None:
    lines = _lines(path)
    one, other = rnd.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    path.write_bytes(b"".join(lines))


def insert(path: Path, rnd: random.Random) -> None:
    """A record that was never written, the chain computed anew."""
    records = [decode(line) for line in _lines(path)]
    records.insert(rnd.randrange(1, len(records)), records[-1]._replace(body={"n": rnd.random()}))
    path.write_bytes(chained(records))


def cut(path: Path, rnd: random.Random) -> None:
    """The end, at the boundary of a record."""
    lines = _lines(path)
    path.write_bytes(b"".join(lines[: rnd.randrange(1, len(lines))]))


def rehash(path: Path, rnd: random.Random) -> None:
    """Another body, the whole chain computed anew."""
    records = [decode(line) for line in _lines(path)]
    at = rnd.randrange(1, len(records))
    records[at] = records[at]._replace(body={"n": rnd.random()})
    path.write_bytes(chained(records))


def remove(path: Path, rnd: random.Random) -> None:
    """The whole run, without a tombstone."""
    shutil.rmtree(path.parent)


RUN_KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "edit": edit,
    "drop": drop,
    "reorder": reorder,
    "insertion": insert,
    "tail cut": cut,
    "full rehash": rehash,
    "a run removed": remove,
}
