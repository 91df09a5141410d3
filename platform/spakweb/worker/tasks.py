"""What workers are asked to do: use a slot for a run, and sweep up runs that nobody advances.

Tasks carry a key and nothing else, are acknowledged late, may be repeated and may be lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import Q
from django.dispatch import Signal

from spak.errors import UserError
from spakweb import clock, worker_health
from spakweb.databases import kept
from spakweb.hooks import deliver
from spakweb.ledger import store
from spakweb.ledger.storage import no_room
from spakweb.live import news
from spakweb.runs.leases import APART, free, resting
from spakweb.runs.models import ENDED, Run, State
from spakweb.worker import execute, held_run, retention, slots
from spakweb.worker.held_run import DEFAULT
from spakweb.worker.queue import let_go, let_go_owed, next_of, pick, ready, send

SWEEP_AFTER = timedelta(seconds=30)
"""A run that should go on and that nobody holds is put into its queue again after so long."""
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
    queue = Run.objects.filter(key=key).values_list("queue", flat=True).first()
    if queue is None or no_room():  # `watch` puts all runs back when there is room
        return
    for _ in range(TRIES):
        if held_run.stopping.is_set():  # a message that came while this worker ends
            put_back(key)
            return
        try:
            with worker_health.short("choosing a run"):
                chosen = pick(queue, key)
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
    cache.set(SWEPT_KEY, 1, UNSWEPT_S)
    return sweep_up()


def sweep_if_nobody_did() -> int:
    """Where beat is gone, or no worker has a slot for what it asks: one of the workers does it."""
    return sweep_up() if cache.add(SWEPT_KEY, 1, UNSWEPT_S) else 0


def sweep_up(*, at_once: bool = False) -> int:
    """Put back what was lost: dead leases, messages that never came. Gives how many.

    A run that somebody had in hand and has no more is put back at once, others after SWEEP_AFTER; `at_once`
    all of them.
    """
    if not _sweeping.acquire(blocking=False):
        return 0  # one thread of this process is at it already
    try:
        with worker_health.short("sweeping"):
            return _swept(at_once)
    finally:
        _sweeping.release()


def _swept(at_once: bool) -> int:
    now = clock.now()
    dead = ~Q(holder="") | Q(state=State.RUNNING)
    rested = Q(not_before__isnull=False)
    forgotten = Q(enqueued_at=None) | Q(enqueued_at__lt=now - SWEEP_AFTER) | Q(enqueued_at__gt=now + APART)
    stale = Q() if at_once else dead | rested | forgotten
    rows = Run.objects.filter(ready(now)).filter(stale).exclude(key__in=store.leases.held())
    rows = rows.order_by("enqueued_at", "pk")
    found = list(rows.values_list("pk", "key", "queue", "state", "count", "fence")[:SWEPT])
    done = 0
    for pk, key, queue, state, count, fence in found:
        if _put_up(pk, fence, now, {"state": State.QUEUED} if state == State.RUNNING else {}):
            done += 1
            send(key, queue)
            news.publish(key, count)
    if done:
        log.info("swept up %d runs", done)
    retention.go_on()
    after_sweep.send(sweep_up)
    return done


def _put_up(pk: int, fence: int, now: datetime, shown: dict[str, Any]) -> int:
    """Free the run of a lease that has ended, if nobody had it meanwhile; not one whose row is locked."""
    with transaction.atomic():
        rows = Run.objects.select_for_update(skip_locked=True, no_key=True)
        left = rows.filter(free(now), pk=pk, fence=fence)
        if not left.values_list("pk").first():
            return 0
        freed = {"enqueued_at": now, "not_before": None, "holder": "", "lease_until": None}
        return Run.objects.filter(pk=pk).update(**freed, **shown)


def stop_wanted() -> int:
    """Stop runs that are to stop and that nobody holds, without a slot: all may be taken for a minute."""
    now = clock.now()
    asked = Run.objects.filter(free(now) & ~resting(now)).exclude(wanted="").exclude(state__in=ENDED)
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
            unsent = _hand_out_webhooks(unsent)
            logged = ""
        except Exception as error:  # the thread must live on: in this worker nobody else does it
            if logged != str(error):
                known = isinstance(error, DatabaseError | UserError)
                log.warning("runs were not seen to: %s", error, exc_info=not known)
            logged = str(error)
        finally:
            connection.close()
            kept.shelf.close_idle()


def _hand_out_webhooks(logged: str) -> str:
    """Hand what webhooks are owed to Celery; gives what went wrong, logged when it is new. No run waits for
    it."""
    try:
        deliver.go_on()
    except Exception as error:  # runs are seen to whatever is wrong with webhooks
        if logged != str(error):
            log.warning("webhooks were not seen to: %s", error)
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
    while held_run.stopping.is_set() and store.leases.held() and time.monotonic() < ends:
        time.sleep(0.05)
