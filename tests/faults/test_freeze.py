"""Workers stopped (SIGSTOP) anywhere between taking a run and giving it back, woken after another took it.

No effect is done twice: not in the ledger, not in the workspace; an ended run keeps its files. `files`: both
workers have one data folder; `database`: one database, and either one folder or one each. Here they
stop at points of each kind; in test_freezes_sqlite.py and test_freezes_postgresql.py at all of them, with
either worker woken first, 250 times each.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from fault_points import FaultPoints
from freeze_kit import (
    COMMITTING,
    CONFIRMED,
    LOCK,
    RUN,
    SPACE,
    STEP,
    UNDOING,
    Freezer,
    freezer,
)
from namespace_kit import needed
from platform_kit import migrated

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(300)]

SHORT = [
    (f"{SPACE}.take", False, 1, "taken, and nothing done"),
    (f"{SPACE}.recover", False, 1, "about to roll back"),
    (f"{RUN}._do", False, 1, "about to do the step"),
    (f"{LOCK}._take", False, 1, "about to lock"),
    (f"{SPACE}.begin", True, 1, "begun"),
    (f"{SPACE}.begin", True, 2, "begun, before a job"),
    (f"{STEP}.take", False, 1, "the tool has run"),
    (f"{SPACE}.settle", False, 1, "about to settle"),
]
MIDDLE = (f"{RUN}._do", True, 3)
"""Where the second worker is stopped when the first is woken in the middle of its work."""


@pytest.fixture(scope="module", params=["files", "database"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freezer]:
    folder = tmp_path_factory.mktemp("freeze")
    shutil.copytree(migrated(tmp_path_factory), folder / "a")
    with freezer(folder, request.param) as made:
        yield made


@pytest.mark.parametrize("hosts", [1, 2], ids=["one host", "two hosts"])
@pytest.mark.parametrize(("point", "after", "nth"), [one[:3] for one in SHORT], ids=[one[3] for one in SHORT])
def test_a_worker_that_wakes_too_late_does_nothing(
    site: Freezer, point: str, after: bool, nth: int, hosts: int, fault_points: FaultPoints
) -> None:
    """On two hosts each has its own network, name and process ids. With `files` they share the data folder,
    and the one that was stopped is woken in the middle of the other's work; else each sees its own alone."""
    if hosts == 2:
        needed()
    apart = hosts == 2 and site.storage == "database"
    second = MIDDLE if hosts == 2 and not apart else None
    found = site(point, after, nth, apart=apart, second=second, namespaces=hosts == 2)
    assert found["reached"] and not found["wrong"], f"{found}\n{site.said}"
    assert not found["changed"] or (apart and (point, after) in CONFIRMED), found
    fault_points["frozen"] += 1


@pytest.mark.parametrize(("point", "after"), UNDOING + COMMITTING)
def test_a_worker_stopped_in_an_undo_or_at_a_commit(
    site: Freezer, point: str, after: bool, fault_points: FaultPoints
) -> None:
    """One commit, and nothing left of the step that is undone, whoever did it."""
    found = site(point, after, spec="commits", second=None)
    assert found["reached"] and not found["wrong"] and not found["changed"], found
    fault_points["frozen"] += 1
