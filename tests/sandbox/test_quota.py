"""The quota of a workspace: a job that fills the disk is ended, by whichever way it does; nobody else is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spak.ports import MIB, Job, Limits, Outcome, Quota
from spak.sandbox import Restricted
from spak.sandbox.quota import DiskWatch

pytestmark = pytest.mark.sandbox

WAIT = "\nwhile True: time.sleep(60)"
BYTES = "import os, time\nfor n in range(200):\n open(f'f{n}', 'wb').write(os.urandom(1 << 20))" + WAIT
FILES = "import os, time\nos.mkdir('d')\nfor n in range(4000):\n open(f'd/{n}', 'w').close()" + WAIT
UNNAMED = (
    "import os, time\nheld = []\nfor n in range(100):\n held.append(open('x', 'wb')); os.unlink('x')\n"
    " held[-1].write(os.urandom(1 << 22)); held[-1].flush()"
) + WAIT


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def run(code: str, workspace: Path, quota: Quota, *, writable: bool = True) -> Outcome:
    limits = Limits(wall_s=120, cpu_s=120, quota=quota)
    return Restricted().run(
        Job(("/usr/bin/python3", "-c", code), workspace, limits=limits, writable=writable)
    )


@pytest.mark.parametrize(
    ("code", "quota", "why"),
    [
        (BYTES, Quota(64 * MIB, 10_000), "64 MiB"),
        (FILES, Quota(512 * MIB, 2_000), "2000 files"),
        (UNNAMED, Quota(64 * MIB, 10_000), "64 MiB"),
        (BYTES, Quota(1024 * MIB, 10_000, 0, 9_900), "10000 files"),
    ],
    ids=["bytes", "files", "unnamed", "what_was_there_counts"],
)
def test_a_job_that_goes_over_it_is_ended(workspace: Path, code: str, quota: Quota, why: str) -> None:
    if quota.held_entries:
        for number in range(quota.held_entries):
            (workspace / f"old{number}").touch()
    outcome = run(code, workspace, quota)
    assert (outcome.status, outcome.exit) == ("limit", 137) and why in outcome.detail


def test_one_that_keeps_it_is_not(workspace: Path) -> None:
    assert run("open('a', 'w').write('x')", workspace, Quota(64 * MIB, 10)).status == "exited"
    assert run("print(1)", workspace, Quota(0, 0), writable=False).status == "exited"


class TestWatch:
    def test_what_others_write_is_counted_once_and_held_against_nobody(
        self, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch = DiskWatch(workspace, Quota(8 * MIB, 100))
        free, counted = [100 * MIB], []
        held = watch._held
        monkeypatch.setattr(watch, "_held", lambda: (counted.append(1), held())[1])
        monkeypatch.setattr(watch, "_left", lambda: (free[0], 1000))
        watch._free, watch._due = (free[0], 1000), float("inf")

        assert watch.over() == "" and counted == []
        free[0] -= 9 * MIB
        assert watch.over() == "" and counted == [1]
        watch._due = float("inf")
        assert watch.over() == "" and counted == [1]
        watch._due = 0.0
        assert watch.over() == "" and counted == [1, 1]
        watch._rests, watch._due = 0.0, float("inf")
        (workspace / "a").write_bytes(b"x" * (9 * MIB))
        free[0] -= 9 * MIB
        assert "8 MiB" in watch.over()

    def test_processes_that_are_gone_hold_nothing(self, workspace: Path) -> None:
        (workspace / "deep").mkdir()
        assert DiskWatch(workspace, Quota(1, 1), lambda: [0, 10**9])._held()[1] == 1
