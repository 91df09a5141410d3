"""The suite's own ledger: which split each case was drawn into, and every look at the sealed one.

    <suite>/ledger/trace.jsonl    a chain of records like that of a run (spak.records), all by the host

    genesis  {"suite": 1, "seed": n}
    case     {"name", "hash", "split"}                   a case was added, or its content changed
    look     {"split": "sealed", "by", "experiment", "cases"}

The split is drawn by hash of the case and the suite's seed, once for each name: changing a
case does not draw again. Appends and reads; the caller decides what happened.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from spak.errors import LedgerError, SuiteError
from spak.ledger.files import FileLedgers
from spak.records import Authority, Kind, Record

Split = Literal["train", "gate", "sealed"]
SPLITS: Mapping[Split, int] = {"train": 50, "gate": 30, "sealed": 20}
"""Per cent of the cases, on average."""
RUN = "ledger"
CASE, LOOK = "case", "look"
WAIT_S = 10.0
"""How long a writer waits for another."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A case as the ledger has it."""

    hash: str
    split: Split


@dataclass(frozen=True, slots=True)
class Book:
    """The suite's ledger as it was read: entries by the case's name, and the looks at the sealed split."""

    folder: Path
    seed: int = 0
    entries: Mapping[str, Entry] = field(default_factory=dict)
    looks: int = 0

    @classmethod
    def read(cls, folder: Path) -> Book:
        """The book of a suite; an empty one where there is none yet. Raises: LedgerError, SuiteError
        `suite.ledger`."""
        if not (folder / RUN / "trace.jsonl").is_file():
            return cls(folder)
        seed, entries, looks = 0, {}, 0
        for record, _ in FileLedgers(folder).reader(RUN).read():
            body = record.body
            try:
                if record.kind == Kind.GENESIS:
                    seed = int(body["seed"])
                elif record.kind == CASE:
                    split = body["split"]
                    if split not in SPLITS:
                        raise KeyError(split)
                    entries[str(body["name"])] = Entry(str(body["hash"]), split)
                elif record.kind == LOOK:
                    looks += 1
            except (KeyError, TypeError, ValueError) as error:
                raise SuiteError(
                    "suite.ledger",
                    f"record {record.seq} of the ledger of {folder} is none of a suite",
                    "put the folder ledger back from a copy",
                ) from error
        return cls(folder, seed, entries, looks)

    def enter(self, cases: Sequence[tuple[str, str]]) -> Book:
        """The book with these cases, `(name, hash)`; those that it has already are left. Durable."""
        new = [
            (name, digest)
            for name, digest in cases
            if self.entries.get(name, Entry("", "train")).hash != digest
        ]
        if not new:
            return self
        seed = self.seed or secrets.randbits(52) | 1
        with _opened(self.folder, seed) as ledger:
            fresh = Book.read(self.folder)
            listed = []
            for name, digest in new:
                known = fresh.entries.get(name)
                split = known.split if known is not None else draw(fresh.seed, digest)
                listed.append(_record(CASE, {"name": name, "hash": digest, "split": split}))
            ledger.append(listed)
            ledger.flush()
        return Book.read(self.folder)

    def look(self, by: str, experiment: str, cases: Sequence[str]) -> Book:
        """Note that somebody runs cases of the sealed split. Durable before it returns."""
        body = {"split": "sealed", "by": by, "experiment": experiment, "cases": sorted(cases)}
        with _opened(self.folder, self.seed or 1) as ledger:
            ledger.append([_record(LOOK, body)])
            ledger.flush()
        return Book.read(self.folder)


def draw(seed: int, digest: str) -> Split:
    """The split of a case, from the suite's seed and the case's hash alone."""
    number = int.from_bytes(hashlib.sha256(f"{seed}/{digest}".encode()).digest()[:7], "big") % 100
    for split, share in SPLITS.items():
        if number < share:
            return split
        number -= share
    raise AssertionError("the shares make 100")


def _opened(folder: Path, seed: int) -> Any:
    ledgers = FileLedgers(folder, WAIT_S)
    try:
        return ledgers.open(RUN)
    except LedgerError as error:
        if error.code != "ledger.unknown_run":
            raise
    try:
        return ledgers.create(
            RUN, Record(Kind.GENESIS, Authority.HOST, {"suite": 1, "seed": seed}, at=_now())
        )
    except LedgerError as error:
        if error.code != "ledger.exists":
            raise
        return ledgers.open(RUN)


def _record(kind: str, body: Mapping[str, Any]) -> Record:
    return Record(kind, Authority.HOST, body, at=_now())


def _now() -> int:
    return time.time_ns() // 1_000_000
