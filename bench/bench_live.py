"""A run begun and watched in a real Chromium: `manage.py up` with supervisor, web part, worker and SQLite.

`start`: from the click on "Start the run" to the first record on the page that it leads to; floor: the same
from the click on a link to a run that has ended. `step`: from the last record of a step's commit (its `at`,
taken just before) to the frame after its row and the state of its node are there; floor: the same change made
by a script of the page. `storm`: frames a second while a run with a real kernel, ledger and projection in a
process of its own makes 1,000 records a second in a graph of 1,000 nodes; floor: the page at rest. The
pages are watched by live.js; all times are of one machine's clock.

    python -m bench.bench_live fill|storm     parts, in processes of their own
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.sizes import sized

ROOT = Path(__file__).resolve().parents[1]
TEAM = "/t/demo-team"
STARTS, STEPS, TASKS = sized(10, 1), sized(120, 5), sized(1_000, 50)
PAUSES_S = [0.20 + 0.01 * (7 * place % 11) for place in range(11)]
"""How long steps take, one after another: uneven, and more than the 100 ms that follow a leading edge."""
RATE, REST_S, STORM_S = 1_000, sized(2, 1), sized(6, 1)
SMALL = 'task Small {\n  step go: tool.list_files { path: "." }\n}\n'


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    sys.path.insert(0, str(ROOT / "tests"))
    import platform_kit  # type: ignore[import-not-found]  # beside the tests

    if not platform_kit.CHROMIUM:
        raise RuntimeError("bench_live needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        data = Path(name) / "data"
        platform_kit.seed(data)
        _part("fill", data).communicate()
        with platform_kit.running(data, "--demo") as up, platform_kit.chromium() as browser:
            window = platform_kit.Watched(browser, up, "alice")
            window.context.add_init_script(path=ROOT / "bench" / "live.js")
            return [
                *starts(window),
                *steps(window, data),
                *storm_rows(window, data, "?tab=records", "records open"),
                *storm_rows(window, data, "", "timeline open"),
            ]


def starts(window: Any) -> list[dict[str, Any]]:
    began = [_started(window, "small") for _ in range(STARTS + 1)][1:]
    opened = []
    for _ in range(STARTS):
        window.go(f"{TEAM}/runs/")
        window.page.click("a[href*='/runs/2']:has-text('small')")
        opened.append(_first_record(window))
    floor = statistics.median(opened)
    return [
        _row("start to first record on screen, p50", statistics.median(began), floor, "ms", "< 1000"),
        _row(f"start to first record on screen, worst of {STARTS}", max(began), max(opened), "ms", "< 1000"),
    ]


def _started(window: Any, spec: str) -> float:
    window.go(f"{TEAM}/specs/{spec}/run/")
    window.page.click("button:has-text('Start the run')")
    return _first_record(window)


def _first_record(window: Any) -> float:
    window.page.wait_for_url("**/runs/2*/")
    return float(window.page.evaluate("bench.first()"))


def steps(window: Any, data: Path) -> list[dict[str, Any]]:
    page = window.page
    _started(window, "line")
    page.goto(f"{page.url}?tab=records")
    page.wait_for_selector("#records li")
    page.evaluate("() => { bench.follow(); }")
    page.wait_for_selector("#run-head[data-state=succeeded]", timeout=120_000)
    painted = page.evaluate("bench.painted")
    floor = page.evaluate("bench.touch(40)")
    with sqlite3.connect(f"file:{data}/spak.sqlite3?mode=ro", uri=True) as base:
        key = page.url.split("/runs/")[1].split("/")[0]
        of_run = "FROM runs_runrecord WHERE run_id = (SELECT id FROM runs_run WHERE key = ?)"
        at = dict(base.execute(f"SELECT seq, at {of_run}", (key,)))
    base.close()
    took = [then - at[seq] for seq, then in painted]
    if len(took) < 0.8 * STEPS:
        raise RuntimeError(f"only {len(took)} of {STEPS} steps were seen")
    name = f"commit to painted, {len(took)} steps"
    return [
        _row(f"{name}, p50", statistics.median(took), statistics.median(floor), "ms", "< 100"),
        _row(f"{name}, p95", _p95(took), _p95(floor), "ms", ""),
    ]


def storm_rows(window: Any, data: Path, tab: str, words: str) -> list[dict[str, Any]]:
    page = window.page
    with _storming(data) as process:
        key = process.stdout.readline().strip()
        window.go(f"{TEAM}/runs/{key}/{tab}")
        page.wait_for_selector("#run-graph .node")
        rest = page.evaluate(f"bench.frames({REST_S})")
        process.stdin.write("go\n")
        process.stdin.flush()
        ends = time.monotonic() + 60
        while page.evaluate("bench.records") < RATE / 2:
            assert time.monotonic() < ends, "no records came"
            page.wait_for_timeout(50)
        live = page.evaluate(f"bench.frames({STORM_S})")
    worst, lost = round(live["worst"]), live["resyncs"]
    name = f"{TASKS:,}-node graph, {words}: "
    return [
        _row(f"{name}frames/s (worst frame {worst} ms)", live["frames"], rest["frames"], "1/s", ">= 30"),
        _row(f"{name}records/s that came ({lost} resyncs)", live["records"], RATE, "1/s", ">= 0.95 of floor"),
    ]


@contextmanager
def _storming(data: Path) -> Iterator[Any]:
    process = _part("storm", data)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _part(part: str, data: Path) -> Any:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPAK_", "DJANGO_"))}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "bench.bench_live", part], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**kept, "SPAK_WEB_DATA": str(data), "DJANGO_SETTINGS_MODULE": "spakweb.settings"},
    )  # fmt: skip


def _p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[18]


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 1), "floor": round(floor, 1), "unit": unit, "aim": aim}


# ---- parts, in processes of their own


def fill() -> None:
    """The specs: a small one, one whose steps take their time, one of 1,000 tasks."""
    import django

    django.setup()
    from spakweb.ground.teams.models import User
    from spakweb.work.specs.actions import create_spec

    alice = User.objects.get(username="alice")
    team = alice.memberships.get().team
    chain = "".join(
        f'  TASK t{place} {{\n    step a: tool.run {{ cmd: "sleep {PAUSES_S[place % len(PAUSES_S)]:.2f}" }}\n'
        f"{f'    NEXT {{ success -> t{place + 1} }}' if place + 1 < STEPS else ''}\n  }}\n"
        for place in range(STEPS)
    )
    wide = "".join(
        f'  TASK t{place} {{\n    step a: tool.list_files {{ path: "." }}\n'
        f"    NEXT {{ success -> t{(place + 21) % TASKS}, fail -> t{(place + 20) % TASKS} }}\n  }}\n"
        for place in range(TASKS)
    )
    budget = "  CONFIG { BUDGET { steps: 100000 elapsed_s: 100000 } }\n"
    for name, text in (
        ("small", SMALL),
        ("line", f"AGENT Line LEVEL 5 {{\n{budget}  START -> t0\n{chain}}}\n"),
        ("wide", f"AGENT Wide LEVEL 5 {{\n{budget}  START -> t0\n{wide}}}\n"),
    ):
        create_spec(alice, team, name, text)


def storm() -> None:
    """A run of the wide spec in this process's hands, with a tool that only answers, at a pace."""
    import django

    django.setup()
    from bench.bench_run import NO_LAW, Answer
    from spak.lang.catalog import Catalog
    from spak.runner import Host, Run
    from spak.runner.genesis import genesis
    from spakweb.store.ledger.store import DatabaseLedgers
    from spakweb.store.ledger.workspaces import workspace_of
    from spakweb.store.runs.models import Run as Row
    from spakweb.store.specs.models import Spec
    from spakweb.work.runs.actions import new_key
    from spakweb.work.worker.held_run import HeldRun

    class Paced(Answer):
        def run(self, call: Any) -> Any:
            time.sleep(max(0.0, began + holding.ledger.count / RATE - time.monotonic()))
            return super().run(call)

    tools = {"list_files": Paced("list_files", "pure")}  # these share commits: no disk sets the pace
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    spec, key = Spec.objects.get(slug="wide"), new_key()
    row = Row.objects.create(
        team=spec.team, version=spec.head, key=key, name="wide", mode="full_auto", queue="bench"
    )
    place = workspace_of(key)
    body = genesis(spec.head.text, catalog, {}, place.snapshot(), 1, {"run": key}, law=NO_LAW)
    holding = HeldRun(row, Run.create(DatabaseLedgers(), key, body, Host(tools=tools), place))
    print(key, flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    holding.go(3600)


PARTS = {"fill": fill, "storm": storm}

if __name__ == "__main__":
    PARTS[sys.argv[1]]() if sys.argv[1:] else print(json.dumps(rows(), indent=1))
