"""The platform at its limits: killed thirty times, on a disk that is full, on one that is slow, with a run of
100,000 records.

Real processes, watched from outside. What must hold: no run is lost, no effect is there twice, what is shown
is true, and nothing grows that need not.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from platform_kit import PASSWORD
from up_kit import SPEC, Platform, alive, wait

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow, pytest.mark.timeout(900)]

KILLS, RUNS = 30, 20
SHOWN_S = 16.0
"""A lease, and a second to look: so long may a dead run read running (docs/runs.md)."""
MORE = """
from spakweb.runs.actions import start
from spakweb.specs.actions import create_spec
from spakweb.specs.models import Spec
from spakweb.teams.models import User
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
spec = Spec.objects.filter(slug={name!r}).first() or create_spec(alice, team, {name!r}, {text!r})
for _ in range({many}):
    print("KEY", start(alice, spec, mode="full_auto").key)
"""


def started(platform: Platform, many: int, name: str = "long", text: str = SPEC) -> list[str]:
    said = platform._shell(MORE.format(name=name, text=text, many=many))
    return re.findall(r"^KEY (\S+)$", said, re.M)


def signed_in(platform: Platform) -> requests.Session:
    session, url = requests.Session(), platform.up.url
    form = session.get(f"{url}/account/login/").text
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[0]
    body = {"login": "alice", "password": PASSWORD, "csrfmiddlewaretoken": token}
    answer = session.post(f"{url}/account/login/", data=body, headers={"Referer": url}, timeout=60)
    assert answer.status_code == 200 and "sessionid" in session.cookies
    return session


class Watcher(threading.Thread):
    """Looks at a run by its page's JSON, its row's state in the team's list and its stream, all the time."""

    def __init__(self, platform: Platform, key: str, living: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.platform, self.key, self.living = platform, key, living
        self.session, self.over = signed_in(platform), threading.Event()
        self.seqs: list[int] = []
        self.false_s, self.looks = 0.0, 0
        self.failed: list[str] = []

    def run(self) -> None:
        threading.Thread(target=self._stream, daemon=True).start()
        since, base = None, f"{self.platform.up.url}/t/demo-team/runs/"
        while not self.over.wait(0.1):
            dead = not self.living()
            try:
                shown = self.session.get(f"{base}{self.key}/live/", timeout=30).json()["state"]
                listed = self.session.get(f"{base}?q={self.key}", timeout=30)
            except (requests.RequestException, ValueError):
                continue  # the web part was killed
            if listed.status_code != 200 or "Traceback" in listed.text:
                self.failed.append(f"{listed.status_code} {listed.text[:200]}")
            running = shown == "running" or 'class="pill running"' in listed.text
            self.looks += 1
            if dead and running and not self.living():
                since = since or time.monotonic()
                self.false_s = max(self.false_s, time.monotonic() - since)
            else:
                since = None

    def _stream(self) -> None:
        where = f"{self.platform.up.url}/runs/{self.key}/events"
        while not self.over.is_set():
            try:
                headers = {"Last-Event-ID": str(self.seqs[-1])} if self.seqs else {}
                with self.session.get(where, headers=headers, stream=True, timeout=30) as answer:
                    if answer.status_code == 204:
                        return
                    self.seqs += [
                        json.loads(line[6:])["seq"]
                        for line in answer.iter_lines()
                        if line.startswith(b'data: {"#"')
                    ]
            except requests.RequestException:
                time.sleep(0.2)


def test_thirty_kills(tmp_path: Path) -> None:
    """Of the worker and of the web part, at random moments; the web part not so often that all of it ends."""
    chance = random.Random(int(os.environ.get("SPAK_FAULTS_SEED", "7")))
    platform = Platform(tmp_path / "data")
    try:
        keys = [platform.key, *started(platform, RUNS)]

        def living() -> bool:
            try:
                return alive(platform.child("runs.worker"))
            except (AssertionError, OSError):
                return False

        watcher = Watcher(platform, keys[0], living)
        watcher.start()
        web_kills: list[float] = []
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.1, 2.5))
            web_kills = [at for at in web_kills if time.monotonic() - at < 65]
            of_web = len(web_kills) < 3 and chance.random() < 0.3
            wait(living, "no worker comes up", platform)
            os.kill(platform.child("home.serve" if of_web else "runs.worker"), signal.SIGKILL)
            if of_web:
                web_kills.append(time.monotonic())
        for key in keys:
            platform.key = key
            platform.ends()
        platform.key = keys[0]
        wait(lambda: len(watcher.seqs) == platform.count, "the stream does not end", platform)
        watcher.over.set()
        watcher.join(60)
        print(f"{watcher.looks} looks, a dead run read running for {watcher.false_s:.1f} s at the most")
        assert watcher.seqs == list(range(platform.count))
        assert watcher.false_s < SHOWN_S and watcher.looks > 100 and not watcher.failed
    finally:
        if platform.up.process.poll() is None:
            platform.up.stop()
