"""`manage.py up` killed in every place in the middle of a run: the run goes on by itself and is there once.

The real processes: supervisor, web, worker. They are watched from outside, in the file of the database.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from up_kit import Platform, alive, wait

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(tmp_path / "data")
    yield made
    if made.up.process.poll() is None:
        made.up.stop()


def test_the_worker_and_the_web_part_are_killed(platform: Platform) -> None:
    for count in (4, 12):
        platform.reaches(count)
        os.kill(platform.child("worker.process"), signal.SIGKILL)
        platform.reaches(count + 4)
    web = platform.child("operate.serve")
    os.kill(web, signal.SIGKILL)
    platform.ends()
    wait(lambda: platform.child("operate.serve") != web, "the web part is not started again", platform)
    assert platform.up.said.count("starting it again") == 3


def test_the_supervisor_is_killed(platform: Platform) -> None:
    platform.reaches(6)
    children = platform.up.children()
    assert len(children) == 2
    platform.up.process.kill()
    platform.up.process.wait()
    wait(lambda: not any(map(alive, children)), "a part outlives the supervisor", platform)
    assert platform.state == ("queued", "")
    count = platform.count
    platform.again()
    platform.ends()
    assert platform.count > count


def test_ctrl_c_in_the_middle(platform: Platform) -> None:
    platform.reaches(6)
    assert platform.up.stop(signal.SIGINT) == 0
    assert platform.state == ("queued", "")
    platform.again()
    platform.ends()


def test_all_of_it_is_killed_at_once(platform: Platform) -> None:
    """As by a power cut: the leases are held by processes that are gone."""
    platform.reaches(6)
    children = platform.up.children()
    for pid in (platform.up.process.pid, *children):
        os.kill(pid, signal.SIGKILL)
    platform.up.process.wait()
    wait(lambda: not any(map(alive, children)), "a part outlives the kill", platform)
    assert platform.state[1]
    count = platform.count
    platform.again()
    platform.reaches(count + 1)
    assert "took over 1 runs of the worker before" in platform.up.said, "it waited for the lease to end"
    platform.ends()
