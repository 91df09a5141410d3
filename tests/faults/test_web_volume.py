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
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from fault_points import FaultPoints
from folders_kit import spec as folder_spec
from platform_kit import PASSWORD
from process_kit import WAIT_S
from sources_kit import Repository
from up_kit import SPEC, Platform, alive, wait

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow, pytest.mark.timeout(900)]

KILLS, RUNS = 30, 20
SHOWN_S = 16.0
"""A lease, and a second to look: so long may a dead run read running (docs/runs.md)."""
MORE = """
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.store.specs.models import Spec
from spakweb.ground.teams.models import User
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
spec = Spec.objects.filter(slug={name!r}).first() or create_spec(alice, team, {name!r}, {text!r})
for _ in range({many}):
    print("KEY", start(alice, spec, mode="full_auto").key)
"""


def started(platform: Platform, many: int, name: str = "long", text: str = SPEC) -> list[str]:
    said = platform._shell(MORE.format(name=name, text=text, many=many))
    return re.findall(r"^KEY (\S+)$", said, re.M)


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def form(session: requests.Session, page: str, address: str, **fields: str) -> requests.Response:
    """Send a form, as its page would."""
    found = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', session.get(page, timeout=WAIT_S).text)
    body = {**fields, "csrfmiddlewaretoken": found[0]}
    return session.post(address, data=body, headers={"Referer": page}, timeout=WAIT_S)


@contextmanager
def stopped_at_last(platform: Platform) -> Iterator[Platform]:
    try:
        yield platform
    finally:
        if platform.up.process.poll() is None:
            platform.up.stop()


def signed_in(platform: Platform) -> requests.Session:
    session, page = requests.Session(), f"{platform.up.url}/account/login/"
    answer = form(session, page, page, login="alice", password=PASSWORD)
    assert answer.status_code == 200 and "sessionid" in session.cookies
    return session


def live(platform: Platform, key: str) -> str:
    """The address of where a run is."""
    return f"{platform.up.url}/api/v1/teams/demo-team/runs/{key}/live/"


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
                shown = self.session.get(live(self.platform, self.key), timeout=WAIT_S).json()["state"]
                listed = self.session.get(f"{base}?q={self.key}", timeout=WAIT_S)
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
        where = f"{self.platform.up.url}/t/demo-team/runs/{self.key}/events"
        while not self.over.is_set():
            try:
                headers = {"Last-Event-ID": str(self.seqs[-1])} if self.seqs else {}
                with self.session.get(where, headers=headers, stream=True, timeout=WAIT_S) as answer:
                    if answer.status_code == 204:
                        return
                    self.seqs += [
                        json.loads(line[6:])["seq"]
                        for line in answer.iter_lines()
                        if line.startswith(b'data: {"#"')
                    ]
            except requests.RequestException:
                time.sleep(0.2)


def test_thirty_kills(tmp_path: Path, fault_points: FaultPoints) -> None:
    """Of the worker and of the web part, at random moments; the web part not so often that all of it ends."""
    chance = random.Random(int(os.environ.get("SPAK_FAULTS_SEED", "7")))
    with stopped_at_last(Platform(tmp_path / "data")) as platform:
        keys = [platform.key, *started(platform, RUNS)]

        def living(module: str = "worker.process") -> bool:
            try:
                return alive(platform.child(module))
            except (AssertionError, OSError):
                return False

        watcher = Watcher(platform, keys[0], living)
        watcher.start()
        web_kills: list[float] = []
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.1, 2.5))
            web_kills = [at for at in web_kills if time.monotonic() - at < 65]
            of_web = len(web_kills) < 3 and chance.random() < 0.3
            module = "operate.serve" if of_web else "worker.process"
            wait(
                lambda module=module: living("worker.process") and living(module),
                "a part does not come up",
                platform,
            )
            os.kill(platform.child(module), signal.SIGKILL)
            if of_web:
                web_kills.append(time.monotonic())
        for key in keys:
            platform.key = key
            platform.ends()
        platform.key = keys[0]
        wait(lambda: len(watcher.seqs) == platform.count, "the stream does not end", platform)
        watcher.over.set()
        watcher.join(WAIT_S)
        print(f"{watcher.looks} looks, a dead run read running for {watcher.false_s:.1f} s at the most")
        assert watcher.seqs == list(range(platform.count))
        assert watcher.false_s < SHOWN_S and watcher.looks > 100 and not watcher.failed
        fault_points["killed"] += KILLS


# ---- disks


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A data folder on a disk of its own that is soon full."""
    if os.getuid():
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "data"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def nearly_full(disk: Path) -> Iterator[Callable[[], None]]:
    """The disk with 3 MiB left, as long as this lasts; what it gives fills them."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        filler.write(b"x" * (free - (3 << 20)))

        def fill() -> None:
            with pytest.raises(OSError, match="No space left"):
                while True:
                    filler.write(b"x" * 65536)
                    time.sleep(0.05)

        yield fill


SHORT = """
task Short {
  step a: tool.write_file { path: "make.py" content: "open('large.txt', 'w').write('x' * 600000)" }
  step b: tool.run { cmd: "python3 make.py" on_fail: stop }
  step c: tool.run { cmd: "seq 1 20000" on_fail: stop }
  success: exit_code(b) == 0
}
"""


GO_ON_S = 10.0
"""Within this all runs that waited for room go on once there is some."""


def test_queued_runs_on_a_full_disk(small: Path) -> None:
    """None ends for want of room, whatever it was doing; with room again all go on and succeed."""
    with stopped_at_last(Platform(small)) as platform:
        with nearly_full(small) as fill:
            keys = started(platform, 10, "short", SHORT)
            fill()
        time.sleep(5)
        states = "SELECT key, state, reason FROM runs_run ORDER BY id"
        stuck = [row for row in platform.query(states) if row[1] in ("failed", "refused", "paused")]
        assert not stuck, stuck
        (small / "filler").unlink()
        began = time.monotonic()

        def waiting_for_room() -> list[str]:
            rows = platform.query(states)
            return [key for key, state, reason in rows if key in keys and state == "queued" and reason]

        while waiting_for_room():
            assert time.monotonic() - began < GO_ON_S, f"not tried again: {waiting_for_room()}"
            time.sleep(0.1)
        went_on = time.monotonic() - began

        def all_ended() -> bool:
            return all(state == "succeeded" for key, state, _ in platform.query(states) if key in keys)

        wait(all_ended, "a run did not go on", platform)
        ended = time.monotonic() - began
        print(f"ten runs went on {went_on:.1f} s after there was room, and ended after {ended:.1f} s")


KEPT = """
import platform_campaigns as kit
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.ground.teams.models import User
alice = User.objects.get(username="alice")
spec = create_spec(alice, alice.memberships.first().team, "writes", kit.TWICE)
for _ in range(2):
    print("KEY", start(alice, spec, mode="full_auto").key)
"""
SERVICES = """
import platform_campaigns as kit
from spakweb.work.folders import actions as folders
from spakweb.store.runs.models import Run
from spakweb.work.sources import actions as sources
from spakweb.work.suites import actions as suites
from spakweb.ground.teams.models import User
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
run = Run.objects.get(key={key!r})
suite = suites.make(alice, team, "Nightly")
kit.split_of(suite, "gate")
suites.keep(alice, run, suite, "first")
folders.set_up(alice, sources.add(alice, team, "app", {url!r}, ["main"]), "main", "specs")
kit.begun(alice, run.version.spec, suite)
suites.begin(alice, suite, [run.version], times=6, splits=["gate"])
"""
STANDING = """
SELECT 'run', state, reason FROM runs_run WHERE state IN ('failed', 'refused', 'paused')
UNION ALL SELECT 'campaign', state, why FROM campaigns_campaign WHERE state != 'running'
UNION ALL SELECT 'folder', state, error FROM folders_folder WHERE state = 'failed'
UNION ALL SELECT 'job', kind, error FROM jobs_job WHERE tries > 0
UNION ALL SELECT 'case', trouble, '' FROM suites_vetting WHERE trouble != ''
"""
"""What the full disk ended or counts as a failure."""


def test_services_on_a_full_disk(small: Path, tmp_path: Path) -> None:
    """A campaign, an experiment, the check of a case and the sync of a folder wait for room, and count it as
    no failure; with room each comes to its end."""
    repository = Repository(tmp_path / "git" / "app.git")
    repository.commit({"specs": ("040000", repository.tree({"tune.spak": folder_spec()}))}, "refs/heads/main")
    url = f"file://{repository.folder}"
    more = {"SPAK_WEB_SOURCE_FOLDERS": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}
    with stopped_at_last(Platform(small, **more)) as platform:
        (first, second) = re.findall(r"^KEY (\S+)$", platform._shell(KEPT), re.M)
        ended = f"SELECT count(*) FROM runs_run WHERE key IN ('{first}', '{second}') AND state = 'succeeded'"
        wait(lambda: platform.query(ended) == [(2,)], "the runs to keep did not end", platform)
        with nearly_full(small) as fill:
            platform._shell(SERVICES.format(key=second, url=url))
            fill()
        time.sleep(12)
        standing = platform.query(STANDING)
        assert not standing, standing
        open_ones = "SELECT count(*) FROM runs_run WHERE state NOT IN ('succeeded', 'cancelled')"
        before = platform.query(open_ones)
        (small / "filler").unlink()
        assert before != [(0,)], "nothing met the full disk"
        campaign = "SELECT state, why FROM campaigns_campaign"
        wait(lambda: platform.query(campaign)[0][0] == "ended", "the campaign did not end", platform)
        assert platform.query(campaign) == [("ended", "proposals")]
        assert platform.query("SELECT count(*) FROM reviews_patch") == [(1,)]
        wait(lambda: platform.query(open_ones) == [(0,)], "the experiment did not end", platform)
        files = "SELECT count(*) FROM specs_spec WHERE slug = 'tune'"
        wait(lambda: platform.query(files) == [(1,)], "the folder was not synced", platform)
        assert not platform.query(STANDING.replace("!= 'running'", "= 'failed'"))


def test_a_full_disk(small: Path) -> None:
    """Runs stand still and say why, nobody spins, pages are there; with room again all goes on by itself."""
    with stopped_at_last(Platform(small)) as platform:
        session, base = signed_in(platform), f"{platform.up.url}/t/demo-team/runs/"
        keys = started(platform, 3)
        for key in keys:
            platform.key = key
            platform.reaches(6)
        with (
            (small / "filler").open("wb", buffering=0) as filler,
            pytest.raises(OSError, match="No space left"),
        ):
            while True:
                filler.write(b"x" * 65536)
        states = lambda: {session.get(live(platform, key)).json()["state"] for key in keys}  # noqa: E731
        wait(lambda: states() == {"queued"}, "a run that stands still reads running", platform)
        worker, said = platform.child("worker.process"), platform.up.said.count("\n")
        before = cpu_s(worker)
        time.sleep(8)
        assert cpu_s(worker) - before < 1.6, "the worker spins"
        assert platform.up.said.count("\n") - said < 30, platform.up.said
        for key in keys:
            assert "the disk of the server is full" in session.get(f"{base}{key}/").text
            for part in ("?tab=records", "?tab=log", "head/", "log/"):
                assert session.get(f"{base}{key}/{part}").status_code == 200
        refused = form(session, f"{base}{keys[0]}/", f"{base}{keys[0]}/control/", do="pause")
        assert refused.status_code == 507 and "disk of the server is full" in refused.text
        os.kill(worker, signal.SIGKILL)  # and the next one starts without room
        time.sleep(3)
        (small / "filler").unlink()
        for key in keys:
            platform.key = key
            platform.ends()
        words = re.findall(r"^Traceback.*", platform.up.said, re.M)
        assert len(words) < 5, platform.up.said


SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
static void slow(void) { struct timespec t = {0, 800000000}; nanosleep(&t, 0); }
int fsync(int fd) {
  int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fsync");
  slow();
  return real(fd);
}
int fdatasync(int fd) {
  int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
  slow();
  return real(fd);
}
"""


def test_a_slow_disk(tmp_path: Path) -> None:
    """0.8 s for each sync: all takes long, no lease is lost to it, and pages that only read stay quick."""
    (tmp_path / "slow.c").write_text(SLOW)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"], cwd=tmp_path, check=True
    )  # fmt: skip
    with stopped_at_last(Platform(tmp_path / "data")) as platform:
        keys = [platform.key, *started(platform, 2)]
        platform.up.stop()
        platform.more["LD_PRELOAD"] = str(tmp_path / "slow.so")
        platform.again()
        session, base, took = signed_in(platform), f"{platform.up.url}/t/demo-team/runs/", []
        began = time.monotonic()
        while any(session.get(live(platform, key)).json()["state"] != "succeeded" for key in keys):
            assert time.monotonic() - began < 600, platform.up.said
            for part in ("", "?tab=records"):
                asked = time.monotonic()
                assert session.get(f"{base}{keys[0]}/{part}", timeout=WAIT_S).status_code == 200
                took.append(time.monotonic() - asked)
            time.sleep(1)
        slices = (time.monotonic() - began) // 60 + 3
        for key in keys:
            platform.key = key
            platform.ends()
            assert int(str(platform.query("SELECT fence FROM runs_run WHERE key = KEY")[0][0])) <= slices
        print(
            f"{len(took)} pages, {sorted(took)[len(took) // 2]:.3f} s in the middle, {max(took):.3f} at most"
        )
        assert sorted(took)[len(took) // 2] < 0.8, "reading waits for the disk"
        assert "lost_lease" not in platform.up.said and "not renewed" not in platform.up.said


# ---- a long run

MANY = 100_002
LONG = """
import secrets
from spak.ports import ToolResult
from spak.tools import list_files, results
from spakweb.work.worker import execute
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.ground.teams.models import User

def listed(call):
    done = results.done("".join(f"file_{secrets.token_hex(4)}.txt\\n" for _ in range(8)))
    key = {"exit": 0, "sha256": done.sha256}
    return ToolResult("exited", 0, done.output, done.size, done.sha256, False, key)

list_files._list = listed
text = '''AGENT Big LEVEL 5 {
  CONFIG { BUDGET { steps: 25000 elapsed_s: 100000 } }
  START -> t
  TASK t { step a: tool.list_files { path: "." } NEXT { success -> t } }
}
'''
alice = User.objects.get(username="alice")
spec = create_spec(alice, alice.memberships.first().team, "big", text)
run = start(alice, spec, mode="full_auto", queue="of-nobody")
while execute.advance(run.key):
    pass
print("KEY", run.key)
"""


def test_a_run_of_a_hundred_thousand_records(tmp_path: Path) -> None:
    """Every page and every file of it, its streams and its check, in a web part that does not grow."""
    with stopped_at_last(Platform(tmp_path / "data")) as platform:
        (key,) = re.findall(r"^KEY (\S+)$", platform._shell(LONG), re.M)
        session, url = signed_in(platform), platform.up.url
        base, web = f"{url}/t/demo-team/runs/{key}/", platform.child("operate.serve")
        many = session.get(live(platform, key)).json()["count"]
        assert many >= MANY  # a slow machine takes the run up more often, which is a record each time
        before = resident_mib(web)
        middle = many // 2
        for part in (
            "?tab=timeline", "?tab=records", f"?tab=records&before={middle}", "?tab=records&q=nowhere",
            "?tab=records&level=wrong", "?tab=log", "?tab=metrics", f"r/{middle}/", f"fork/?at={middle}",
            "fork/?task=t", f"../compare/?one={key}&two={key}", "log/", "report/",
        ):  # fmt: skip
            assert session.get(f"{base}{part}", timeout=WAIT_S).status_code == 200, part
        with session.get(f"{base}export/", stream=True, timeout=WAIT_S) as sent:
            assert sum(line.startswith(b'{"#"') for line in sent.iter_lines()) == many
        with session.get(f"{url}/t/demo-team/runs/{key}/events", stream=True, timeout=WAIT_S) as sent:
            seqs = [int(line[4:]) for line in sent.iter_lines() if line.startswith(b"id: ")]
        assert seqs == list(range(many))
        told = ""
        while "replay equal" not in told:
            asked = {"same": word[0]} if (word := re.findall(r'name="same" value="([^"]+)"', told)) else {}
            told = form(session, base, f"{base}check/", **asked).text
            assert "chain is not whole" not in told and "itself failed" not in told
        grown = resident_mib(web) - before
        print(f"{grown:.0f} MiB more after all of it")
        assert grown < 96
