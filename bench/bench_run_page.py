"""The page of a long run in Chromium: how fast 50,000 records open; frames while a large graph is live.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. A server and a database of its own; the
floor of opening is the same page of a run with 100 records, the floor of frames the same page at rest.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MANY, FEW, TASKS = 50_000, 100, 1_000
SECONDS, BATCHES, EACH = 4, 10, 100
"""1,000 changes of nodes each second, as the stream sends them: ten messages of a hundred."""
NAME, PASSWORD = "bench", "a long secret of the bench"

FRAMES = """
async ([seconds, batches, each, live]) => {
  const { Graph } = await import("/static/js/run/graph.js");
  const graph = new Graph(document.querySelector("#run-graph svg"));
  const tasks = [...graph.nodes.keys()];
  const states = ["running", "succeeded", "failed", "waiting"];
  let frames = 0, going = true, at = 0, worst = 0, before = performance.now();
  const count = (now) => {
    frames += 1;
    worst = Math.max(worst, now - before);
    before = now;
    if (going) requestAnimationFrame(count);
  };
  requestAnimationFrame(count);
  const began = performance.now();
  const timer = live && setInterval(() => {
    for (let step = 0; step < each; step += 1, at += 1) {
      const round = Math.floor(at / tasks.length);
      graph.node(tasks[at % tasks.length], states[(at + round) % 4], 1 + round);
    }
  }, 1000 / batches);
  await new Promise((done) => setTimeout(done, seconds * 1000));
  going = false;
  clearInterval(timer);
  return [frames / ((performance.now() - began) / 1000), worst, at];
}
"""


def rows() -> list[dict[str, Any]]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise RuntimeError("bench_run_page needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder, server(Path(folder)) as url:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(f"{url}/account/login/")
            page.fill("[name=login]", NAME)
            page.fill("[name=password]", PASSWORD)
            page.press("[name=password]", "Enter")
            page.wait_for_url("**/t/**")
            team = f"{url}/t/bench"
            found = [_opening(page, team, tab) for tab in ("records", "timeline")]
            found.append(_opening(page, team, "records&kind=end"))
            page.goto(f"{team}/runs/wide/")
            page.wait_for_selector("#run-graph .node")
            at_rest, _, _ = page.evaluate(FRAMES, [SECONDS, BATCHES, EACH, False])
            live, worst, events = page.evaluate(FRAMES, [SECONDS, BATCHES, EACH, True])
            browser.close()
    per_second = round(events / SECONDS)
    name = f"frames/s, {per_second:,} events/s into {TASKS:,} nodes (worst {worst:.0f} ms)"
    return [
        *found,
        {"name": name, "ours": round(live, 1), "floor": round(at_rest, 1), "unit": "1/s", "aim": ">= 30"},
    ]


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
    return {"name": name, "ours": took["many"], "floor": took["few"], "unit": "ms", "aim": "<= 2000"}


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A platform with three runs: many records, few records, a wide graph."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPAK_", "DJANGO_"))}
    environment = {**kept, "SPAK_WEB_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "spakweb.settings"}
    fill = [sys.executable, "-W", "ignore", "-c", "from bench.bench_run_page import fill; fill()"]
    subprocess.run(fill, cwd=ROOT, env={**environment, "PYTHONPATH": "tests"}, check=True)
    command = [sys.executable, "-m", "uvicorn", "spakweb.asgi:application", "--port", str(port)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--log-level", "warning", "--timeout-graceful-shutdown", "1"],
            cwd=ROOT, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{url}/healthz", timeout=1).close()
                break
            except OSError:
                if time.monotonic() > until:
                    raise RuntimeError((folder / "server.log").read_text()) from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def fill() -> None:
    """In a process of its own: the database with its people and runs."""
    import django

    django.setup()
    from django.core.management import call_command

    from run_kit import begun  # type: ignore[import-not-found]  # beside the tests
    from spak.records import Record
    from spakweb.specs.actions import create_spec
    from spakweb.teams.actions import create_team
    from spakweb.teams.models import User

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
    tasks = "".join(
        f'  TASK t{place} {{\n    step a: tool.list_files {{ path: "." }}\n'
        f"    NEXT {{ success -> t{(place + 20) % TASKS}, fail -> t{(place + 21) % TASKS} }}\n  }}\n"
        for place in range(TASKS)
    )
    wide = create_spec(user, team, "wide", f"AGENT Wide LEVEL 5 {{\n  START -> t0\n{tasks}}}\n")
    begun(team, wide.head, "wide", state="succeeded", task="t0")


if __name__ == "__main__":
    for row in rows():
        print(row)
