"""Redis and PostgreSQL killed, flushed and started again in the middle of runs: each ends, and once."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from needs import missing
from servers_kit import Postgres, Redis, binary
from up_kit import Platform, wait

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    if not binary(Redis.needs):
        missing("Redis", "redis-server")
    with Redis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    if not binary(Postgres.needs):
        missing("PostgreSQL", "postgresql")
    # not under tmp_path: another pytest of this user would close its folders to the server's user again
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False) as server,
    ):
        yield server


def test_redis_is_flushed_killed_and_started_again(redis: Redis, tmp_path: Path) -> None:
    made = Platform(tmp_path / "data", SPAK_WEB_REDIS_URL=redis.url, SPAK_WEB_WORKER_THREADS="1")
    try:
        first = made.key
        made.reaches(4)
        second = made.start()  # its message waits behind the first, and is lost
        redis.flush()
        made.reaches(10)
        redis.kill()
        third = made.start()  # with no broker at all
        made.reaches(16)
        redis.start()
        for key in (first, second, third):
            made.key = key
            made.ends()
        assert made.up.process.poll() is None
    finally:
        made.up.stop()


def test_postgresql_crashes_and_starts_again(postgres: Postgres, tmp_path: Path) -> None:
    made = Platform(tmp_path / "data", SPAK_WEB_DATABASE_URL=postgres.url)
    try:
        made.reaches(8)
        postgres.kill()
        time.sleep(2)
        postgres.start()
        wait(lambda: _state(made) != "running", "a run without a worker shows as running", made)
        made.ends()
        assert made.up.process.poll() is None
    finally:
        made.up.stop()


def _state(made: Platform) -> str:
    """As the row has it once its lease has ended, else `running`."""
    try:
        ((state, dead),) = made.query("SELECT state, lease_until < now() FROM runs_run WHERE key = KEY")
    except psycopg.OperationalError:
        return "running"
    return "queued" if dead else str(state)
