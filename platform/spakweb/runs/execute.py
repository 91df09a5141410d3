"""What a worker does with a run: take its lease, do what people asked of it, advance it, project it.

`advance(key, slice_s)` is idempotent and may be called by anybody at any time: the lease admits one. It comes
back when the run ended, waits, was paused, or the slice is over, and says whether it should be called again.
A runner that dies leaves a lease that ends by itself; the next call replays the ledger and goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone

from spak import config
from spak.errors import LedgerError, UserError
from spak.kernel.rules import Rules
from spak.kernel.state import State as KernelState
from spak.program import Mode
from spak.records import Kind, Record
from spak.runner import Run as Runner
from spak.runner.perform import Interrupted, Proposed
from spak.workspace import Workspace
from spakweb.runs import ledger as ledgers
from spakweb.runs import news
from spakweb.runs.approving import signed
from spakweb.runs.begin import begin
from spakweb.runs.ledger import DatabaseLedgers
from spakweb.runs.models import ENDED, Command, Run, State
from spakweb.runs.project import Projection, save

SLICE_S = 60.0
WATCH_S = 0.25
"""How often a running run's projection is written, and what people want of it is read."""

log = logging.getLogger(__name__)


def advance(key: str, slice_s: float = SLICE_S) -> bool:
    """Go on with a run; True when it should be called again (the slice is over, or more was asked of it)."""
    return advance_or_busy(key, slice_s) == "again"


def advance_or_busy(key: str, slice_s: float = SLICE_S) -> Literal["again", "stopped", "busy"]:
    """The same; "busy" when somebody else holds the run."""
    row = Run.objects.select_related("team", "version").get(key=key)
    if row.ended:
        return "stopped"
    try:
        runner = _take(row)
    except LedgerError as error:
        if error.code in ("ledger.busy", "ledger.lost_lease", "ledger.exists"):
            return "busy"
        raise
    except UserError as error:
        if row.count:
            raise
        _refused(row, error)
        return "stopped"
    return "again" if _Holding(row, runner).go(slice_s) else "stopped"


def _refused(row: Run, error: UserError) -> None:
    """The run could not begin: it has no records, and says why."""
    Run.objects.filter(pk=row.pk, count=0).update(
        state=State.FAILED,
        reason=f"{error.code}: {error.message}"[:200],
        ended_at=timezone.now(),
        holder="",
        lease_until=None,
        summary={"error": {"code": error.code, "message": error.message, "hint": error.hint}},
    )


def folder_of(key: str) -> Path:
    return Path(settings.DATA_DIR) / "runs" / key


def workspace_of(key: str) -> Workspace:
    folder = folder_of(key)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Workspace(folder / "workspace", folder / "store")


def _take(row: Run) -> Runner:
    if not row.count:
        with _alone(row.key):
            return begin(row, DatabaseLedgers(), workspace_of(row.key))
    store = DatabaseLedgers()
    first = next(iter(store.reader(row.key).read()))[0]
    rules = Rules.of(first.body)
    host = config.host(config.settings(), rules.program, row.backend)
    return Runner.open(store, row.key, host, workspace_of(row.key))


@contextlib.contextmanager
def _alone(key: str) -> Iterator[None]:
    """Before a run has a lease, only one on this host fills its workspace, and from nothing.

    Raises: LedgerError `ledger.busy`.
    """
    folder = folder_of(key)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "begin.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LedgerError("ledger.busy", f"run {key} is begun by another runner", "") from error
        if Run.objects.filter(key=key, count__gt=0).exists():
            raise LedgerError("ledger.busy", f"run {key} was begun by another runner", "")
        for name in ("workspace", "store"):  # what one that died while it filled them has left
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        yield


class _Holding:
    """One run while this process holds its lease."""

    def __init__(self, row: Run, runner: Runner) -> None:
        self.row, self.runner = row, runner
        row.refresh_from_db()
        self.seen = Projection(row.summary if row.projected == row.count else None)
        if row.projected != runner.ledger.count:
            self.seen = Projection()
            for record, _ in runner.ledger.read():
                self.seen.feed(record)
        self._lock = threading.Lock()
        self._news = True
        runner.listeners.append(self._heard)

    def go(self, slice_s: float) -> bool:
        until = time.monotonic() + slice_s
        again = True
        try:
            called = self._obey()
            self.keep_up()
            stop, wanted = "", self._wanted()
            if not wanted:
                with _Watching(self) as watched:
                    stop = self.runner.advance(self._mode(), self._auto(), called, until)
                wanted = watched.wanted or self._wanted()  # asked in the last moment
            again = self._stopped(stop, wanted)
        except Interrupted:  # between two calls: as if this process had died here, which it may at any point
            again = True
        finally:
            try:
                self.runner.close()
            finally:
                close_old_connections()
        return again

    def _wanted(self) -> str:
        return Run.objects.filter(pk=self.row.pk).values_list("wanted", flat=True).first() or ""

    def _stopped(self, stop: str, wanted: str) -> bool:
        """Write how it stands; True when there is more to do."""
        if wanted == "cancel":
            self.runner.cancel()
        if self.runner.state.ended or stop in ("waiting", "ended") or wanted == "pause":
            self._save("paused" if wanted == "pause" else stop)
            Run.objects.filter(pk=self.row.pk, wanted=wanted).update(wanted="")
            return not self.runner.state.ended and self._asked().exists()
        self._save("gone")
        return True

    def _heard(self, record: Record, state: KernelState) -> None:
        with self._lock:
            self.seen.feed(record)
            self._news = True

    def keep_up(self) -> None:
        """Write the projection if something happened since the last time."""
        with self._lock:
            if self._news:
                self._news = False
                self._save("")

    def _save(self, stop: str) -> None:
        state = self.runner.state
        waits = not state.ended and state.r6 is not None and state.r6.cls == "ask"
        prompt = self.runner.performer.prompt(self.runner.pending()) if waits and stop else None
        self.row.count, self.row.head = self.runner.ledger.count, self.runner.ledger.head
        save(self.row, self.seen, state, stop, prompt)
        news.tell(self.row.key, self.row.count)

    def _asked(self) -> Any:
        return Command.objects.filter(run=self.row, done_at=None).order_by("pk")

    def _obey(self) -> bool:
        """Do what people asked, oldest first; True when the backend is to answer the pending question."""
        called = False
        for command in self._asked().select_related("by"):
            try:
                outcome = self._do(command)
            except UserError as error:
                outcome = f"{error.code}: {error.message}"
            called = called or (command.kind == "call" and not outcome)
            command.outcome = outcome[:200]
            command.done_at = timezone.now()
            command.save(update_fields=["outcome", "done_at"])
        return called

    def _do(self, command: Command) -> str:
        pending = self.runner.state.r6
        if self.runner.state.ended or pending is None or pending.id != command.body.get("of"):
            return "the run does not wait for this any more"
        if command.kind == "answer":
            self.runner.answer(str(command.body.get("text", "")), by=command.by.get_username())
        elif command.kind in ("approve", "deny"):
            body = signed(self.runner.state.run, pending, command.kind, command.body.get("expires", 600))
            self.runner.feed(Proposed(Kind.APPROVAL, body, {"by": command.by.get_username()}))
            self.runner.flush()
        return ""

    def _mode(self) -> Mode:
        known = self.row.mode
        return known if known in config.MODES else "stepwise"

    def _auto(self) -> int:
        return self.runner.rules.program.auto_steps or 1


class _Watching:
    """A thread that keeps the row up to date, and stops the runner when the row or the process wants it.

    The runner stops before its next effect; one that is under way is broken off, which kills its sandbox.
    """

    def __init__(self, holding: _Holding) -> None:
        self.wanted = ""
        self._holding, self._performer = holding, holding.runner.performer
        self._thread_of_runner = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-watch", daemon=True)

    def __enter__(self) -> _Watching:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            while not self._over.wait(WATCH_S):
                try:
                    row = Run.objects.filter(pk=self._holding.row.pk)
                    self.wanted = row.values_list("wanted", flat=True).first() or ""
                    if self.wanted or stopping.is_set():
                        self._break_off()
                        return
                    self._holding.keep_up()
                except DatabaseError as error:  # the runner hears of it by its own writes
                    log.warning("run %s is not watched: %s", self._holding.row.key, type(error).__name__)
                    close_old_connections()
        finally:
            connection.close()

    def _break_off(self) -> None:
        try:
            self._performer.interrupt()
        except Interrupted:  # an effect is under way: what would be raised here belongs to the other thread
            identity = ctypes.c_ulong(self._thread_of_runner)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(Interrupted))


stopping = threading.Event()
"""Set when this process is to end: runs are put down where they are."""


def put_down() -> list[str]:
    """Stop advancing in this process; gives the runs that are still held."""
    stopping.set()
    return ledgers.leases.held()


def unended() -> Any:
    return Run.objects.exclude(state__in=ENDED)
