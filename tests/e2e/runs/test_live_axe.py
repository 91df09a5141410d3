"""Every page that shows runs, while one is live: axe finds nothing serious while a tool runs and another run
waits for an answer, in light, in dark and at 320 px."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from platform_kit import Watched

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TEAM = "/t/demo-team"
SLOW = '''\
AGENT Slow LEVEL 2 {
  START -> first
  TASK first {
    step bad: tool.run { cmd: "ls missing" on_fail: continue }
    NEXT { success -> build }
  }
  TASK build {
    step script: tool.write_file { path: "slow.py" content: """
import os, time
print("begun", *range(100), sep="\\n", flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
""" }
    step run: tool.run { cmd: "python slow.py" }
    success: exit_code(run) == 0
  }
}
'''
ASKS = """\
task Talk {
  step hear: llm.query { prompt: "A word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
}
"""
TABS = ("timeline", "records", "log", "metrics", "workspace", "registers")


PAGES = (
    *(f"{{run}}?tab={tab}" for tab in TABS), "{run}r/1/", "{run}fork/", f"{TEAM}/runs/",
    f"{TEAM}/runs/compare/?one={{key}}", f"{TEAM}/", f"{TEAM}/fleet/", "{spec}", "{spec}edit/", "{spec}run/",
    "{spec}health/", f"{TEAM}/specs/",
)  # fmt: skip
PHONE = PAGES[:1] + PAGES[3:4]


def test_nothing_serious_while_a_tool_runs(person: Callable[..., Watched], begin: Callable[..., str]) -> None:
    """A tool is ended at its limit, which a slow machine may come to: then another run is begun, and a page
    during which its run ended is looked at again."""
    alice, phone = person(), person("bob", viewport={"width": 320, "height": 700})
    waiting = begin(alice, ASKS, "stepwise")
    expect(alice.page.locator("#run-head .pill").first).to_have_text("Waiting")
    found = [f"waiting: {item}" for one in (alice, phone) if one.go(waiting) for item in one.flaws(dark=True)]
    places: dict[str, str] = {}

    def runs() -> bool:
        address = f"{alice.url}{places['run'].replace('/t/', '/api/v1/teams/', 1)}live/" if places else ""
        return bool(address) and alice.page.request.get(address, max_retries=3).json()["state"] == "running"

    def ensure() -> None:
        if runs():
            return
        run = begin(alice, SLOW)
        node = alice.page.locator('#run-graph [data-task="build"]')
        expect(node).to_have_attribute("data-state", "running")
        version = alice.page.locator("#run-head .version-link").get_attribute("href") or ""
        places.update(run=run, key=run.rstrip("/").rpartition("/")[2], spec=version.partition("v/")[0])

    for page in PAGES:
        for one in (alice, phone) if page in PHONE else (alice,):
            while True:
                ensure()
                path = page.format_map(places)
                assert one.go(path).status == 200, path
                flaws = one.flaws(dark=one is alice)
                if runs():
                    break
            found += [f"{path}: {item}" for item in flaws]
    assert not found, "\n".join(found)
    alice.go(places["run"])
    alice.page.click("#run-head button:has-text('Cancel')")
    alice.page.click("dialog[open] button:has-text('Cancel the run')")
    expect(alice.page.locator("#run-head .pill").first).to_have_text("Cancelled")
    assert alice.flaws(dark=True) == []
