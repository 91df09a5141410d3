"""The page of a long run in Chromium: how fast one with 50,000 records opens, on the tabs that read them.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. A web part and a database of its own; the
floor is the same page of a run with 100 records.

    python -m bench.bench_run_page fill     a part, in a process of its own
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.sizes import sized

ROOT = Path(__file__).resolve().parents[1]
MANY, FEW = sized(50_000, 500), 100
NAME = "bench"


def rows() -> list[dict[str, Any]]:
    sys.path.insert(0, str(ROOT / "tests"))
    import platform_kit as kit  # type: ignore[import-not-found]  # beside the tests

    if not kit.CHROMIUM:
        raise RuntimeError("bench_run_page needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        data = Path(folder) / "data"
        environment = kit.environment(
            data, 8000, DJANGO_SETTINGS_MODULE="spakweb.settings", PYTHONPATH="tests"
        )
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "bench.bench_run_page", "fill"],
            cwd=ROOT, env=environment, check=True,
        )  # fmt: skip
        with kit.kept(kit.Web(data)) as web, kit.chromium() as browser:
            page = kit.Watched(browser, web, NAME).page
            team = f"{web.url}/t/bench"
            return [_opening(page, team, tab) for tab in ("records", "timeline", "records&kind=end")]


def _opening(page: Any, team: str, tab: str) -> dict[str, Any]:
    """Milliseconds from the address to the loaded page, best of three after one to warm up."""
    took = {}
    for key in ("many", "few"):
        best = float("inf")
        for _ in range(4):
            began = time.perf_counter()
            page.goto(f"{team}/runs/{key}/?tab={tab}")
            best = min(best, time.perf_counter() - began)
        took[key] = round(best * 1000)
    name = f"open a run of {MANY:,} records, {tab.replace('&', ', ')}"
    return {"name": name, "ours": took["many"], "floor": took["few"], "unit": "ms", "aim": "< 2000"}


def fill() -> None:
    """In a process of its own: the database with its people and runs."""
    import django

    django.setup()
    from django.core.management import call_command

    from platform_kit import PASSWORD
    from run_rows_kit import begun  # type: ignore[import-not-found]
    from spak.records import Record
    from spakweb.ground.teams.models import User
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.teams.actions import create_team

    call_command("migrate", verbosity=0)
    user = User.objects.create_user(NAME, "bench@spak.example", PASSWORD)
    team = create_team(user, "Bench")
    text = 'task Work {\n  step go: tool.list_files { path: "." }\n}\n'
    small = create_spec(user, team, "small", text)

    def records(count: int) -> list[Record]:
        """Rounds of a permit, its answer and a route, as a loop of tool steps makes them."""
        at, made = 1_790_000_000_000, []
        for place in range(count // 3):
            attempt, clock = place + 1, at + 40 * place
            about: dict[str, Any] = {"task": "Work", "step": "go", "attempt": attempt}
            permit = {"act": "tool", "allow": True, "args": {"path": "."}, "name": "list_files"}
            answer = {"outcome": "exited", "exit": 0, "out": f"file_{place}.txt\n" * 8}
            made += [
                Record("permit", "commit", permit, at=clock, **about),
                Record("act", "proposal", answer, at=clock + 20, side={"ms": 20}, **about),
                Record("route", "commit", {"signal": "success", "to": "Work/"}, at=clock + 21, **about),
            ]
        return [*made, Record("end", "commit", {"state": "succeeded"}, at=at + 40 * count, task="Work")]

    for key, count in (("many", MANY), ("few", FEW)):
        begun(team, small.head, key, records(count - 2), state="succeeded", task="Work")


if __name__ == "__main__":
    if sys.argv[1:] == ["fill"]:
        fill()
    else:
        for row in rows():
            print(row)
