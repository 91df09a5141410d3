"""Taking up a run: its state and history after the records that its ledger has.

From the snapshot that the ledger kept, and then only the records after it are replayed; from the first record
where there is none or where anything about it is in doubt: other rules, another version, damage, records that
do not follow from it. A snapshot that is not used is thrown away, and `discarded` says why. `look` does the
same for who only reads, and throws nothing away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from spak.errors import LedgerError
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.snapshot import Outdated, Snapshot, Unusable, encode, equal, pack, unpack
from spak.kernel.state import State
from spak.ledger.snapshots import discarded
from spak.ports import Ledger
from spak.records import Record
from spak.runner.history import History, rules_of
from spak.runner.origins import Origins
from spak.runner.views.tally import Tally


class TakenUp(NamedTuple):
    """`replay` has seen all records; `start` of them were not replayed."""

    replay: Replay
    history: History
    tally: Tally
    start: int
    discarded: LedgerError | None


def take_up(ledger: Ledger) -> TakenUp:
    """Raises: LedgerError `ledger.tampered`, `ledger.diverged`."""
    trouble: LedgerError | None = None
    try:
        kept = ledger.kept()
        if kept is not None:
            return _from(ledger, kept)
    except LedgerError as error:
        if error.code != "ledger.snapshot_discarded":
            raise
        trouble = error
        ledger.keep(None)
    found, history, tally = Replay(), History(), Tally()
    for record, _ in ledger.read():
        found.feed(record)
        if found.rules is not None and record.seq == 0:
            history = new_history(found.rules)
        history.feed(record)
        tally.feed(record)
    _must_follow(ledger, found)
    return TakenUp(found, history, tally, 0, trouble)


def look(ledger: Ledger) -> TakenUp | None:
    """The run as its snapshot and the records after it have it, for who looks at it and does not go on with
    it; None where there is no snapshot, or where it is in doubt: who looks then reads all records."""
    try:
        kept = ledger.kept()
        return None if kept is None else _from(ledger, kept)
    except LedgerError:
        return None


def snapshot_of(ledger: Ledger, rules: Rules, state: State, history: History, tally: Tally) -> Snapshot:
    """The snapshot of a run as it is. Raises: UserError `canon.value`."""
    data = pack(rules, ledger.count, ledger.head, state, beside(history, tally))
    return Snapshot(ledger.count, ledger.head, data)


def beside(history: History, tally: Tally) -> dict[str, Any]:
    """What a snapshot holds with the state."""
    return dict(sorted({**history.kept(), "tally": tally.kept()}.items()))


def new_history(rules: Rules) -> History:
    """The history of a run before its first record."""
    return History(rules=rules_of(rules.program), origins=Origins(rules.r3))


def _from(ledger: Ledger, kept: Snapshot) -> TakenUp:
    """Raises: LedgerError `ledger.snapshot_discarded`."""
    rules = Rules.of(next(iter(ledger.read()))[0].body)
    try:
        state, folds = unpack(kept.data, rules, kept.count, kept.head)
        history, tally = unfolded(rules, folds, ledger, kept.count)
    except (Unusable, KeyError, TypeError) as error:
        raise discarded(ledger.run, str(error)) from error
    found = Replay(rules, state, kept.count)
    for record, _ in ledger.read(kept.count):
        found.feed(record)
        history.feed(record)
        tally.feed(record)
    if found.difference is not None:
        raise discarded(ledger.run, f"record {found.difference.seq} does not follow from it")
    return TakenUp(found, history, tally, kept.count, None)


def unfolded(rules: Rules, folds: Mapping[str, Any], ledger: Ledger, count: int) -> tuple[History, Tally]:
    """What was kept `beside` the state after so many records of a ledger. Raises: KeyError, TypeError."""

    def earlier() -> Iterator[Record]:
        return takewhile(lambda record: record.seq < count, (record for record, _ in ledger.read()))

    return History.take_up(rules_of(rules.program), folds, earlier), Tally.take_up(folds["tally"])


class Comparison:
    """Whether a snapshot is what its records lead to. Feed it each record after `replay` has seen it, then
    ask for the `problem`. One of another version of spak is left out: it will not be used."""

    def __init__(self, kept: Snapshot | None, replay: Replay) -> None:
        self._kept = kept
        self._replay = replay
        self._history = History()
        self._tally = Tally()
        self._problem = "" if kept is None else "it is of other records"

    def feed(self, record: Record) -> None:
        """Take the next record of the replay that the snapshot is compared with."""
        kept, rules = self._kept, self._replay.rules
        if kept is None or rules is None or record.seq >= kept.count:
            return
        if record.seq == 0:
            self._history = new_history(rules)
        self._history.feed(record)
        self._tally.feed(record)
        if record.seq == kept.count - 1:
            self._problem = self._compared(kept, rules, record.hash)

    def problem(self) -> str:
        """Why it is damaged, or nothing. Of records that do not replay nothing is said."""
        replayed = self._replay.rules is not None and self._replay.difference is None
        return self._problem if replayed else ""

    def _compared(self, kept: Snapshot, rules: Rules, head: str) -> str:
        try:
            state, folds = unpack(kept.data, rules, kept.count, head)
        except Outdated:
            return ""
        except Unusable as error:
            return str(error)
        same = not self._replay.missing and equal(state, self._replay.state)
        if same and encode(folds) == encode(beside(self._history, self._tally)):
            return ""
        return "it is not the state that its records lead to"


def _must_follow(ledger: Ledger, found: Replay) -> None:
    if found.rules is None or found.difference is not None:
        raise LedgerError(
            "ledger.diverged",
            f"the records of run {ledger.run} do not follow from its proposals",
            f"see: spak replay {ledger.run} --json",
        )
