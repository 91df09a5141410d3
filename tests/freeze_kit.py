"""Scenarios with stopped workers (freeze_driver.py) as functions, and the list of points to stop at."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from namespace_kit import needed
from needs import missing
from platform_kit import ROOT, environment, manage
from servers_kit import Postgres, binary

FREEZES = 250

RUN, LEDGER = "spak.runner.run:Run", "spakweb.store.ledger.store"
SPACE, STORE = "spak.workspace.space:Workspace", "spak.workspace.store:Store"
LOCK = "spak.workspace.lock:WorkspaceLock"
BLOBS = "spakweb.store.ledger.blobs"
HELD_RUN, STEP = "spakweb.work.worker.held_run", "spak.runner.changes:Writing"
APPLY, GIT = "spak.workspace.apply:Applier", "spak.tools.git_commit:GitCommit"

CHOOSING = [("spakweb.work.worker.queue:_chosen", True), ("spakweb.work.worker.tasks:let_go", False)]
"""Only passed by a worker that was sent a message."""
BEGINNING = [
    ("spakweb.work.worker.retry_policy:in_hand", True),
    ("spakweb.work.worker.open_run:begin", False),
    ("spakweb.work.worker.beginning:fill", False),
    ("spakweb.work.worker.beginning:fill", True),
    (f"{SPACE}.snapshot", True),
    (f"{RUN}.create", False),
    (f"{LEDGER}:DatabaseLedger.begin", False),
    (f"{LEDGER}:DatabaseLedger.begin", True),
    (f"{RUN}.create", True),
]
"""Only passed by whoever begins a run."""
TAKING = [
    (f"{LEDGER}:_taken", True),
    (f"{LEDGER}:DatabaseLedgers.open", True),
    (f"{RUN}._resume", False),
    (f"{SPACE}.take", False),
    (f"{SPACE}.take", True),
    (f"{LEDGER}:DatabaseLedger.confirm", False),
    (f"{LEDGER}:DatabaseLedger.confirm", True),
    (f"{SPACE}.recover", False),
    (f"{SPACE}.recover", True),
    (f"{SPACE}.snapshot", False),
    (f"{RUN}._resume", True),
    (f"{HELD_RUN}:HeldRun._obey", False),
]
WORKING = [
    (f"{RUN}._do", False),
    (f"{SPACE}.lock", True),
    (f"{LOCK}._take", False),
    (f"{LOCK}._wait", True),
    (f"{LOCK}._take", True),
    (f"{RUN}.flush", False),
    (f"{RUN}.flush", True),
    (f"{SPACE}.begin", False),
    (f"{STORE}.begin", True),
    (f"{SPACE}.begin", True),
    (f"{STEP}.started", False),
    (f"{STEP}.take", False),
    (f"{BLOBS}:store", False),
    (f"{BLOBS}:store", True),
    (f"{SPACE}.commit", False),
    (f"{SPACE}.commit", True),
    (f"{RUN}.feed", False),
    (f"{LEDGER}:DatabaseLedger.append", True),
    (f"{LEDGER}:DatabaseLedger.flush", True),
    (f"{SPACE}.settle", False),
    (f"{STORE}.settle", False),
    (f"{SPACE}.settle", True),
]
UNDOING = [
    (f"{SPACE}.rollback", False),
    (f"{APPLY}.apply", False),
    (f"{APPLY}._settle", True),
    (f"{APPLY}.apply", True),
    (f"{SPACE}.rollback", True),
]
"""Only passed by a step that is undone."""
COMMITTING = [
    (f"{GIT}.run", False),
    ("spak.repository.stream:commit", True),
    (f"{GIT}.run", True),
]
"""Around `git_commit` and its commit in the run's own repository."""
CONFIRMED = [(f"{LEDGER}:DatabaseLedger.confirm", True)]
"""On a host of its own the first worker may still do the step it was confirmed for, in its own folder."""


class Freezer:
    def __init__(self, process: subprocess.Popen[str], storage: str, log: Path) -> None:
        self.process, self.storage, self.log = process, storage, log

    def __call__(
        self,
        point: str,
        after: bool,
        nth: int = 1,
        *,
        apart: bool = False,
        begun: bool = True,
        second: tuple[str, bool, int] | None = None,
        spec: str = "marks",
        namespaces: bool = False,
    ) -> dict[str, Any]:
        asked = {"point": point, "after": after, "nth": nth, "apart": apart, "begun": begun}
        return self.ask({**asked, "second": second, "spec": spec, "namespaces": namespaces})

    @property
    def said(self) -> str:
        """The end of what the workers said."""
        return self.log.read_text()[-2000:]

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the driver ended with {self.process.wait(20)}: {asked}\n{self.said}"
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def freezer(folder: Path, storage: str, **more: str) -> Iterator[Freezer]:
    """Workers of one installation, its database in `folder` unless told otherwise."""
    (folder / "a").mkdir(parents=True, exist_ok=True)
    settings = {"SPAK_WEB_STORAGE": storage, "SPAK_WEB_SECRET_KEY": "one key for all workers " * 3, **more}
    done = manage(folder / "a", "migrate", **settings)  # its transactions may take any time
    assert done.returncode == 0, done.stderr
    env = environment(folder / "a", 8000, **settings)
    env["PYTHONPATH"] = f"{ROOT / 'platform'}:{ROOT / 'agents'}"
    with (
        (folder / "driver.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("freeze_driver.py"))],
            cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n", (folder / "driver.log").read_text()[-3000:]
        yield Freezer(process, storage, folder / "driver.log")
        process.stdin.close()


@contextmanager
def servers(database: str) -> Iterator[dict[str, str]]:
    """The settings for the database, which is reached from other networks too."""
    if database == "sqlite":
        yield {}
        return
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False) as server,
    ):
        address = f"postgresql://spak@{quote(str(server.folder), safe='')}:{server.port}/postgres"
        yield {"SPAK_WEB_DATABASE_URL": address, "SPAK_WEB_DATABASE_IDLE_S": "2"}


def freezes(database: str, folder: Path) -> int:
    """FREEZES on a database, half of them with either storage of blobs: none changes what another worker did.
    Gives how many there were.

    First at each point once: both storages have the same ones. Then at random, with `database` half of them
    on two hosts that share nothing else.
    """
    if database == "postgresql" and not binary(Postgres.needs):
        missing("PostgreSQL", "postgresql")
    needed()
    chance, wrong, reached = random.Random(database), [], {"files": [], "database": []}
    points = [(False, *one) for one in BEGINNING] + [(True, *one) for one in CHOOSING + TAKING + WORKING]
    for storage, done in reached.items():
        with servers(database) as more, freezer(folder / storage, storage, **more) as site:
            asked = [(1, False, one, None) for one in points]
            while asked or len(done) < FREEZES // 2:
                nth, apart, one, second = asked.pop(0) if asked else _any(chance, points, storage)
                begun, point, after = one
                found = site(
                    point,
                    after,
                    nth,
                    apart=apart,
                    begun=begun,
                    second=second,
                    namespaces=chance.random() < 0.5,
                )
                done += [one] if found["reached"] else []
                kept = not found.get("changed") or (apart and (point, after) in CONFIRMED)
                if found["wrong"] or not kept:
                    wrong.append((storage, one, nth, apart, second, found))
    print(f"{sum(map(len, reached.values()))} freezes on {database}, {len(wrong)} wrong")
    assert not wrong, "\n".join(map(str, wrong))
    for done in reached.values():
        assert set(done) == set(points)
    return sum(map(len, reached.values()))


def _any(chance: random.Random, points: list[Any], storage: str) -> tuple[int, bool, Any, Any]:
    """A freeze at random: which passing of the point, whether on hosts of their own, the point, and where the
    second worker is stopped."""
    second = (*chance.choice(TAKING + WORKING), chance.choice((1, 2))) if chance.random() < 0.4 else None
    apart = storage == "database" and chance.random() < 0.5
    return chance.choice((1, 1, 2, 3)), apart, chance.choice(points), second
