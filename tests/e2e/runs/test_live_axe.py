"""Every page that shows runs, while one is live: axe finds nothing serious while a tool runs and another run
waits for an answer, in light, in dark and at 320 px."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from platform_kit import Watched

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

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
    step run: tool.run { cmd: "python slow.py" timeout_s: 900 }
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


def test_nothing_serious_while_a_tool_runs(person: Callable[..., Watched], begin: Callable[..., str]) -> None:
    alice, phone = person(), person("bob", viewport={"width": 320, "height": 700})
    waiting = begin(alice, ASKS, "stepwise")
    expect(alice.page.locator("#run-head .pill").first).to_have_text("Waiting")
    run = begin(alice, SLOW)
    expect(alice.page.locator('#run-graph [data-task="build"]')).to_have_attribute("data-state", "running")
    key = run.rstrip("/").rpartition("/")[2]
    alice.go(run)
    spec = alice.page.locator("#run-head .version-link").get_attribute("href").partition("v/")[0]
    pages = (
        *(f"{run}?tab={tab}" for tab in TABS), f"{run}r/1/", f"{run}fork/", waiting,
        f"{TEAM}/runs/", f"{TEAM}/runs/compare/?one={key}", f"{TEAM}/", f"{TEAM}/fleet/",
        spec, f"{spec}edit/", f"{spec}run/", f"{spec}health/", f"{TEAM}/specs/",
    )  # fmt: skip
    found = []
    for path in pages:
        for one in (alice, phone) if path.startswith(run) or path == waiting else (alice,):
            assert one.go(path).status == 200, path
            found += [f"{path}: {item}" for item in one.flaws(dark=one is alice)]
    assert not found, "\n".join(found)
    alice.go(run)
    expect(alice.page.locator("#run-head .pill").first).to_have_text("Running")  # it ran all the while
    alice.page.click("#run-head button:has-text('Cancel')")
    alice.page.click("dialog[open] button:has-text('Cancel the run')")
    expect(alice.page.locator("#run-head .pill").first).to_have_text("Cancelled")
    assert alice.flaws(dark=True) == []
