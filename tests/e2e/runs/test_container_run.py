"""A run in a container, from the form to what the pages say of its spec."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser_runs_kit import TEAM, Person, ends
from sandbox_kit import docker_ready

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
BOXED = """\
task Look {
  step where: tool.run { cmd: "uname -n" }
  success: exit_code(where) == 0
}
"""


def test_in_a_container_and_how_its_spec_does(person: Person) -> None:
    docker_ready()
    alice = person()
    page = alice.page
    alice.go(f"{TEAM}/specs/new/")
    page.click("summary:has-text('Paste a spec')")
    page.fill("[name=name]", "boxed")
    page.fill("[name=text]", BOXED)
    page.click("button:has-text('Create spec')")
    page.click("main .acts a:has-text('Run')")
    page.select_option("[name=sandbox]", "docker")
    page.click("button:has-text('Start the run')")
    ends(alice, "Succeeded")
    expect(page.locator("#run-head .facts").first).to_contain_text("sandbox docker")
    key = page.url.rstrip("/").rpartition("/")[2]
    alice.go(f"{TEAM}/specs/boxed/health/")
    expect(page.locator(".health td.success")).to_contain_text("1 of 1")
    assert alice.flaws(dark=True) == []
    alice.go(f"{TEAM}/runs/compare/?one={key}&two={key}")
    expect(page.locator("#first-diff")).to_have_text("No record differs")
    assert alice.flaws(dark=True) == []
