"""What workers are asked to do: use a slot for a run, and sweep up runs that nobody advances.

Tasks carry a key and nothing else, are acknowledged late, may be repeated and may be lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, OperationalError, connection
from django.db.models import Q
from django.dispatch import Signal

from spak.errors import UserError
from spakweb.ground import clock, worker_health
from spakweb.ground.database.engines import kept
from spakweb.store.hints import news
from spakweb.store.jobs.leases import free, lapsed, resting
from spakweb.store.ledger import store
from spakweb.store.ledger.storage import no_room
from spakweb.store.runs.models import ENDED, Run, State
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs import work
from spakweb.work.worker import execute, held_run, retention, slots
from spakweb.work.worker.queue import DEFAULT, let_go, let_go_owed, next_of, not_mine, pick, ready, send

SWEPT = 200
SWEPT_KEY, UNSWEPT_S = "runs.swept", 8
"""In the cache for so long after a sweep."""
TRIES = 5
LOOK_S = 0.5
"""How often runs that nobody holds and that are to stop are looked for."""
STOPPED = 20
"""How many of them at a time."""
SWEEP_S = 2.0
STOP_S = 3.0

after_sweep = Signal()
"""Sent after each sweep, to those who have more to put back."""

log = logging.getLogger(__name__)
_sweeping = threading.Lock()
_ended = threading.Event()


@shared_task(name="runs.advance", acks_late=True, ignore_result=True)
def advance(key: str) -> None:
    """Use one slot of the queue that the run is in."""
    slots.use(partial(_advance, key))


def _advance(key: str) -> None:
    row = Run.objects.filter(key=key).values_list("queue", "wanted").first()
    if row is None or no_room():  # `watch` puts all runs back when there is room
        return
    queue, wanted = row
    for _ in range(TRIES):
        if held_run.stopping.is_set():  # a message that came while this worker ends
            put_back(key)
            return
        try:
            with worker_health.short("choosing a run"):
                chosen = pick(queue, key if wanted else "")
        except OperationalError as error:  # a stopped process holds a lock, which the database takes from it
            log.warning("no run was chosen: %s", error)
            connection.close()
            continue
        if chosen is None:
            return
        try:
            done = execute.advance_or_busy(chosen)
        finally:
            let_go(chosen)
        if done == "again":
            put_back(chosen)
            return
        if done == "stopped":
            break
        # busy: another worker took the same run at the same moment
    if not held_run.stopping.is_set() and (waiting := next_of(queue)):
        send(waiting, queue)  # its message may have come while its team had as many as it may


def put_back(key: str) -> None:
    """The run goes behind those that wait already, in the queue that it now belongs to.

    A worker that stops sends nothing, for it might be itself who takes it: the next sweep does.
    """
    if held_run.stopping.is_set():
        Run.objects.filter(key=key).update(enqueued_at=None)
        return
    Run.objects.filter(key=key).update(enqueued_at=clock.now())
    queue = Run.objects.filter(key=key).values_list("queue", flat=True).first()
    if queue is not None:
        send(key, queue)


@shared_task(name="runs.sweep", ignore_result=True)
def sweep() -> int:
    """What beat asks for."""
    cache.set(SWEPT_KEY, clock.now().timestamp(), UNSWEPT_S)
    return _for_all()


def sweep_if_nobody_did() -> int:
    """Where beat is gone, or no worker has a slot for what it asks: one of the workers does it."""
    now = clock.now().timestamp()
    if cache.get(SWEPT_KEY, now) > now:  # the date was set back: the note would be kept for as long
        cache.delete(SWEPT_KEY)
    return _for_all() if cache.add(SWEPT_KEY, now, UNSWEPT_S) else 0


def _for_all() -> int:
    """Sweep for all workers. It leaves out what this process holds: if the lease of such a run ended, since
    its renewal hangs, another worker has to sweep as well."""
    done = sweep_up()
    if Run.objects.filter(lapsed(clock.now()), key__in=store.leases.held()).exists():
        cache.delete(SWEPT_KEY)
    return done


def sweep_up(*, at_once: bool = False) -> int:
    """Put back what was lost: dead leases, messages that never came. Gives how many.

    A run that somebody had in hand and has no more is put back at once, others after
    jobs.RESEND_AFTER; `at_once` all of them.
    """
    if not _sweeping.acquire(blocking=False):
        return 0  # one thread of this process is at it already
    try:
        with worker_health.short("sweeping"):
            return _swept(at_once)
    finally:
        _sweeping.release()


def _swept(at_once: bool) -> int:
    rows = Run.objects.filter(not_mine())
    done = jobs.put_back(RUNS, rows, at_once=at_once, most=SWEPT)
    if done:
        log.info("swept up %d runs", done)
    retention.go_on()
    after_sweep.send(sweep_up)
    jobs.sweep()
    return done


def _freed(row: dict[str, Any]) -> dict[str, Any]:
    freed = {"holder": "", "lease_until": None}
    return freed | ({"state": State.QUEUED} if row["state"] == State.RUNNING else {})


def _send(row: dict[str, Any]) -> None:
    send(row["key"], row["queue"])
    news.publish(row["key"], row["count"])


RUNS = jobs.Table(Run, ready, ~Q(holder="") | Q(state=State.RUNNING), _send, ("state", "count"), _freed)
"""The other table of work."""


def stop_wanted() -> int:
    """Stop runs that are to stop and that nobody holds, without a slot: all may be taken for a minute."""
    now = clock.now()
    asked = Run.objects.filter(free(now) & ~resting(now) & not_mine())
    asked = asked.exclude(wanted="").exclude(state__in=ENDED)
    if DEFAULT not in settings.WORKER_QUEUES:
        asked = asked.filter(queue__in=settings.WORKER_QUEUES)
    found = list(asked.order_by("pk").values_list("key", flat=True)[:STOPPED])
    for key in found:
        if held_run.stopping.is_set():
            break
        try:
            execute.advance_or_busy(key)
        except DatabaseError as error:  # the others are to stop too
            log.warning("run %s was not stopped: %s", key, error)
            connection.close()
    return len(found)


@worker_ready.connect
def _begin(sender: Any, **ignored: object) -> None:
    """A worker of its own (`celery worker`) takes messages: of which queues, and into how many slots."""
    settings.WORKER_QUEUES = [queue.name for queue in sender.task_consumer.queues]
    slots.open_slots(sender.controller.concurrency)
    if executor := getattr(sender.controller.pool, "executor", None):
        slots.start_threads(executor, sender.controller.concurrency)
    worker_health.say_so(_ended)
    arguments = threading.Event(), SWEEP_S, sweep_if_nobody_did
    threading.Thread(target=watch, args=arguments, name="worker-watch", daemon=True).start()


def watch(stop: threading.Event, sweep_s: float, swept: Callable[[], int] = sweep_up) -> None:
    """Until `stop`: stop runs that are to stop, and sweep up every `sweep_s` seconds, all runs as soon as a
    full disk has room again. What goes wrong is said once and tried again."""
    due_at, logged, unsent, full = time.monotonic() + sweep_s, "", "", False
    while not stop.wait(LOOK_S):
        try:
            if no_room():
                full = True
                continue
            let_go_owed()
            stop_wanted()
            if full:
                sweep_up(at_once=True)
                full = False
            if time.monotonic() >= due_at:
                swept()
                due_at = time.monotonic() + sweep_s
            unsent = _send_prompt(unsent)
            logged = ""
        except Exception as error:  # the thread must live on: in this worker nobody else does it
            if logged != str(error):
                known = isinstance(error, DatabaseError | UserError)
                log.warning("runs were not seen to: %s", error, exc_info=not known)
            logged = str(error)
        finally:
            connection.close()
            kept.shelf.close_idle()


def _send_prompt(logged: str) -> str:
    """Send the jobs that may not wait for a sweep; gives what went wrong, logged when it is new. No run waits
    for it."""
    try:
        jobs.prompt()
    except Exception as error:  # runs are seen to whatever is wrong with jobs
        if logged != str(error):
            log.warning("jobs were not seen to: %s", error)
        return str(error)
    return ""


@worker_shutting_down.connect
def _stop_advancing(**ignored: object) -> None:
    """It ends: its runs stop where they are."""
    _ended.set()
    held_run.stop_advancing()


@worker_shutdown.connect
def _wait(**ignored: object) -> None:
    """Those that wait for a model are not the pool's: give them the time to put their leases down."""
    ends = time.monotonic() + STOP_S
    while held_run.stopping.is_set() and (store.leases.held() or work.in_hand) and time.monotonic() < ends:
        time.sleep(0.05)
    let_go_jobs()


def let_go_jobs() -> None:
    """Give the jobs that this process has not finished to other workers."""
    try:
        if number := work.let_go():
            log.info("gave %d jobs back", number)
    except DatabaseError as error:  # their leases end by themselves
        log.warning("jobs were not given back: %s", type(error).__name__)
