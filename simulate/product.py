"""The product inside the simulation: its modules with our clock and locks, one copy of its globals a process.

`prepare(folder)` sets Django up on a database of its own and makes the team; `enter(folder)` is called in a
process that was forked for one seed. What a process of the product has one of (leases, writer, watcher, ...)
is reached through `PerProcess`, which gives each simulated process its own. The sandbox is the one part that
is not simulated: `simulate.tools` has a launcher that does its jobs in place.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from simulate import threads
from simulate.threads import Lock, Process, process

PREFIXES = ("spak.", "spakweb.", "django.core.cache.backends.")


class PerProcess:
    """Stands for a global of the product, of which each simulated process has one."""

    def __init__(self, make: Callable[[Process], Any]) -> None:
        self.__dict__["_make"] = make

    def _mine(self) -> Any:
        owner = process()
        found = owner.own.get(self)
        if found is None:
            found = owner.own[self] = self._make(owner)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mine(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._mine(), name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mine())

    def __len__(self) -> int:
        return len(self._mine())

    def __enter__(self) -> Any:
        return self._mine().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return self._mine().__exit__(kind, error, trace)


def prepare(folder: Path) -> None:
    """Set the platform up in the folder: settings, tables, a team and its specs."""
    logging.disable(logging.CRITICAL)
    os.environ["SPAK_WEB_DATA"] = str(folder)
    os.environ["SPAK_WEB_SECRET_KEY"] = "only-for-the-simulator-" * 3
    os.environ["DJANGO_SETTINGS_MODULE"] = "spakweb.settings"
    for name in list(os.environ):
        if name.startswith("SPAK_") and name not in ("SPAK_WEB_DATA", "SPAK_WEB_SECRET_KEY"):
            del os.environ[name]
    from django.conf import settings

    options = settings.DATABASES["default"]["OPTIONS"]
    options["timeout"] = 0
    options["init_command"] = "PRAGMA journal_mode=WAL;PRAGMA synchronous=OFF;"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.JOBS = ()
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    for name in settings.CELERY_IMPORTS:
        __import__(name)
    from simulate import calls, tools, workload

    tools.install()
    workload.make()
    options["init_command"] = "PRAGMA synchronous=OFF;"
    from django.db import connections

    from spakweb.store.runs import signing

    signing.private_key = lambda: b"only for the simulator".ljust(32)
    connections.close_all()
    calls.install()


def warm(template: Path, folder: Path) -> None:
    """Do seeds without faults here: those that are forked from here find all that is kept in memory."""
    from simulate import world

    for seed in (1, 2):  # one on hosts that share a disk, one on hosts that do not
        enter(template, folder)
        world.simulated(seed, folder, [])
        shutil.rmtree(folder)
    from django.db import connections

    connections.close_all()
    gc.collect()
    gc.freeze()


def enter(template: Path, folder: Path) -> None:
    """Begin with a copy of the prepared folder, and with our stand-ins in all modules."""
    from django.conf import settings
    from django.core.cache import cache
    from django.db import connections

    folder.mkdir(mode=0o700)
    shutil.copy(template / "spak.sqlite3", folder / "spak.sqlite3")
    settings.DATA_DIR = folder
    connections.databases["default"]["NAME"] = str(folder / "spak.sqlite3")
    cache.clear()
    modules = {name: module for name, module in sys.modules.items() if name.startswith(PREFIXES)}
    threads.install(modules)
    _globals()


def _globals() -> None:
    from django.utils import timezone

    from spakweb.ground.database.engines import kept
    from spakweb.store.hints import news, output
    from spakweb.store.ledger import blobs, store, workspaces, writer
    from spakweb.work.jobs import work
    from spakweb.work.worker import held_run, queue, tasks

    def leases(owner: Process) -> Any:
        made = store.Leases()
        made.process = owner.name
        made.choosing = owner.name + store.CHOOSING
        return made

    store.leases = PerProcess(leases)
    writer.writer = PerProcess(lambda owner: writer.Writer())
    held_run.watcher = PerProcess(lambda owner: held_run.Watcher())
    stopping = PerProcess(lambda owner: threads.Event())
    held_run.stopping = work.stopping = stopping
    held_run.starts = PerProcess(lambda owner: Lock(places=16))
    queue._owed = PerProcess(lambda owner: set())
    tasks._sweeping = PerProcess(lambda owner: Lock())
    tasks._ended = PerProcess(lambda owner: threads.Event())
    work.in_hand = PerProcess(lambda owner: {})
    blobs._durable = {}
    kept.shelf = PerProcess(lambda owner: kept.Shelf(8))
    news.publish = lambda key, count: None
    news.committed = lambda heads: None
    writer.Writer.__init__.__globals__["news"] = news
    output.sender = PerProcess(lambda owner: Quiet())
    workspaces.settings = Places()
    timezone.now = _date


def _date() -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(threads.wall(), UTC)


class Quiet:
    """Nobody looks at the output of running steps here."""

    def hearing(self, *of: object) -> Any:
        """As of nobody who listens."""
        from contextlib import nullcontext

        return nullcontext()


class Places:
    """The settings that say where files are: a folder for each simulated host."""

    shared = True

    @property
    def DATA_DIR(self) -> Path:
        """The data folder of the host that the caller is on."""
        from django.conf import settings

        root: Path = settings.DATA_DIR
        return root if self.STORAGE == "files" else root / "hosts" / (process().host or "none")

    @property
    def STORAGE(self) -> str:
        """Whether hosts share a disk."""
        return "files" if Places.shared else "database"


def spread(apart: bool) -> None:
    """Whether workers are on hosts of their own, which share the database alone."""
    from django.core.files.storage import default_storage, storages
    from django.core.files.storage.filesystem import FileSystemStorage

    from spakweb.store.ledger.storage import DatabaseStorage

    Places.shared = not apart
    from django.conf import settings

    settings.REDIS_URL = "redis://simulated" if apart else ""  # where hosts are apart a restart sends nothing
    made = DatabaseStorage() if apart else FileSystemStorage(settings.DATA_DIR / "media")
    default_storage._wrapped = made
    storages._storages["default"] = made
