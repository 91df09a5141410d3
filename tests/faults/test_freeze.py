"""Workers stopped (SIGSTOP) anywhere between taking a run and giving it back, woken after another took it.

No effect is done twice: not in the ledger, not in the workspace; an ended run keeps its files. `files`: both
workers have one data folder; `database`: one database, and either one folder or two hosts. The short form
stops at points of each kind; the long one at all of them, with either worker woken first, 500 times.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freeze_kit import (
    BEGINNING,
    COMMITTING,
    CONFIRMED,
    LOCK,
    RUN,
    SPACE,
    STEP,
    TAKING,
    UNDOING,
    WORKING,
    Freezer,
    freezer,
)
from platform_kit import missing
from servers_kit import Postgres, binary

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(300)]

FREEZES = 500
SHORT = [
    (f"{SPACE}.take", False, "taken, and nothing done"),
    (f"{SPACE}.recover", False, "about to roll back"),
    (f"{RUN}._do", False, "about to do the step"),
    (f"{LOCK}._take", False, "about to lock"),
    (f"{SPACE}.begin", True, "begun"),
    (f"{STEP}.take", False, "the tool has run"),
    (f"{SPACE}.settle", False, "about to settle"),
]
MIDDLE = (f"{RUN}._do", True, 3)
"""Where the second worker is stopped when the first is woken in the middle of its work."""


@pytest.fixture(scope="module", params=["files", "database"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freezer]:
    with freezer(tmp_path_factory.mktemp("freeze"), request.param) as made:
        yield made


@pytest.mark.parametrize("apart", [False, True], ids=["one folder", "two hosts"])
@pytest.mark.parametrize(("point", "after"), [one[:2] for one in SHORT], ids=[one[2] for one in SHORT])
def test_a_worker_that_wakes_too_late_does_nothing(
    site: Freezer, point: str, after: bool, apart: bool
) -> None:
    if apart and site.storage == "files":
        apart = False  # one folder is what `files` means: the second worker is woken first instead
        found = site(point, after, second=MIDDLE)
    else:
        found = site(point, after, apart=apart)
    assert found["reached"] and not found["wrong"], found
    assert not found["changed"] or (apart and (point, after) in CONFIRMED), found


@pytest.mark.parametrize(("point", "after"), UNDOING + COMMITTING)
def test_a_worker_stopped_in_an_undo_or_at_a_commit(site: Freezer, point: str, after: bool) -> None:
    """One commit, and nothing left of the step that is undone, whoever did it."""
    found = site(point, after, spec="commits", second=None)
    assert found["reached"] and not found["wrong"] and not found["changed"], found


@contextmanager
def servers(database: str) -> Iterator[dict[str, str]]:
    """The settings for the database."""
    if database == "sqlite":
        yield {}
        return
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False) as server,
    ):
        yield {"SPAK_WEB_DATABASE_URL": server.url, "SPAK_WEB_DATABASE_IDLE_S": "2"}


@pytest.mark.slow
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_five_hundred_freezes(database: str, tmp_path: Path) -> None:
    """Half of them on each database, half of those with two data folders."""
    if database == "postgresql" and not binary(Postgres.needs):
        missing("PostgreSQL", "postgresql")
    chance = random.Random(database)
    wrong, reached = [], 0
    points = [(False, *one) for one in BEGINNING] + [(True, *one) for one in TAKING + WORKING]
    with servers(database) as more, freezer(tmp_path / "site", "database", **more) as site:
        while reached < FREEZES // 2:
            begun, point, after = chance.choice(points)
            apart, nth = chance.random() < 0.5, chance.choice((1, 1, 2, 3))
            second = (
                (*chance.choice(TAKING + WORKING), chance.choice((1, 2))) if chance.random() < 0.4 else None
            )
            found = site(point, after, nth, apart=apart, begun=begun, second=second)
            reached += found["reached"]
            kept = not found.get("changed") or (apart and (point, after) in CONFIRMED)
            if found["wrong"] or not kept:
                wrong.append((point, after, nth, apart, begun, second, found))
    print(f"{reached} freezes on {database}, {len(wrong)} wrong")
    assert not wrong, "\n".join(map(str, wrong))
