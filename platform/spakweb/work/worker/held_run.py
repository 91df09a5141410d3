"""One run while this process holds its lease: do what people asked of it, advance it, write its projection.

`HeldRun(row, runner).go(slice_s)` gives the lease back when the run ended, waits, was paused, or the slice is
over. One `Watcher` thread per process reads what people want of the runs that are held, stops those that are
to stop, and keeps their rows up to date. `stop_advancing()` stops all of them at their next step.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection, transaction
from django.utils import timezone

from spak import canon, config
from spak.errors import UserError, of_host
from spak.kernel.state import State as KernelState
from spak.ports import Heard
from spak.program import Mode
from spak.records import Kind, Record
from spak.runner import Run as Runner
from spak.runner.perform import Proposed
from spakweb.ground.unsafe_text import without_nul
from spakweb.store.hints import output
from spakweb.store.ledger import store
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger.projection import Projection, put
from spakweb.store.ledger.store import DatabaseLedger
from spakweb.store.ledger.writer import lost_lease
from spakweb.store.runs.models import Command, Run
from spakweb.store.runs.signing import signed
from spakweb.work.jobs import work
from spakweb.work.worker import queue, slots
from spakweb.work.worker.open_run import NOTHING

WATCH_S = 0.25
"""How often what people want of running runs is read, and the projections of some are written."""
LOST = ("ledger.busy", "ledger.lost_lease", "ledger.exists")
"""Somebody else has the run: nothing of it is ours to write."""
SAVED = 16
"""Projections of one such moment."""

_ASKED = f"SELECT * FROM {Command._meta.db_table} WHERE run_id = %s AND done_at IS NULL ORDER BY id"

log = logging.getLogger(__name__)


class HeldRun:
    """One run while this process holds its lease."""

    def __init__(self, row: Run, runner: Runner) -> None:
        self.row, self.runner = row, runner
        assert isinstance(runner.ledger, DatabaseLedger)
        self.ledger = runner.ledger
        begun, runner.begun = runner.begun, ()
        self._new = self.ledger.row is row and len(begun) == self.ledger.count
        """Just begun: the row is as it was when the lease was taken, its records are at hand, and as it has
        asked nobody, nobody has asked anything of it."""
        if not self._new:
            row.refresh_from_db()
        self.seen = self._projected(begun)
        self.folded, self.state = runner.ledger.count, runner.state
        """The records so far, and the state that they lead to: the runner's own may be ahead of them."""
        self.wanted = ""
        self.news = True
        self._lock = threading.Lock()
        self._edge = threading.Lock()
        """Held while the watcher does something to the run; after `_leave` it does nothing more."""
        self._left = self._broken = False
        runner.listeners.append(self._heard)
        runner.performer.while_waiting = lambda: slots.without_slot(lambda: self._broken)
        runner.performer.hearing = self._hearing

    def _projected(self, begun: Sequence[Record]) -> Projection:
        """The projection of the records so far."""
        known = self.row.projected if self.row.projected <= self.ledger.count else 0
        seen = Projection(self.row.summary if known else None)
        for record in begun if self._new else (record for record, _ in self.ledger.read(known)):
            seen.feed(record)
        return seen

    def go(self, slice_s: float) -> bool:
        """Advance for a slice and give the lease back; True when there is more to do."""
        until = time.monotonic() + slice_s
        more = True
        try:
            with starts:
                only_stops = self.runner.performer.host is NOTHING
                called = not only_stops and not self._new and self._obey()
                if only_stops or self.row.wanted:
                    self.break_off(self.row.wanted)
                else:
                    self._route(self.runner.state)
                connection.close()  # while it works a run needs none: the writer has its own
            self.save_progress()
            watcher.add(self)
            try:
                stop = self.runner.advance(self._mode(), self._auto(), called, until)
            finally:
                self._leave()
            more = self._stopped(stop, self.wanted)
        except UserError as error:  # a model gave no answer: nothing is recorded, the question is open
            if not error.code.startswith("llm."):
                raise
            log.warning("run %s: %s: %s", self.row.key, error.code, error.message)
            reason = f"{error.code}: {error.message}"
            if not self.row.trial:
                self._save("waiting", reason[:200])
            elif of_host(error):
                self._save("gone")
                raise  # no person calls the backend again: the run rests and is tried again
            else:
                self._give_up(reason)
            more = False
        finally:
            try:
                self.runner.close()
            finally:
                close_old_connections()
        return more

    def break_off(self, wanted: str) -> None:
        """Stop the runner before its next effect; one that is under way is broken off, and its sandbox with
        it."""
        with self._edge:
            if self._left or self._broken:
                return
            self._broken, self.wanted = True, wanted
            self.runner.performer.cancel.set()

    def save_progress(self) -> None:
        """Write the projection if something happened since the last time."""
        with self._edge:
            if not self._left and self.news:
                self._save("")

    def _hearing(self) -> AbstractContextManager[Heard | None]:
        redactor = self.runner.performer.redactor
        return output.sender.hearing(self.row.key, self.ledger.fence, self.ledger.count, redactor)

    def _leave(self) -> None:
        with self._edge:
            self._left = True
        watcher.drop(self)

    def _stopped(self, stop: str, wanted: str) -> bool:
        """Write how it stands; True when there is more to do."""
        if wanted == "cancel":
            self.runner.cancel()
        elif self.row.trial and stop == "waiting":
            self._give_up(f"web.trial_asks: task {self.runner.pending().task} asks a person")
            return False
        elif wanted == "pause" and not Run.objects.filter(pk=self.row.pk, wanted=wanted).exists():
            wanted = ""  # somebody resumed it while it came to a stop
        if self.runner.state.ended or stop in ("waiting", "ended") or wanted == "pause":
            self._save("paused" if wanted == "pause" else stop, done=wanted)
            return not self.runner.state.ended and bool(self._asked())
        self._save("gone")
        return True

    def _give_up(self, reason: str) -> None:
        """End a run of an experiment or campaign without a result: no person goes on with it."""
        self.runner.cancel()
        self._save("ended", reason[:200])

    def _heard(self, record: Record, state: KernelState) -> None:
        with self._lock:
            self.seen.feed(record)
            self.folded, self.state = record.seq + 1, state
            self.news = True
        if record.kind == Kind.PERMIT:
            self._route(state)

    def _route(self, state: KernelState) -> None:
        """A queue is a property of an effect: stop before one that belongs to workers of another queue."""
        name = queue.queue_of(state.r6, self.runner)
        name = self.row.gpu if name == queue.GPU else name
        if self.row.queue in (queue.DEFAULT, self.row.gpu) and name not in ("", *settings.WORKER_QUEUES):
            Run.objects.filter(pk=self.row.pk, fence=self.ledger.fence).update(queue=name)
            self.runner.performer.cancel.set()

    def _save(self, stop: str, reason: str = "", done: str = "") -> None:
        """Hand in how it stands now: the writer writes it, and tells of it."""
        with self._lock:
            seen, self.row.count = Projection(canon.loads(canon.dumps(self.seen.data))), self.folded
            state = self.state
            self.news = False
        waits = not state.ended and state.r6 is not None and state.r6.cls == "ask"
        prompt = self.runner.performer.prompt(self.runner.pending()) if waits and stop else None
        put(self.row, seen, state, stop, prompt)
        self.row.reason = without_nul(reason) or self.row.reason
        self.ledger.show(self.row, done)

    def _asked(self) -> list[Command]:
        """What was asked and is not done: each slice looks, so the query is not composed anew each time."""
        return list(Command.objects.raw(_ASKED, [self.row.pk]))

    def _obey(self) -> bool:
        """Do what people asked, oldest first; True when the backend is to answer the pending question."""
        called = False
        for command in self._asked():
            try:
                outcome = self._do(command)
            except UserError as error:
                if error.code in LOST:
                    raise
                outcome = f"{error.code}: {error.message}"
            called = called or (command.kind == "call" and not outcome)
            self._done(command, outcome)
        return called

    def _done(self, command: Command, outcome: str) -> None:
        """Raises: LedgerError `ledger.lost_lease`: then the next runner does what was asked."""
        with transaction.atomic():
            mine = Run.objects.select_for_update(no_key=True).filter(pk=self.row.pk, fence=self.ledger.fence)
            if not mine.values_list("pk").first():
                raise lost_lease(self.row.key)
            command.outcome, command.done_at = without_nul(outcome[:200]), timezone.now()
            command.save(update_fields=["outcome", "done_at"])

    def _do(self, command: Command) -> str:
        if command.kind == "extend":
            wanted = command.body
            self.runner.extend(str(wanted["budget"]), int(wanted["by"]), command.by.get_username())
            return ""
        pending = self.runner.state.r6
        if self.runner.state.ended or pending is None or pending.id != command.body.get("of"):
            return "the run is no longer waiting for this"
        if command.kind == "call" and self.runner.performer.host.backend is None:
            return "no backend is set up where this run executes: type the answer"
        if command.kind == "answer":
            self.runner.answer(str(command.body.get("text", "")), by=command.by.get_username())
        elif command.kind in ("approve", "deny"):
            expires, keys = command.body.get("expires", 600), self.runner.rules.keys
            body = signed(self.runner.state.run, pending, command.kind, expires, command.by, keys)
            self.runner.feed(Proposed(Kind.APPROVAL, body, {"by": command.by.get_username()}))
            self.runner.flush()
        return ""

    def _mode(self) -> Mode:
        known = self.row.mode
        return known if known in config.MODES else "stepwise"

    def _auto(self) -> int:
        return self.runner.rules.program.auto_steps or 1


class Watcher:
    """One thread for all runs that this process advances: it reads what people want of them, stops those
    that are to stop, and keeps their rows up to date, some at a time."""

    def __init__(self) -> None:
        self._held: dict[int, HeldRun] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._none_left = threading.Event()

    def add(self, holding: HeldRun) -> None:
        """Watch over a run that is held, from now on."""
        with self._lock:
            self._none_left.clear()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="run-watch", daemon=True)
                self._thread.start()  # first: it fails where the host has no thread left
            self._held[holding.row.pk] = holding

    def drop(self, holding: HeldRun) -> None:
        """Watch over a run no longer."""
        with self._lock:
            self._held.pop(holding.row.pk, None)
            if not self._held:
                self._none_left.set()

    def _work(self) -> None:
        while True:
            self._none_left.wait(WATCH_S)
            with self._lock:
                if not self._held:
                    self._thread = None
                    break
                held = dict(self._held)
            try:
                self._look(held)
            except DatabaseError as error:  # the runners hear of it by their own writes
                log.warning("runs are not watched: %s", type(error).__name__)
                connection.close()
            except Exception:  # the thread must live on: nobody else stops these runs
                log.exception("runs are not watched")
        connection.close()

    def _look(self, held: dict[int, HeldRun]) -> None:
        asked = Run.objects.filter(pk__in=held).exclude(wanted="").order_by()
        wanted = dict(asked.values_list("pk", "wanted"))
        for pk in held if stopping.is_set() else wanted:
            held[pk].break_off(wanted.get(pk, ""))
        new = [holding for holding in held.values() if holding.news][:SAVED]
        if new:
            for holding in new:
                holding.save_progress()
            with self._lock:  # these go behind the others
                for holding in new:
                    if self._held.pop(holding.row.pk, None) is not None:
                        self._held[holding.row.pk] = holding


watcher = Watcher()
starts = threading.BoundedSemaphore(16)
"""Runs of one process that read what was asked of them at the same time, each over a connection."""


def _after_fork() -> None:
    global watcher
    watcher = Watcher()


os.register_at_fork(after_in_child=_after_fork)

stopping = work.stopping
"""Set when this process is to end: runs are put down where they are, and no job is begun."""


def stop_advancing() -> list[str]:
    """Stop advancing in this process; gives the runs that are still held."""
    stopping.set()
    writing.writer.hurry()
    return store.leases.held()
