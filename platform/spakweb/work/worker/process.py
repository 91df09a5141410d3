"""The worker part as a process: `python -m spakweb.work.worker.process PIPE`, started by the supervisor.

One Celery worker with a pool of threads, and a thread that sweeps. A lock in the data folder says that no
other worker of the folder lives; the leases of the one before it, whose name the lock's file holds, are free
at once. It ends when the pipe closes or on SIGTERM: runs are put down where they are and their leases given
back, within STOP_S; what cannot be broken off by then is left to the next worker.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from spak.ledger.private import keep_folder

STOP_S = 3.0
AGAIN_S = 1.0
"""How often a database that does not answer at the beginning is asked again."""
LOCK_S = 15.0
"""How long a worker waits for the one before it to be gone."""

log = logging.getLogger("spakweb.work.worker.process")  # it is run as __main__


@contextlib.contextmanager
def only_worker(data: Path, name: str) -> Iterator[str]:
    """Holds the folder's lock for workers; gives the name of the worker before, which is dead.

    Raises: TimeoutError when it lives.
    """
    keep_folder(data)
    with (data / "worker.lock").open("a+") as file:
        ends = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > ends:
                    raise TimeoutError("another worker of this data folder lives") from error
                time.sleep(0.05)
        file.seek(0)
        before = file.read().strip()
        file.truncate(0)
        file.write(name)
        file.flush()
        yield before


def serve(pipe: int) -> None:
    """Work until the parent process ends."""
    from celery.worker import WorkController
    from django.conf import settings

    from spakweb.ground import worker_health
    from spakweb.ground.celery_app import app
    from spakweb.ground.child import end_with_parent
    from spakweb.store.ledger import store
    from spakweb.work.fleet.actions import beat_here
    from spakweb.work.worker import slots, tasks

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *ignored: stop.set())
    end_with_parent(pipe)
    threading.Thread(target=_stop, args=(stop,), name="worker-stop", daemon=True).start()
    with only_worker(Path(settings.DATA_DIR), store.leases.process) as before:
        take_over(before, stop)
        watching = stop, tasks.SWEEP_S
        threading.Thread(target=tasks.watch, args=watching, name="worker-watch", daemon=True).start()
        slots.open_slots(settings.WORKER_THREADS)
        worker_health.say_so(stop)
        beat_here(stop, settings.WORKER_QUEUES, settings.WORKER_THREADS)
        controller = WorkController(
            app=app, pool_cls="threads", concurrency=settings.WORKER_THREADS, loglevel="WARNING",
            queues=settings.WORKER_QUEUES, without_gossip=True, without_mingle=True, without_heartbeat=True,
        )  # fmt: skip
        slots.start_threads(controller.pool.executor, settings.WORKER_THREADS)
        controller.start()
    os._exit(1)  # the broker is gone for good: the supervisor starts another


def take_over(before: str, stop: threading.Event) -> None:
    """Free what the worker before held, and put all that is to go on into its queue. A database that is away
    or held by a stopped process is asked again: one worker that waits costs less than one after the other."""
    from django.conf import settings
    from django.db import DatabaseError, connection

    from spakweb.store.ledger import store
    from spakweb.work.worker import tasks

    logged = ""
    while not stop.is_set():
        try:
            if freed := store.release(before):
                log.info("took over %d runs of the worker before", freed)
            tasks.sweep_up(at_once=not settings.REDIS_URL)
            return
        except DatabaseError as error:
            if str(error) != logged:
                log.warning("the worker waits for the database: %s", error)
            logged = str(error)
            connection.close()
            stop.wait(AGAIN_S)


def _stop(stop: threading.Event) -> None:
    """Wait for the word, put the runs down, and end the process: its threads may be inside anything."""
    from spakweb.ground.database.engines import kept
    from spakweb.store.ledger import store, writer
    from spakweb.work.fleet.beats import leave
    from spakweb.work.jobs import work
    from spakweb.work.worker import held_run, tasks

    while not stop.wait(1):
        pass
    ends = time.monotonic() + STOP_S
    held_run.stop_advancing()
    while (store.leases.held() or work.in_hand) and time.monotonic() < ends:
        time.sleep(0.02)
    tasks.let_go_jobs()
    left = store.leases.held()
    if left:
        log.warning("%d runs could not be put down; the next worker takes them over", len(left))
    else:
        writer.writer.close()
    leave()
    kept.keep(0)
    os._exit(0)


def main(pipe: int) -> None:
    """Set Django up and work."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")
    import django

    django.setup()
    serve(pipe)


if __name__ == "__main__":
    main(int(sys.argv[1]))
