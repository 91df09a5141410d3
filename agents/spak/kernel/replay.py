"""Replay: derive every commit again from the proposals of a ledger, and compare.

Takes records in order, one at a time; gives the state, and the first difference if there is one. The same
object resumes a run: commits that a crash cut off the end are in `missing`. It needs no model, no sandbox and
no workspace. Host records are ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from spak.errors import LedgerError
from spak.kernel.gate import Judged
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.kernel.step import step
from spak.records import Authority, Kind, Record


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the ledger and the derivation part: what stands there, what should."""

    seq: int
    found: Mapping[str, Any] | None
    expected: Mapping[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        """The difference as commands print it."""
        return {"seq": self.seq, "found": self.found, "expected": self.expected}


@dataclass(slots=True)
class Replay:
    """Feed it records; read `state`, `difference` and `missing`.

    Commits are compared by their members, and where these differ by their content, which is of canonical
    bytes: to Python `true` is 1, and in a record 1.0 is 1.
    """

    rules: Rules | None = None
    state: State = field(default_factory=State)
    records: int = 0
    difference: Difference | None = None
    missing: deque[Record] = field(default_factory=deque)
    """Commits derived but not yet seen."""
    _contents: deque[str] = field(default_factory=deque)
    judged: dict[str, Judged] = field(default_factory=dict)
    """What the permits of the last proposal were derived from, by their content."""

    def feed(self, record: Record) -> None:
        """Take the next record. After the first difference the rest is only counted.

        Raises: LedgerError `ledger.genesis` or `ledger.semantics`, SpecError: genesis is not usable.
        """
        self.records += 1
        if self.difference is not None or record.authority == Authority.HOST:
            return
        if record.authority == Authority.COMMIT:
            self._compare(record)
            return
        if self.missing:
            self._differ(record)
            return
        if self.rules is None:
            if record.kind != Kind.GENESIS:
                raise LedgerError("ledger.genesis", "the first record is not a genesis")
            self.rules = Rules.of(record.body)
        stepped = step(self.rules, self.state, record)
        self.state = stepped.state
        self.missing.extend(stepped.commits)
        self._contents.extend(stepped.contents)
        self.judged = {stepped.contents[index]: judged for index, judged in stepped.judged}

    def finish(self) -> None:
        """No more records will come: commits still missing are a difference (a cut, unless resumed)."""
        if self.missing and self.difference is None:
            self.difference = Difference(self.records, None, _decision(self.missing[0]))

    def _compare(self, record: Record) -> None:
        expected = self.missing.popleft() if self.missing else None
        content = self._contents.popleft() if expected is not None else ""
        if expected is None or not (_alike(expected, record) or content == record.content):
            self.difference = Difference(
                record.seq, _decision(record), None if expected is None else _decision(expected)
            )

    def _differ(self, record: Record) -> None:
        self.difference = Difference(record.seq, _decision(record), _decision(self.missing[0]))


def replay(records: Iterable[Record]) -> Replay:
    """Replay a whole ledger and close it."""
    found = Replay()
    for record in records:
        found.feed(record)
    found.finish()
    return found


def _alike(one: Record, two: Record) -> bool:
    """True only for commits of the same content; false for some, whose hashes tell."""
    return one[3:6] == two[3:6] and one.kind == two.kind and _same(one.body, two.body)


def _same(one: Any, two: Any) -> bool:
    if type(one) is not type(two):
        return False
    if type(one) is dict:
        if len(one) != len(two):
            return False
        for name, value in one.items():
            other = two.get(name)
            if type(value) is str is type(other):
                if value != other:
                    return False
            elif name not in two or not _same(value, other):
                return False
        return True
    return bool(one == two) if type(one) in (str, int, bool, NoneType) else False


def _decision(record: Record) -> Mapping[str, Any]:
    return {
        "kind": record.kind,
        "task": record.task,
        "step": record.step,
        "attempt": record.attempt,
        "body": dict(record.body),
    }
