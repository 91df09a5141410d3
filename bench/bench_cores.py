"""Runs per core: the CPU of a durable step, and of a whole run that somebody starts by the API.

`step`: runs of 20 steps that were begun before, advanced by 32 threads on SQLite, each step made durable by
itself; the process's CPU over the steps, as bench_peers works ("steps only"). `run`: a worker process as
`manage.py up` starts it, and runs of 5 pure steps (`list_files`) that are started by requests to the API in
another process. Its CPU is /proc's, from the first request to the end of the last run, over the runs; some
runs before are not counted. No floor: both are held to an aim.

    python -m bench.bench_cores PART     one of PARTS, in a process of its own, with SPAK_WEB_DATA
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import bench_platform as platform
from bench.bench_platform import ROOT, RUNS, STEPS, THREADS, row
from bench.sizes import sized

ROUNDS = sized(5, 1)
FEW, MANY, PURE_STEPS = sized(10, 1), sized(100, 3), 5
"""Runs before the clock starts, runs that are counted, and the steps of each."""
LOOK_S, MOST_S = 0.05, 300.0
"""How often it is asked whether all runs have ended, and when that is given up."""
SPEC = "task Cores { " + " ".join(f"step s{n}: tool.list_files {{ }}" for n in range(PURE_STEPS)) + " }"


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        found = {part: platform.part(part, Path(name) / part, module="bench.bench_cores") for part in PARTS}
    title = f"a run of {PURE_STEPS} pure steps, started by the API: CPU of the worker"
    return [
        row(
            f"SQLite: CPU of a durable step, {RUNS} runs, {THREADS} threads",
            found["step"]["cpu_ms"], 0, "ms", "<= 0.3",
        ),
        row(title, found["run"]["cpu_s"], 0, "CPU-s", "<= 0.04"),
    ]  # fmt: skip


def step() -> dict[str, float]:
    """Milliseconds of CPU for each step: the middle round."""
    team, spent = platform.team_of_bench(), []
    for turn in range(ROUNDS):
        begun = [platform._begun(team, f"run{turn}-{number}", STEPS) for number in range(RUNS)]
        work = [platform._going(one) for one in begun]
        began = time.process_time()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda do: do(), work))
        spent.append(1000 * (time.process_time() - began) / (RUNS * STEPS))
    return {"cpu_ms": statistics.median(spent)}


def run() -> dict[str, float]:
    """Seconds of a worker's CPU for each run."""
    start = _starting()
    reading, writing = os.pipe()
    words = [sys.executable, "-m", "spakweb.work.worker.process", str(reading)]
    worker = subprocess.Popen(words, cwd=ROOT, pass_fds=(reading,))
    os.close(reading)
    try:
        _ended(start, FEW)
        before = _cpu_s(worker.pid)
        _ended(start, MANY)
        return {"cpu_s": (_cpu_s(worker.pid) - before) / MANY}
    finally:
        os.close(writing)
        worker.wait(platform.recovering.AIM_S * 4)


def _starting() -> Callable[[], None]:
    """What starts one run by a request to the API."""
    team = platform.team_of_bench()
    from django.conf import settings
    from django.test import Client

    from spakweb.ground.teams.models import Membership, User
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.teams import tokens

    user = User.objects.create_user("bench", "bench@spak.example", "bench")
    Membership.objects.create(team=team, user=user, role="admin")
    create_spec(user, team, "cores", SPEC)
    settings.ALLOWED_HOSTS = ["testserver"]
    secret = tokens.make(user, "bench", 7, team, ["start"])[1]
    client = Client(headers={"authorization": f"Bearer {secret}"})
    address = f"/api/v1/teams/{team.slug}/specs/cores/runs/"

    def start() -> None:
        answer = client.post(address, "{}", content_type="application/json")
        assert answer.status_code == 201, answer.content

    return start


def _ended(start: Callable[[], None], many: int) -> None:
    """Start so many runs, and wait until all there are have succeeded."""
    from spakweb.store.runs.models import ENDED, Run

    for _ in range(many):
        start()
    ends = time.monotonic() + MOST_S
    while Run.objects.exclude(state__in=ENDED).exists():
        assert time.monotonic() < ends, "runs did not end"
        time.sleep(LOOK_S)
    assert not Run.objects.exclude(state="succeeded").exists()


def _cpu_s(process: int) -> float:
    """The CPU seconds of a process so far, without its children's."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


PARTS: dict[str, Callable[[], dict[str, float]]] = {"step": step, "run": run}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
