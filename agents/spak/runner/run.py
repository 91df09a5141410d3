"""One run under a lease: create or open it, advance it until it ends, waits or is stopped.

Order of writing (DESIGN.md section 3): `act i, route i, permit i+1` go into the ledger in one append; what
must be durable before effect i+1 is flushed before it is done.

    pure     may be repeated: shares an fsync with others, at most SHARED records late
    costly   flushed after
    effect   flushed before and after; the workspace holds a write-ahead file while it is done

A lease can be lost while its holder is stopped. So the workspace lock is held from before an effect begins
until its outcome is proposed; it admits nobody with an older lease (spak.workspace.lock), and under it, right
before a tool is started, the lease is confirmed. A runner that wakes too late does nothing.

Opening a run is replaying it, from its last snapshot on (spak.runner.resume): commits that a crash cut off
are appended, the workspace goes back to R3, and the pending effect is done again. Only proposals can be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from spak import canon, data
from spak.cancel import Cancelled
from spak.errors import BugError, LedgerError, RunError, UserError
from spak.kernel import permit
from spak.kernel.budget import extend
from spak.kernel.gate import Judged
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, State
from spak.kernel.step import expects, step
from spak.ports import Ledger, Ledgers
from spak.program import Mode
from spak.records import Authority, Kind, Record
from spak.runner.archive import LedgerArchive
from spak.runner.blobs import expand
from spak.runner.host import Host
from spak.runner.perform import Performer, Proposed
from spak.runner.resume import new_history, snapshot_of, take_up
from spak.runner.views.tally import Tally
from spak.workspace import Workspace

SHARED = 200
"""Records of pure steps that may share one fsync."""

WAKE_S = 0.1
"""Seconds between two looks whether a run that waits for a poll has to stop."""

EVERY, LEAST = 1_000, 200
"""Records after which a run under way keeps a snapshot, and after which one that stops does: they bound what
has to be replayed when it is taken up."""

PROOFS = 256
"""Explanations whose blobs need not be looked for again."""

PERSON = "person"
"""Who gave an answer by hand, where nothing else is said."""

Stop = Literal["ended", "waiting", "paused", "interrupted"]
Listener = Callable[[Record, State], None]


@dataclass(slots=True)
class _Asks:
    """How many questions may still be put to the backend before the run stops."""

    left: float

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


class Run:
    """A run whose lease this process holds. Use `create` or `open`; `close` when done."""

    def __init__(self, ledger: Ledger, workspace: Workspace, host: Host, rules: Rules, state: State) -> None:
        self.ledger = ledger
        self.workspace = workspace
        self.rules = rules
        self.state = state
        self.history = new_history(rules)
        self.tally = Tally()
        self.discarded: LedgerError | None = None
        """Why a snapshot of the run was not used when it was taken up."""
        self.performer = Performer(
            host, workspace, ledger.blobs, rules, LedgerArchive(ledger), confirm=ledger.confirm,
            forbids=lambda effect, *of: permit.forbids(self.rules, self.state, effect, *of),
        )  # fmt: skip
        self.listeners: list[Listener] = []
        self.begun: tuple[Record, ...] = ()
        """The records that a new run was created with, for who listens from then on."""
        self._unflushed = 0
        self._kept = 0
        """How many records the snapshot has seen."""
        self._whole = (ledger.count, state)
        """The number of records and the state that belong together."""
        self._proofs: dict[bytes, str] = {}

    # ---- opening and closing ---------------------------------------------------------------------------

    @classmethod
    def create(
        cls, ledgers: Ledgers, run: str, genesis: Mapping[str, Any], host: Host, workspace: Workspace
    ) -> Run:
        """A new run: its genesis is durable, its first permit is decided.

        Raises: SpecError, LedgerError.
        """
        rules = Rules.of(genesis)
        record = Record(Kind.GENESIS, Authority.PROPOSAL, genesis, at=now())
        ledger = ledgers.create(run, record)
        made = cls(ledger, workspace, host, rules, State())
        try:
            if ledger.fence:
                workspace.take(ledger.fence)
            first = _read_back(record)._replace(seq=0)
            seen = [first]
            made.listeners.append(lambda record, _: seen.append(record))
            made._decide(first, written=True)
            made.listeners.clear()
            made.begun = tuple(seen)
        except BaseException:
            ledger.close()
            raise
        return made

    @classmethod
    def open(
        cls,
        ledgers: Ledgers,
        run: str,
        host: Host,
        workspace: Workspace,
        *,
        restore: bool = True,
        to_cancel: bool = False,
    ) -> Run:
        """Take up a run where its ledger ends. One that is only to be cancelled needs no files.

        Raises: LedgerError `ledger.busy`, `ledger.unknown_run`, `ledger.tampered`, `ledger.diverged`;
        RunError `workspace.changed` when files changed meanwhile and `restore` is off.
        """
        ledger = ledgers.open(run)
        try:
            return cls._resume(ledger, host, workspace, restore, to_cancel)
        except BaseException:
            ledger.close()
            raise

    @classmethod
    def _resume(cls, ledger: Ledger, host: Host, workspace: Workspace, restore: bool, to_cancel: bool) -> Run:
        taken = take_up(ledger)
        found = taken.replay
        assert found.rules is not None
        workspace.draw_on(ledger.blobs)
        made = cls(ledger, workspace, host, found.rules, found.state)
        made.history, made.tally = taken.history, taken.tally
        made._kept, made.discarded = taken.start, taken.discarded
        with made._taking(to_cancel):
            if found.state.ended and not found.missing:
                made._undo_refused_step()
                return made
            if found.missing:
                made._append([made._proven(record, found.judged) for record in found.missing])
            if not made.state.ended and not to_cancel:
                made._recover(restore)
                made._host(Kind.RESUME, {"records": ledger.count, "kernel_code": data.kernel_code()})
            made.flush()
        return made

    @contextmanager
    def _taking(self, to_cancel: bool) -> Iterator[None]:
        """The workspace, locked, with every older lease shut out; ours is confirmed before anything is done.

        Raises: RunError `workspace.busy`; LedgerError `ledger.lost_lease`.
        """
        if not self.ledger.fence:
            yield
            return
        try:
            self.workspace.take(self.ledger.fence)
        except RunError as error:
            if not to_cancel or error.code == "workspace.busy":
                raise
            yield  # its files are damaged, and nothing will be done in them
            return
        with self.workspace.lock():
            self.ledger.confirm()
            yield

    def close(self) -> None:
        """Flush, keep a snapshot and give the lease back."""
        try:
            if not self.state.ended or self._unflushed:
                self.flush()
            self.keep_snapshot(LEAST)
            if self.state.ended:
                self.ledger.conclude()
        finally:
            self.performer.host.release()
            self.ledger.close()
            self._put_aside()

    def _put_aside(self) -> None:
        """The scratch repository out of the way, last of all: nothing comes between the end of a run and that
        of its lease. Where somebody else works by now it is theirs."""
        with suppress(OSError, UserError), self.workspace.lock():
            self.performer.repositories.put_aside(ended=self.state.ended)

    def flush(self) -> None:
        """Make everything so far durable and drop write-ahead files that are no longer needed."""
        if self._unflushed:
            self.ledger.blobs.flush()
            self.ledger.flush()
            self._unflushed = 0
        if self._whole[1] is self.state:  # else interrupted before the outcome of a step was handed in
            self.workspace.settle()

    def keep_snapshot(self, least: int = 0) -> None:
        """Keep the state beside the ledger if at least so many records came since the last time, of a run
        that ended since its beginning; none of such a run where the ledger has no use for it. What cannot be
        kept is left out: whoever takes the run up replays."""
        count, state = self._whole
        if count != self.ledger.count or state is not self.state:
            return  # interrupted between a decision and its records
        if state.ended and not self.ledger.keeps_ended:
            if self._kept:
                self._kept = 0
                with suppress(UserError):
                    self.ledger.keep(None)
        elif count > self._kept and count - (0 if state.ended else self._kept) >= least:
            self.flush()
            with suppress(UserError):
                self.ledger.keep(snapshot_of(self.ledger, self.rules, state, self.history, self.tally))
            self.workspace.keep_index()
            self._kept = count

    # ---- advancing -------------------------------------------------------------------------------------

    def advance(
        self, mode: Mode, auto: int = 0, answer_now: bool = False, until: float | None = None
    ) -> Stop:
        """Go on until the run ends, waits for an answer, or `until` (a monotonic time in seconds) has passed.

        stepwise stops at every question, semi_auto after `auto` of them, full_auto at none that the backend
        answers. `answer_now` puts the pending question to the backend whatever the mode.
        """
        asks = _Asks({"stepwise": 0, "semi_auto": auto, "full_auto": float("inf")}[mode] + answer_now)
        try:
            while not self.state.ended:
                effect = self.pending()
                if self.performer.cancel.is_set():
                    return "interrupted"
                if until is not None and time.monotonic() >= until:
                    return "paused"
                asking = effect.cls == "ask" and self.performer.host.backend is not None and asks.left > 0
                counted = self.performer.measured(effect, asking)
                if counted is not None:
                    self.feed(counted)
                    continue
                if effect.act == "approve" or (
                    effect.cls == "ask" and not (self.performer.host.backend and asks.take())
                ):
                    return "waiting"
                if effect.due and (stop := self._wait(effect, until)):
                    return stop
                if not self._do(effect):
                    return "waiting"
                self.keep_snapshot(EVERY)
            return "ended"
        except Cancelled:
            return "interrupted"
        finally:
            self.flush()

    def pending(self) -> Effect:
        """The effect that the run waits for."""
        if self.state.r6 is None:
            raise BugError("bug.no_effect", f"run {self.ledger.run} neither ended nor waits for anything")
        return self.state.r6

    def answer(self, text: str, by: str = PERSON) -> None:
        """Give the pending question an answer.

        The prompt is measured first where a budget depends on it, as `advance` does: a process may have died
        before it did. Raises: RunError `run.not_waiting`, also when the prompt exceeds that budget.
        """
        asked = effect = self._question()
        try:
            while (counted := self.performer.measured(effect, asking=False)) is not None:
                self.feed(counted)
                effect = self._question()
                if (effect.task, effect.step) != (asked.task, asked.step):
                    raise self._not_waiting()
            self.feed(self.performer.answer(effect, text, by))
        finally:
            self.flush()

    def _question(self) -> Effect:
        effect = self.state.r6
        if effect is None or effect.cls != "ask" or effect.act == "approve":
            raise self._not_waiting()
        return effect

    def _not_waiting(self) -> RunError:
        return RunError(
            "run.not_waiting",
            f"run {self.ledger.run} is not waiting for an answer",
            "spak show shows where it is",
        )

    def approve(self, body: Mapping[str, Any]) -> None:
        """Give the pending action a signed approval (spak.policy.approval); the kernel verifies it.

        Raises: RunError `run.no_approval` when nothing waits for one.
        """
        effect = self.state.r6
        if effect is None or effect.act != "approve":
            raise RunError(
                "run.no_approval",
                f"run {self.ledger.run} is not waiting for an approval",
                "spak show shows what the run waits for",
            )
        self.feed(Proposed(Kind.APPROVAL, body))
        self.flush()

    def last_answer(self) -> str | None:
        """The text of the last answer that was taken, or None."""
        found = None
        for record, _ in self.ledger.read():
            if record.kind == Kind.ACT and record.body.get("outcome") == "answered":
                found = record.body.get("out", "")
        return None if found is None else str(expand(found, self.ledger.blobs))

    def adopt(self, proposals: Iterable[Record]) -> None:
        """Feed proposals that another run recorded (a fork's); they keep their clocks and side notes."""
        for record in proposals:
            self._decide(record._replace(seq=-1, hash=""))
        self.flush()

    def cancel(self) -> None:
        """End the run as cancelled; an ended run stays as it is, its ledger too."""
        if self.state.ended:
            return
        self.feed(Proposed(Kind.CONTROL, {"cancel": True}))
        self.flush()

    def extend(self, budget: str, by: int, who: str = "") -> None:
        """Add to a budget of the run while it is under way; `who` asked goes into the record's notes.

        Raises: RunError `budget.*` with nothing recorded where the kernel would refuse it.
        """
        asked = {"budget": budget, "by": by}
        if found := extend.refusal(self.rules, self.state, asked):
            raise RunError(found.code, found.message, found.knob)
        self.feed(Proposed(Kind.CONTROL, {"extend": asked}, {"by": who} if who else {}))
        self.flush()

    def feed(self, proposed: Proposed) -> None:
        """Record a proposal and what the kernel decides on it, in one append."""
        pending = self.state.r6
        place = self.state.r0
        record = Record(
            proposed.kind,
            Authority.PROPOSAL,
            proposed.body,
            place.task,
            place.step,
            place.attempt,
            self.ledger.count,
            now(),
            proposed.side,
        )
        if proposed.kind != Kind.CONTROL and not expects(self.state, record):
            self._host(
                Kind.LATE, {"of": proposed.body.get("of", ""), "pending": pending.id if pending else ""}
            )
            return
        self._decide(record)

    def _wait(self, effect: Effect, until: float | None) -> Stop | None:
        """Wait until a poll is due; how the run stops where it has to stop before. Never longer than the
        step's interval, whatever became of the clock."""
        self.flush()
        ends = time.monotonic() + min(effect.due - now(), self._interval_ms(effect)) / 1000
        while (left := ends - time.monotonic()) > 0:
            if self.performer.cancel.is_set():
                return "interrupted"
            if until is not None and time.monotonic() >= until:
                return "paused"
            time.sleep(min(left, WAKE_S))
        return None

    def _interval_ms(self, effect: Effect) -> int:
        """Milliseconds between two polls of the step that an effect belongs to."""
        step = self.rules.program.tasks[effect.task].step(effect.step)
        return step.poll.every_ms if step is not None and step.poll is not None else 0

    def _do(self, effect: Effect) -> bool:
        if effect.cls == "effect":
            with self.workspace.lock(self.performer.cancel):
                self.flush()
                proposed = self.performer.perform(effect, self.history)
        else:
            if self._unflushed > SHARED:
                self.flush()
            proposed = self.performer.perform(effect, self.history)
        if proposed is None:
            return False
        if effect.due:  # the wait for a poll counts, or a BUDGET of time would not bound it
            waited, side = self._interval_ms(effect), proposed.side
            side = {**side, "waited_ms": waited, "ms": side.get("ms", 0) + waited}
            proposed = proposed._replace(side=side)
        self.feed(proposed)
        root = proposed.body.get("r3")
        if effect.cls == "effect" and root is not None and root != self.state.r3:
            self.workspace.rollback()  # done, and then decided against: a broken invariant
        if effect.cls == "costly":
            self.flush()
        return True

    def _decide(self, record: Record, written: bool = False) -> None:
        seen = record if written else _read_back(record)._replace(seq=self.ledger.count)
        stepped = step(self.rules, self.state, seen)
        self.state = stepped.state
        commits = list(stepped.commits)
        for index, judged in stepped.judged:
            commits[index] = commits[index]._replace(side=self._proof(judged))
        self._append([*([] if written else [seen]), *commits])

    def _proof(self, judged: Judged) -> Mapping[str, Any]:
        """The side note of a permit: the blob of its proof, or of what was missing for it, and whether an
        approval that holds is among its facts."""
        text = self.rules.gate.explanation(judged)
        digest = self._proofs.get(text)
        if digest is None:
            if len(self._proofs) >= PROOFS:
                self._proofs.clear()
            digest = self._proofs[text] = self.ledger.blobs.put(text)
        signed = any(name == "signed_approval" for name, _ in judged.facts)
        return {"proof": digest, "signed": True} if signed else {"proof": digest}

    def _proven(self, record: Record, judged: Mapping[str, Judged]) -> Record:
        """A commit that a crash cut off, with its proof beside it if it is a permit."""
        found = judged.get(record.content)
        return record if found is None else record._replace(side=self._proof(found))

    def _append(self, records: list[Record]) -> None:
        for record in self.ledger.append(records):
            self.history.feed(record)
            self.tally.feed(record)
            for listener in self.listeners:
                listener(record, self.state)
        self._unflushed += len(records)
        self._whole = (self.ledger.count, self.state)

    def _host(self, kind: str, body: Mapping[str, Any]) -> None:
        self._append([Record(kind, Authority.HOST, body, at=now())])

    def _undo_refused_step(self) -> None:
        """A run that ended with a rollback and died before it was done: do it now."""
        under_way = self.workspace.pending()
        if under_way is not None:
            undone = under_way.root == self.state.r3
            self.workspace.recover(under_way.effect if undone else None, self.state.r3)

    def _recover(self, restore: bool) -> None:
        """Bring the workspace back to R3: first what a crash left half done, then what others changed."""
        pending = self.state.r6
        self.workspace.recover(pending.id if pending else None, self.state.r3)
        root = self.workspace.snapshot()
        if root == self.state.r3:
            return
        if not restore:
            raise RunError(
                "workspace.changed",
                "files in the workspace changed while the run was stopped",
                "undo the changes, or start a new run from them",
            )
        self.workspace.restore(self.state.r3)
        self._host(Kind.ROLLBACK, {"from": root, "to": self.state.r3})


def now() -> int:
    """Unix time in milliseconds, as records carry it."""
    return time.time_ns() // 1_000_000


def _read_back(record: Record) -> Record:
    """The record as the ledger will give it back: live run and replay must see the same."""
    text = canon.dumps(record.body)
    return record._replace(body=canon.loads(text), side=canon.loads(canon.dumps(record.side)), text=text)
