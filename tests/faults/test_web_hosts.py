"""Workers on hosts that share no disk, killed, told five times, cancelled, and without their GPU.

Real Celery workers, Redis and PostgreSQL. There is no beat: a worker sweeps where nobody did. What must hold:
no run is lost, no effect is there twice, and what is shown is true.
"""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster_kit import BEGIN, Hosts, done, hosts
from process_kit import WAIT_S

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow, pytest.mark.timeout(400)]

STEPS = 10
LONG = "\n".join(
    [
        "task Long {",
        *(
            f'  step f{number}: tool.write_file {{ path: "{number}.txt" content: "{number}" }}\n'
            f'  step s{number}: tool.run {{ cmd: "echo {number}" }}'
            for number in range(STEPS)
        ),
        f'  success: file_exists("{STEPS - 1}.txt")',
        "}",
    ]
)
SLEEP = 'task Sleep {\n  step rest: tool.run { cmd: "sleep 60" }\n  success: exit_code(rest) == 0\n}\n'
MEASURE = """\
task Measure {
  step one: tool.write_file { path: "one.txt" content: "1" }
  step gpu: tool.run { cmd: "echo measured" }
  step two: tool.write_file { path: "two.txt" content: "2" }
  success: file_exists("two.txt")
}
"""
HELD = """
import time
from pathlib import Path
from spak.cancel import check
from spak.runner.perform import Performer
called, folder = Performer._called, Path({folder!r})
def held(self, effect, *more):
    while (told := folder / "hold").exists() and told.read_text() == effect.step:
        (folder / "held").write_text(effect.step)
        check(self.cancel)
        time.sleep(0.02)
    return called(self, effect, *more)
Performer._called = held
"""
"""In a worker: it stays in the middle of the step that the file `hold` names, and says so in `held`."""
A_GPU = """
import os; os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")
import django; django.setup()
from spakweb.work.worker import queue
queue.queue_of = lambda effect, runner: "gpu" if effect and effect.name == "run" else "default"
"""
"""In a worker: here tool.run stands for a measurement on a device."""
WRONG_DATE = """
import time
from datetime import timedelta
from django.utils import timezone
now, seconds, nanoseconds = timezone.now, time.time, time.time_ns
timezone.now = lambda: now() + timedelta(seconds={shift})
time.time = lambda: seconds() + {shift}
time.time_ns = lambda: nanoseconds() + {shift} * 10**9
"""
"""In a worker: the date of its host is wrong."""
SHOWN = """
import json
from django.utils import timezone
from spakweb.face.fleet.show import why_waits
from spakweb.store.runs.models import Run
from spakweb.face.streams.summaries import HEADER, header
run = Run.objects.get(key={key!r})
shown = header(Run.objects.values(*HEADER).get(key=run.key), timezone.now())
print("SHOWN", json.dumps([str(shown["state"]), why_waits(run)]))
"""
WANT = """
from spakweb.work.runs.actions import request_control
from spakweb.store.runs.models import Run
from spakweb.ground.teams.models import User
for key in {keys!r}:
    request_control(User.objects.get(), Run.objects.get(key=key), {word!r})
"""
EIGHT = """
import os
from django.db import connections
from spakweb.work.worker import tasks
connections.close_all()
reading, writing = os.pipe()
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until all are there
        from django.conf import settings
        settings.DATA_DIR = settings.DATA_DIR.with_name(f"eight-{{number}}")
        for _ in range(5):
            tasks.advance({key!r})
        os._exit(0)
    children.append(child)
os.close(writing)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with (
        tempfile.TemporaryDirectory(prefix="spak-hosts-") as name,
        hosts(Path(name), tmp_path_factory) as made,
    ):
        made.shell(BEGIN)
        yield made
        made.stop()


@pytest.fixture(autouse=True)
def quiet(site: Hosts) -> Iterator[None]:
    """Each test has workers of its own."""
    yield
    go_on(site)
    site.stop()
    site.workers.clear()


def shown(site: Hosts, key: str) -> tuple[str, str]:
    said = next(line for line in site.shell(SHOWN.format(key=key)).splitlines() if line.startswith("SHOWN"))
    state, why = json.loads(said.removeprefix("SHOWN"))
    return state, why


def count(site: Hosts, key: str) -> int:
    return int(str(site.row(key, "count")[0]))


def hold(site: Hosts, step: str) -> None:
    (site.folder / "hold.new").write_text(step)
    (site.folder / "hold.new").rename(site.folder / "hold")


def reaches(site: Hosts, step: str) -> None:
    """Wait until a worker is in the middle of the step that is held."""
    at = site.folder / "held"
    site.wait(lambda: at.exists() and at.read_text() == step, f"nobody comes to {step}")


def go_on(site: Hosts) -> None:
    (site.folder / "hold").unlink(missing_ok=True)
    (site.folder / "held").unlink(missing_ok=True)


def test_a_host_vanishes_with_its_disk(site: Hosts) -> None:
    hold(site, "f3")
    site.worker("a", first=HELD.format(folder=str(site.folder)))
    (key,) = site.start("long", LONG)
    for gone, left, at, then in (("a", "b", "f3", "s7"), ("b", "c", "s7", "")):
        reaches(site, at)
        site.worker(left, first=HELD.format(folder=str(site.folder)))
        hold(site, then)
        site.vanishes(gone)
        site.wait(lambda: site.query(f"SELECT lease_until < now() FROM runs_run WHERE key = '{key}'")[0][0]
                  is not False, "the lease does not end")  # fmt: skip
        assert shown(site, key)[0] != "running" or site.row(key, "holder") != ("",)
    assert done(site.ends(key)) == 2 * STEPS


def test_eight_processes_are_told_of_one_run_five_times_each(site: Hosts) -> None:
    (key,) = site.start("long", LONG)
    site.shell(EIGHT.format(key=key))
    assert done(site.ends(key)) == 2 * STEPS


def test_cancelled_in_the_middle_of_a_tool_and_with_no_slot_free(site: Hosts) -> None:
    site.worker("a")
    keys = site.start("sleep", SLEEP, many=3)
    site.wait(
        lambda: len(site.query("SELECT 1 FROM runs_run WHERE holder <> '' AND task = 'Sleep'")) == 2,
        "two of three are not under way",
    )
    site.wait(lambda: sum(count(site, key) > 0 for key in keys) == 2, "one has no records yet")
    begun = [key for key in keys if count(site, key)]
    keys.sort(key=begun.__contains__)  # it is asked first: a cancelled one gives its slot back at once
    site.shell(WANT.format(keys=keys, word="cancel"), "import time; print(time.time())")
    asked = time.monotonic()
    assert count(site, keys[0]) == 0, "it gets none"
    for key in begun:
        site.ends(key, "cancelled")
    for key in keys:
        site.wait(
            lambda key=key: site.row(key, "state", "holder") == ("cancelled", ""), "it is not cancelled"
        )
    print(f"cancelled within {time.monotonic() - asked:.1f} s of the commit")


def test_the_runner_of_a_gpu_vanishes_with_its_run(site: Hosts) -> None:
    hold(site, "gpu")
    site.worker("plain", first=A_GPU)
    site.worker("gpu-1", "gpu.x1", first=A_GPU + HELD.format(folder=str(site.folder)))
    (key,) = site.start("measure", MEASURE, queue="gpu.x1")
    at = site.folder / "gpu-1" / "runs" / key / "workspace"
    site.wait(lambda: at.exists() and site.row(key, "queue") == ("gpu.x1",), "it does not come to the GPU")
    reaches(site, "gpu")
    site.vanishes("gpu-1")
    go_on(site)
    site.wait(lambda: shown(site, key)[0] == "queued", "a run without a worker shows as running")
    site.wait(lambda: "gpu-1 last reported" in shown(site, key)[1], "nobody says that the runner is gone")
    site.worker("gpu-2", "gpu.x1", first=A_GPU)
    site.wait(lambda: bool(site.query("SELECT 1 FROM fleet_runner WHERE name = 'gpu-2'")), "no gpu-2")
    assert done(site.ends(key)) == 3
    assert site.row(key, "queue") == ("default",)
    assert list(site.folder.glob("gpu-2/runs/*")) and list(site.folder.glob("plain/runs/*"))


@pytest.mark.parametrize("shift", [-3600, 3600], ids=["an hour behind", "an hour ahead"])
def test_the_date_of_a_host_is_wrong(site: Hosts, shift: int) -> None:
    """It works like any other, keeps its runs while it lives and loses them when it dies."""
    site.worker("wrong", first=HELD.format(folder=str(site.folder)) + WRONG_DATE.format(shift=shift))
    (alone, key) = site.start("long", LONG, many=2)
    assert done(site.ends(alone)) == 2 * STEPS
    assert done(site.ends(key)) == 2 * STEPS
    hold(site, "f3")
    (key,) = site.start("long", LONG)
    reaches(site, "f3")
    assert shown(site, key) == ("running", "")
    site.worker("right")
    site.vanishes("wrong")
    gone = time.monotonic()
    site.wait(lambda: shown(site, key)[0] == "queued", "a run without a worker shows as running")
    assert done(site.ends(key)) == 2 * STEPS
    print(f"went on and ended {time.monotonic() - gone:.0f} s after its worker was gone")


def test_a_worker_is_stopped_for_longer_than_its_lease_and_wakes(site: Hosts) -> None:
    """Its runs end elsewhere, each effect once; when it wakes it adds nothing, and takes new ones."""
    hold(site, "f3")
    site.worker("a", first=HELD.format(folder=str(site.folder)))
    keys = site.start("long", LONG, many=2)
    site.wait(lambda: all(count(site, key) >= 8 for key in keys), "the runs stand still")
    reaches(site, "f3")
    site.workers["a"].send_signal(signal.SIGSTOP)
    go_on(site)
    try:
        site.worker("b")
        ended = {key: len(site.ends(key)) for key in keys}
    finally:
        site.workers["a"].send_signal(signal.SIGCONT)
    (later,) = site.start("long", LONG)
    assert done(site.ends(later)) == 2 * STEPS
    for key in keys:
        records = site.ends(key)
        assert (len(records), done(records)) == (ended[key], 2 * STEPS)


def test_a_worker_is_told_to_end(site: Hosts) -> None:
    """As in an upgrade, one host after the other: its run is put down so that the next sweep takes it, and
    not only the one after SWEEP_AFTER of what has lost its message."""
    hold(site, "f3")
    site.worker("upgraded", first=HELD.format(folder=str(site.folder)))
    (key,) = site.start("long", LONG)
    reaches(site, "f3")
    told = datetime.now(UTC)
    site.workers["upgraded"].send_signal(signal.SIGTERM)
    site.workers["upgraded"].wait(WAIT_S)
    state, holder, sent = site.row(key, "state", "holder", "enqueued_at")
    assert (state, holder) == ("queued", "") and (sent is None or sent > told)  # the next sweep may have been
    assert site.query("SELECT process FROM fleet_runner WHERE name = 'upgraded'") == [("",)]
    at = count(site, key)
    go_on(site)
    site.worker("next")
    assert done(site.ends(key)) == 2 * STEPS and count(site, key) > at
