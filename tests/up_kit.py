"""A platform of real processes with one run in it, watched from outside in its database.

`Platform(data)` is `manage.py up` with a run that takes some seconds; `**more` are settings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg

import warm_kit
from platform_kit import ROOT, Up, environment, free_port
from process_kit import until
from spak.kernel.replay import replay
from spak.ledger import verify
from spak.records import decode

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
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.store.specs.models import Spec
from spakweb.ground.teams.models import User
alice = User.objects.get(username="alice")
spec = Spec.objects.filter(slug="long").first() or create_spec(
    alice, alice.memberships.first().team, "long", {SPEC!r})
print(start(alice, spec, mode="full_auto").key)
"""


class Platform:
    """One that is started and killed; `key` is its run."""

    def __init__(self, data: Path, **more: str) -> None:
        self.data, self.port, self.more = data, free_port(), more
        self.up = Up(data, self.port, "--demo", **more)
        self.up.wait()
        self.key = self.start()

    def start(self) -> str:
        """The key of another run."""
        return self._shell(START).strip().splitlines()[-1]

    def again(self) -> None:
        """Another process in the place of the one that ended: whoever keeps the platform ends it too."""
        self.up.log.write_text("")
        self.up.begin()
        self.up.wait()

    def _shell(self, text: str) -> str:
        line = [str(ROOT / "manage.py"), "shell", "--no-imports", "-c", text]
        done = warm_kit.run(line, cwd=ROOT, env=environment(self.data, self.port, **self.more))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(self, text: str) -> list[tuple[object, ...]]:
        """`KEY` in the text stands for the run's."""
        text = text.replace("KEY", f"'{self.key}'")
        if address := self.more.get("SPAK_WEB_DATABASE_URL"):
            with psycopg.connect(address, connect_timeout=5) as asked:
                return asked.execute(text.encode()).fetchall()
        with sqlite3.connect(f"file:{self.data}/spak.sqlite3?mode=ro", uri=True) as opened:
            found = opened.execute(text).fetchall()
        opened.close()
        return found

    @property
    def count(self) -> int:
        return int(str(self.query("SELECT count FROM runs_run WHERE key = KEY")[0][0]))

    @property
    def state(self) -> tuple[str, str]:
        ((state, holder),) = self.query("SELECT state, holder FROM runs_run WHERE key = KEY")
        return str(state), str(holder)

    def reaches(self, count: int) -> None:
        wait(lambda: self.count >= count, "the run stands still", self)

    def ends(self) -> None:
        wait(lambda: self.state[0] == "succeeded", "the run did not end", self)
        rows = self.query(
            "SELECT seq, line FROM runs_runrecord WHERE run_id = (SELECT id FROM runs_run WHERE key = KEY)"
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
    until(done, lambda: f"{words}: {platform.state}\n{platform.up.said}")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
