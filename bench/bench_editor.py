"""The editor in a real browser: how soon it is usable, how soon it answers, how much it weighs.

Wall-clock milliseconds in Chromium against a server of its own, medians; the floor is the same browser with
the platform's smallest page, or what a person waits for by design (the pause after a keystroke). Weight is
what a cold start asks for, each answer compressed by gzip as a production server would.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.sizes import sized

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from editor_kit import READY, Person
from platform_kit import Server, Web, chromium, kept, seed

ROUNDS = sized(7, 1)
PAUSE = 250
"""Milliseconds that the page waits after a keystroke before it asks."""

CLOCK = """() => { window.clock = 0; window.until = (test) => new Promise((done) => {
  const look = () => test() ? done(performance.now() - window.clock) : requestAnimationFrame(look);
  look(); }); }"""
TYPED = """() => { const shown = () => document.querySelector('.cm-lintRange-error')
  && document.querySelector('#graph-pane .missing');
  addEventListener('keydown', () => { window.clock = performance.now(); }, { capture: true, once: true });
  window.waiting = window.until(() => window.clock && shown()); }"""
CHANGED = """() => { const select = document.querySelector('#properties-pane [name=target-0]');
  const other = [...select.options].map((option) => option.value).find((value) => value !== select.value);
  const before = document.querySelector('#text-pane .cm-content').textContent;
  select.value = other; window.clock = performance.now(); select.dispatchEvent(new Event('change'));
  return window.until(() => document.querySelector('#text-pane .cm-content').textContent !== before
    && document.querySelector(`#graph-pane g.edge[data-to="${other}"]`)); }"""


def text(tasks: int) -> str:
    """A spec of that many tasks, some seven lines each."""
    parts = [
        f"""  TASK task_{number} {{
    GOAL "Do what comes in place {number}."
    step look: tool.run {{ cmd: "ls -l" }}
    NEXT {{
      success -> task_{min(number + 1, tasks - 1)}{f", fail -> task_{number - 2}" if number % 3 == 2 else ""}
    }}
  }}
"""
        for number in range(tasks - 1)
    ]
    last = f'  TASK task_{tasks - 1} {{ step end: tool.run {{ cmd: "true" }} }}\n'
    return f"AGENT Bench LEVEL 2 {{\n  START -> task_0\n{''.join(parts)}{last}}}\n"


def rows() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        data = Path(folder) / "data"
        seed(data)
        with kept(Web(data)) as server:
            return measure(browser, server)


def measure(browser: Any, server: Server) -> list[dict[str, Any]]:
    person = Person(browser, server, "alice")
    small, lines500, tasks1000 = (person.make(text(count)) for count in (5, 71, 1000))
    empty = median(opened(person, "/healthz") for _ in range(ROUNDS))
    cold, weights = [], []
    for _ in range(3):
        fresh = Person(browser, server, "alice")
        session = fresh.context.new_cdp_session(fresh.page)
        session.send("Network.enable")
        session.send("Network.clearBrowserCache")
        asked: list[Any] = []
        fresh.page.on("response", lambda response, asked=asked: asked.append(response))
        cold.append(ready(fresh, small))
        weights.append(sum(weight(response) for response in asked))
        fresh.context.close()
    warm = median(ready(person, small) for _ in range(ROUNDS))
    keys = median(keystroke(person, lines500) for _ in range(ROUNDS))
    person.open(small)
    person.page.evaluate(CLOCK)
    changes = [person.page.evaluate(CHANGED) for _ in range(2 * ROUNDS)]
    thousand = median(ready(person, tasks1000) for _ in range(3))
    large = median(keystroke(person, tasks1000) for _ in range(3))
    person.context.close()
    return [
        row("weight of a cold start, gzip", max(weights) / 1000, None, "kB", "< 200"),
        row("usable, cold", median(cold), empty, "ms", "< 1000"),
        row("usable, warm", warm, empty, "ms", "< 300"),
        row("keystroke to squiggle and graph, 500 lines", keys, PAUSE, "ms", "< 400"),
        row("graph operation to text and graph", median(changes), None, "ms", "< 50"),
        row("1000 tasks, usable", thousand, empty, "ms", "< 2000"),
        row("keystroke to squiggle and graph, 1000 tasks", large, PAUSE, "ms", ""),
    ]


def row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    return {
        "name": name,
        "ours": round(ours, 1),
        "floor": None if floor is None else round(floor, 1),
        "unit": unit,
        "aim": aim,
    }


def weight(response: Any) -> int:
    """Bytes of an answer's body under gzip."""
    return len(gzip.compress(response.body(), 9)) if response.ok else 0


def opened(person: Person, path: str) -> float:
    person.page.goto(f"{person.server.url}{path}")
    spent: float = person.page.evaluate("() => performance.getEntriesByType('navigation')[0].domComplete")
    return spent


def ready(person: Person, path: str) -> float:
    """From the address to an editor that shows what the server knows of the text."""
    person.page.goto(f"{person.server.url}{path}edit/")
    person.page.wait_for_selector(READY)
    spent: float = person.page.evaluate("() => performance.getEntriesByName('spak-ready')[0].startTime")
    return spent


def keystroke(person: Person, path: str) -> float:
    """From a key that breaks the name of an edge's target to the squiggle and the ghost in the graph."""
    person.open(path)
    person.page.evaluate(CLOCK)
    person.cursor("success -> task_1")
    person.page.wait_for_timeout(400)
    person.page.evaluate(TYPED)
    person.page.keyboard.press("x")
    spent: float = person.page.evaluate("() => window.waiting")
    person.page.keyboard.press("Backspace")
    person.page.wait_for_timeout(2200)  # the draft is the text of the version again
    return spent


if __name__ == "__main__":
    for line in rows():
        print(line)
