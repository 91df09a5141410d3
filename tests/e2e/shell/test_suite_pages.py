"""Suites in the browser: keep a run as a case, run it under two versions, follow the matrix; findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from platform_kit import Watched, manage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(250)]

MADE = """
from spakweb.work.runs import actions as runs
from spakweb.store.runs.models import Run
from spakweb.work.specs.actions import create_spec, save_version
from spakweb.work.suites import actions
from spakweb.ground.teams.models import Team, User
from spakweb.work.worker import execute, queue
queue.send = lambda key, queue="default": None
alice, team = User.objects.get(username="alice"), Team.objects.get(slug="demo-team")
GOOD = '''AGENT Writes {
  START -> Reads
  TASK Reads {
    step one: tool.list_files { path: "." }
    step two: tool.list_files { path: "." }
    NEXT { success -> Write, timeout -> Write }
  }
  TASK Write {
    step one: tool.write_file { path: "a.txt" content: "good" }
    success: file_contains("a.txt", "good")
  }
}
'''
spec = create_spec(alice, team, "Writes", GOOD)
save_version(alice, spec, GOOD.replace('content: "good"', 'content: "bad"'), 1, "worse")
run = runs.start(alice, spec, version=spec.versions.get(number=1))
execute.advance(run.key)
run.refresh_from_db()
suite = actions.make(alice, team, "Nightly")
actions.keep(alice, run, suite, "first")
made = actions.begin(
    alice, suite, [spec.versions.get(number=number) for number in (1, 2)], 3, ["train", "gate", "sealed"]
)
for cell in list(made.cells.select_related("run"))[:-1]:
    execute.advance(cell.run.key)
print(run.key, made.cells.last().run.key)
"""
END = """
from spakweb.work.worker import execute, queue
queue.send = lambda key, queue="default": None
execute.advance("KEY")
"""


def shell(data: Path, code: str) -> str:
    done = manage(data, "shell", "--no-imports", "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_experiment_is_live_and_findings_have_a_graph(window: Callable[..., Watched], data: Path) -> None:
    run, last = shell(data, MADE).split()
    alice = window("alice", color_scheme="light", reduced_motion="reduce")
    page = alice.page
    alice.go("/t/demo-team/suites/nightly/1/")
    page.wait_for_selector('.pill:has-text("1 run open")')
    shell(data, END.replace("KEY", last))
    page.wait_for_selector('h1 .pill:has-text("Done")')
    assert alice.flaws(dark=True) == []
    page.click("text=first record that differs")
    page.wait_for_url("**/runs/compare/**")
    for path in ("suites/", "suites/nightly/"):
        alice.go(f"/t/demo-team/{path}")
        assert alice.flaws() == []
    alice.go("/t/demo-team/specs/writes/health/")
    page.wait_for_selector("#findings-part svg")
    assert "redundant call" in page.inner_text("#findings-part")
    assert alice.flaws(dark=True) == []
    alice.go(f"/t/demo-team/runs/{run}/")
    page.click("a:has-text('Keep as a case')")
    page.wait_for_selector("text=Keep as a case of")
    expect(page.locator("[name=suite]")).to_be_focused()
    page.select_option("[name=suite]", "")
    page.fill("[name=new]", "Another")
    page.click("button:has-text('Keep as a case')")
    page.wait_for_selector("text=is in the split")


def test_the_pages_fit_a_phone(window: Callable[..., Watched]) -> None:
    """After the one above, which made the suite."""
    phone = window("alice", viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    for path in ("suites/", "specs/hello/health/"):
        phone.go(f"/t/demo-team/{path}")
        assert phone.flaws() == []
