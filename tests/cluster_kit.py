"""Several hosts on one machine: Redis, PostgreSQL, and Celery workers as processes, each with a data folder
of its own. They share nothing else. Watched from outside, in the database.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

import warm_kit
from needs import missing
from platform_kit import ROOT, environment, migrated_server
from process_kit import WAIT_S, start_warm, until
from servers_kit import Postgres, Redis, binary
from spak.kernel.replay import replay
from spak.ledger import verify
from spak.records import Record, decode
from warm_kit import Forked

BEGIN = """
from spakweb.work.teams.actions import create_team
from spakweb.ground.teams.models import User
create_team(User.objects.create_user("alice", "alice@spak.example", "a long secret"), "Tuners")
"""
START = """
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.ground.teams.models import Team, User
alice, team = User.objects.get(), Team.objects.get()
spec = team.specs.filter(name={name!r}).first() or create_spec(alice, team, {name!r}, {text!r})
for _ in range({many}):
    print("KEY", start(alice, spec, mode="full_auto", queue={queue!r}).key)
"""
WORKER = "import sys; from celery.__main__ import main; sys.argv[0] = 'celery'; sys.exit(main())"


class Hosts:
    """An installation; `worker(name)` is one of its hosts."""

    def __init__(self, folder: Path, redis: Redis, postgres: Postgres) -> None:
        self.folder, self.redis, self.postgres = folder, redis, postgres
        self.workers: dict[str, Forked] = {}

    def env(self, host: str) -> dict[str, str]:
        return environment(
            self.folder / host,
            0,
            SPAK_WEB_DATABASE_URL=self.postgres.url,
            SPAK_WEB_REDIS_URL=self.redis.url,
            SPAK_WEB_STORAGE="database",
            SPAK_WEB_PORT="8000",
            SPAK_WEB_RUNNER=host,
            SPAK_WEB_SECRET_KEY="one key for all hosts " * 3,
        )

    def shell(self, *texts: str) -> str:
        """What a program on the web's host prints."""
        line = [str(ROOT / "manage.py"), "shell", "--no-imports", "-c", "\n".join(texts)]
        done = warm_kit.run(line, cwd=ROOT, env=self.env("web"))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, text: str, many: int = 1, *before: str, queue: str = "default") -> list[str]:
        said = self.shell(*before, START.format(name=name, text=text, many=many, queue=queue))
        return [line.split()[1] for line in said.splitlines() if line.startswith("KEY ")]

    def worker(self, host: str, queues: str = "default", first: str = "") -> None:
        """A host's worker; `first` is done in it before it begins."""
        words = "-A spakweb.celery worker -P threads -c 2 --without-gossip --without-mingle -l WARNING -Q"
        with (self.folder / f"{host}.log").open("ab") as log:
            self.workers[host] = start_warm(
                ["-c", first + WORKER, *words.split(), queues],
                cwd=ROOT,
                env=self.env(host),
                output=log,
                of_fixture=True,
            )

    def vanishes(self, host: str) -> None:
        """The worker and its disk."""
        self.workers[host].kill()
        self.workers[host].wait()
        shutil.rmtree(self.folder / host)

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            try:
                worker.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    @property
    def said(self) -> str:
        return "".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))

    def query(self, text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.postgres.url, connect_timeout=5) as asked:
            return asked.execute(text.encode()).fetchall()

    def row(self, key: str, *columns: str) -> tuple[object, ...]:
        ((*found,),) = self.query(f"SELECT {', '.join(columns)} FROM runs_run WHERE key = '{key}'")
        return tuple(found)

    def wait(self, done: Callable[[], bool], words: str) -> None:
        def seen() -> str:
            rows = self.query("SELECT key, state, queue, holder, reason FROM runs_run")
            return f"{words}\n{rows}\n{self.said}"

        until(done, seen)

    def ends(self, key: str, state: str = "succeeded") -> list[Record]:
        """The records of a run that came to its end; whole, in order, each from what came before."""
        self.wait(lambda: self.row(key, "state", "holder") == (state, ""), f"{key} did not end")
        rows = self.query(
            "SELECT seq, line FROM runs_runrecord JOIN runs_run ON run_id = runs_run.id"
            f" WHERE key = '{key}' ORDER BY seq"
        )
        assert [seq for seq, _ in rows] == list(range(len(rows)))
        lines = [bytes(line) for _, line in rows if isinstance(line, bytes)]
        assert verify(lines, exported=False).ok
        assert replay(map(decode, lines)).difference is None
        return [decode(line) for line in lines]


def done(records: list[Record]) -> int:
    """How many effects of tools the records have."""
    return sum(record.kind == "act" and "exit" in record.body for record in records)


@contextmanager
def hosts(folder: Path, factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    for server, package in ((Redis, "redis-server"), (Postgres, "postgresql")):
        if not binary(server.needs):
            missing(package, package)
    with ExitStack() as stack:
        redis = stack.enter_context(Redis(folder / "redis"))
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="spak-pg-"))
        postgres = stack.enter_context(
            Postgres(Path(place) / "pg", durable=False, copied=migrated_server(factory))
        )
        made = Hosts(folder, redis, postgres)
        stack.callback(made.stop)
        yield made
