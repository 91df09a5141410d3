"""A review: how soon and how heavy the page of a large patch is, and judging 10,000 recorded actions.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. A web part and a database of its own; the
floor of the page is that of a patch with one edit in a spec of two tasks.

    python -m bench.bench_review fill     a part, in a process of its own
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.sizes import sized

ROOT = Path(__file__).resolve().parents[1]
TASKS, EDITS = sized(200, 20), sized(50, 5)
STEPS, COPIES = sized(50, 5), sized(200, 2)
OPENINGS = sized(10, 2)
NAME = "bench"


def rows() -> list[dict[str, Any]]:
    sys.path.insert(0, str(ROOT / "tests"))
    import platform_kit as kit  # type: ignore[import-not-found]  # beside the tests

    if not kit.CHROMIUM:
        raise RuntimeError("bench_review needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        data = Path(folder) / "data"
        environment = kit.environment(
            data, 8000, DJANGO_SETTINGS_MODULE="spakweb.settings", PYTHONPATH="tests"
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "bench.bench_review", "fill"],
            cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        judged = json.loads(done.stdout.splitlines()[-1])
        with kit.kept(kit.Web(data)) as web, kit.chromium() as browser:
            window = kit.Watched(browser, web, NAME)
            large, small = (f"{web.url}/t/bench/specs/{spec}/patches/1/" for spec in ("large", "little"))
            ours, floor = _opening(window.page, large), _opening(window.page, small)
            cpu, least_cpu = (_cpu(window, web.process.pid, where) for where in (large, small))
            weight = len(window.context.request.get(large).body()) / 1024
            least = len(window.context.request.get(small).body()) / 1024
    name = f"open a patch of {TASKS} tasks with {EDITS} edits"
    return [
        {"name": name, "ours": ours, "floor": floor, "unit": "ms", "aim": "< 1000"},
        {"name": f"{name}, CPU of the server", "ours": cpu[0], "floor": least_cpu[0], "unit": "ms",
         "aim": ""},
        {"name": f"{name}, CPU of the page in Chromium", "ours": cpu[1], "floor": least_cpu[1], "unit": "ms",
         "aim": ""},
        {"name": f"{name}, its HTML", "ours": round(weight), "floor": round(least), "unit": "KB",
         "aim": "< 300"},
        {"name": f"judge {judged['actions']:,} recorded actions under both texts", "ours": judged["s"],
         "floor": None, "unit": "s", "aim": "< 30"},
    ]  # fmt: skip


def _opening(page: Any, where: str) -> int:
    """Milliseconds from the address to the loaded page, best of three after one to warm up."""
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        page.goto(where)
        best = min(best, time.perf_counter() - began)
    return round(best * 1000)


def _cpu(window: Any, server: int, where: str) -> tuple[int, int]:
    """Milliseconds of the server and of the page's main thread for one opening, the mean of OPENINGS: what a
    busy machine does not change much."""
    asked = window.context.new_cdp_session(window.page)
    asked.send("Performance.enable")

    def spent() -> tuple[float, float]:
        fields = Path(f"/proc/{server}/stat").read_bytes().rpartition(b")")[2].split()
        found = {item["name"]: item["value"] for item in asked.send("Performance.getMetrics")["metrics"]}
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), found["TaskDuration"]

    window.page.goto(where)
    (first, _), page_s = spent(), 0.0
    for _ in range(OPENINGS):
        window.page.goto(where)
        page_s += spent()[1]  # of this document
    return round(1000 * (spent()[0] - first) / OPENINGS), round(1000 * page_s / OPENINGS)


def text(tasks: int) -> str:
    def task(number: int) -> str:
        edges = f"NEXT {{ success -> t{number + 1}, fail -> t{max(0, number - 7)} }}\n  "
        return (
            f'  TASK t{number} {{\n    GOAL "Look at part {number} of the project."\n'
            f'    step s{number}: tool.list_files {{ path: "p{number}" }}\n    '
            f"{edges if number + 1 < tasks else ''}}}\n"
        )

    return f"AGENT Bench LEVEL 1 {{\n  START -> t0\n{''.join(map(task, range(tasks)))}}}\n"


def fill() -> None:
    """In a process of its own: people, specs, patches and runs; prints how long judging took."""
    import django

    django.setup()
    from django.core.management import call_command

    from platform_kit import PASSWORD
    from spakweb.ground.teams.models import User
    from spakweb.store.reviews.models import Check
    from spakweb.work.jobs import work
    from spakweb.work.reviews import actions, checks
    from spakweb.work.runs.actions import start
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.teams.actions import create_team
    from spakweb.work.worker import execute

    call_command("migrate", verbosity=0)
    user = User.objects.create_user(NAME, "bench@spak.example", PASSWORD)
    team = create_team(user, "Bench")
    for name, tasks, edits in (("large", TASKS, EDITS), ("little", 2, 1)):
        base = changed = text(tasks)
        for number in range(edits):
            place = number * tasks // edits
            changed = changed.replace(f'"p{place}"', f'"q{place}"', 1)
        actions.propose(user, create_spec(user, team, name, base), changed, 1, "Bench")
    steps = "".join(
        f'  step s{n}: tool.write_file {{ path: "f{n}.txt" content: "x" }}\n' for n in range(STEPS)
    )
    acts = f"task Acts {{\n{steps}}}\n"
    spec = create_spec(user, team, "acts", acts)
    run = start(user, spec)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == "succeeded", run.reason
    copies(run)
    changed = f'POLICY """forbidden(A) :- tool(A, /delete_file)."""\n{acts}'
    patch = actions.propose(user, spec, changed, 1, "Bench")
    row = patch.latest.checks.get(name="actions")
    began = time.perf_counter()
    hold = work.take(checks.KIND, str(patch.latest.pk))
    assert hold is not None
    checks.run(row, patch.latest, hold)
    took = time.perf_counter() - began
    row.refresh_from_db()
    assert row.state == Check.State.PASSED, row.words
    print(json.dumps({"s": round(took, 1), "actions": row.result["judged"]}))


def copies(run: Any) -> None:
    """The same records under other keys."""
    from spakweb.store.runs.models import Run, RunRecord

    records = list(RunRecord.objects.filter(run=run))
    for number in range(COPIES - 1):
        made = Run.objects.create(
            team=run.team, version=run.version, key=f"copy-{number}", name=run.name, state=run.state,
            count=run.count, head=run.head, ended_at=run.ended_at,
        )  # fmt: skip
        RunRecord.objects.bulk_create(
            RunRecord(
                run=made, seq=one.seq, kind=one.kind, authority=one.authority, task=one.task, step=one.step,
                at=one.at, line=one.line,
            )
            for one in records
        )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:] == ["fill"]:
        fill()
    else:
        for row in rows():
            print(row)
