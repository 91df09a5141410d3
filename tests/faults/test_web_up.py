"""`manage.py up` killed in every place in the middle of a run: the run goes on by itself and is there once.

The real processes: supervisor, web, worker. They are watched from outside, in the file of the database.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from platform_kit import ROOT, Up, environment, free_port
from spak.kernel.replay import replay
from spak.ledger import verify
from spak.records import decode

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow]

STEPS = 12
SPEC = "\n".join(
    [
        "task Long {",
        *(f'  step s{number}: tool.run {{ cmd: "sleep 0.3{number}" }}' for number in range(STEPS)),
        f"  success: exit_code(s{STEPS - 1}) == 0",
        "}",
    ]
)
START = f"""
from spakweb.runs.actions import start
from spakweb.specs.actions import create_spec
from spakweb.specs.models import Spec
from spakweb.teams.models import User
alice = User.objects.get(username="alice")
spec = Spec.objects.filter(slug="long").first() or create_spec(
    alice, alice.memberships.first().team, "long", {SPEC!r})
print(start(alice, spec, mode="full_auto").key)
"""


class Platform:
    """One that is started and killed; `key` is its run."""

    def __init__(self, data: Path) -> None:
        self.data, self.port = data, free_port()
        self.up = self._up()
        self.key = self._shell(START).strip().splitlines()[-1]

    def _up(self) -> Up:
        up = Up(self.data, self.port, "--demo")
        up.log.write_text("")
        up.wait()
        return up

    def again(self) -> None:
        self.up = self._up()

    def _shell(self, text: str) -> str:
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", text],
            cwd=ROOT, env=environment(self.data, self.port), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(self, text: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(f"file:{self.data}/spak.sqlite3?mode=ro", uri=True) as opened:
            found = opened.execute(text, {"key": self.key}).fetchall()
        opened.close()
        return found

    @property
    def count(self) -> int:
        return int(str(self.query("SELECT count FROM runs_run WHERE key = :key")[0][0]))

    @property
    def state(self) -> tuple[str, str]:
        ((state, holder),) = self.query("SELECT state, holder FROM runs_run WHERE key = :key")
        return str(state), str(holder)

    def reaches(self, count: int) -> None:
        wait(lambda: self.count >= count, "the run stands still", self)

    def ends(self) -> None:
        wait(lambda: self.state[0] == "succeeded", "the run did not end", self)
        rows = self.query(
            "SELECT seq, line FROM runs_runrecord WHERE run_id = (SELECT id FROM runs_run WHERE key = :key)"
            " ORDER BY seq"
        )
        assert [seq for seq, _ in rows] == list(range(len(rows)))
        lines = [bytes(line) for _, line in rows if isinstance(line, bytes)]
        assert verify(lines, exported=False).ok
        assert replay(map(decode, lines)).difference is None
        acts = [record for record in map(decode, lines) if record.kind == "act" and "exit" in record.body]
        assert len(acts) == STEPS, "a step was taken twice, or never"

    def child(self, module: str) -> int:
        for pid in self.up.children():
            if module in Path(f"/proc/{pid}/cmdline").read_text():
                return pid
        raise AssertionError(f"no {module} among {self.up.listed()}")


def wait(done: Callable[[], bool], words: str, platform: Platform) -> None:
    ends = time.monotonic() + 40
    while not done():
        assert time.monotonic() < ends, f"{words}: {platform.state}\n{platform.up.said}"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(tmp_path / "data")
    yield made
    if made.up.process.poll() is None:
        made.up.stop()


def test_the_worker_and_the_web_part_are_killed(platform: Platform) -> None:
    for count in (4, 12):
        platform.reaches(count)
        os.kill(platform.child("runs.worker"), signal.SIGKILL)
        platform.reaches(count + 4)
    web = platform.child("home.serve")
    os.kill(web, signal.SIGKILL)
    platform.ends()
    wait(lambda: platform.child("home.serve") != web, "the web part is not started again", platform)
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
    asked = time.monotonic()
    assert platform.up.stop(signal.SIGINT) == 0
    assert time.monotonic() - asked < 10
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
    began = time.monotonic()
    count = platform.count
    platform.again()
    platform.reaches(count + 1)
    assert time.monotonic() - began < 12, "it waited for the lease to end"
    platform.ends()
