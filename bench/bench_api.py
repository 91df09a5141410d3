"""The API: how soon a run that CI starts is answered, and a filtered list of 100,000 runs.

`trigger`: 20 requests a second, one after the other, each to its 201, in one process with an embedded
database; the time is that of the whole application, without a network. `list`: the query of the list as the
API asks it, for filters that fit one run, none, or all; the slowest and the median. No floor: nothing simpler
gives the same answer.

    python -m bench.bench_api     in a process of its own, with SPAK_WEB_DATA and the settings
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_platform import ROOT, _environment, row, team_of_bench
from bench.sizes import sized

REQUESTS, EACH_S = sized(200, 5), 0.05
RUNS = sized(100_000, 500)
FILTERS = ("", "state=failed", "state=waiting", "state=unchecked", "spec=hello", "label=first", "q=none")


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "bench.bench_api"], cwd=ROOT, stdout=subprocess.PIPE, check=True,
            env=_environment(Path(folder), {}),
        )  # fmt: skip
    seen = json.loads(done.stdout.decode().strip().splitlines()[-1])
    title = f"API: a run is started, {1 / EACH_S:g} a second"
    return [
        row(f"{title}, p95", seen["p95"], 0, "ms", "<= 50"),
        row(f"{title}, p50", seen["p50"], 0, "ms", ""),
        row(f"API: a filter of {RUNS:,} runs at the database, slowest", seen["slowest"], 0, "ms", "<= 100"),
        row(f"API: a filter of {RUNS:,} runs at the database, median", seen["median"], 0, "ms", ""),
    ]


def measured() -> dict[str, float]:
    """Milliseconds."""
    team = team_of_bench()
    from spakweb.ground.teams.models import Membership, User
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.worker import queue

    queue.send = lambda key, queue="default": None
    user = User.objects.create_user("bench", "bench@spak.example", "bench")
    Membership.objects.create(team=team, user=user, role="admin")
    spec = create_spec(user, team, "hello", 'task Hello { step a: tool.run { cmd: "true" } }')
    trigger = _trigger(user, team)
    return {**trigger, **_lists(user, team, spec)}


def _trigger(user: Any, team: Any) -> dict[str, float]:
    from django.conf import settings
    from django.test import Client

    from spakweb.work.teams import tokens

    settings.ALLOWED_HOSTS = ["testserver"]
    secret = tokens.make(user, "bench", 7, team, ["start"])[1]
    client = Client(headers={"authorization": f"Bearer {secret}"})
    took = []
    for number in range(REQUESTS):
        began = time.perf_counter()
        headers = {"idempotency-key": f"k{number}"}
        address = f"/api/v1/teams/{team.slug}/specs/hello/runs/"
        answer = client.post(address, '{"labels": ["ci"]}', content_type="application/json", headers=headers)
        spent = time.perf_counter() - began
        assert answer.status_code == 201, answer.content
        took.append(1000 * spent)
        time.sleep(max(0.0, EACH_S - spent))
    return {"p50": statistics.median(took), "p95": sorted(took)[int(0.95 * len(took))]}


def _lists(user: Any, team: Any, spec: Any) -> dict[str, float]:
    from django.db import connection
    from django.http import QueryDict

    from spakweb.face.api.shapes.common import RUN_COLUMNS
    from spakweb.face.runs.filters import RunFilter
    from spakweb.store.runs.models import Run

    Run.objects.create(
        team=team, version=spec.head, key="first", name="first", state="failed", labels=["first"]
    )
    one = Run.objects.create(
        team=team, version=spec.head, key="k", name="n", state="succeeded", made_by=user, labels=["ci"],
        summary={"checks": 1, "steps": 3, "tokens": {"in": 1000}},
    )  # fmt: skip
    columns = [field.column for field in Run._meta.concrete_fields if field.column != "id"]
    copied = {"key": "'k-' || n", "name": "'n ' || n"}
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < %s) "
            "INSERT INTO runs_run ("
            + ", ".join(f'"{name}"' for name in columns)
            + ") SELECT "
            + ", ".join(copied.get(name, f'"{name}"') for name in columns)
            + " FROM t, runs_run WHERE runs_run.id = %s",
            [RUNS, one.pk],
        )
    best = []
    for query in FILTERS:
        found = RunFilter.of(QueryDict(query)).apply(Run.objects.filter(team=team), user)
        asked = found.order_by("-pk").values(*RUN_COLUMNS)[:101]
        times = []
        for _ in range(3):
            began = time.perf_counter()
            list(asked.all())
            times.append(1000 * (time.perf_counter() - began))
        best.append(min(times))
    return {"slowest": max(best), "median": statistics.median(best)}


if __name__ == "__main__":
    print(json.dumps(measured()))
