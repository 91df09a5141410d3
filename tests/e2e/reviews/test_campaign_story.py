"""A campaign in the browser: started from a spec's page, followed while it runs, its patch in the reviews."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from platform_kit import ROOT, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

MADE = """
import sys
sys.path.insert(0, "tests")
import platform_campaigns as kit
from spakweb.ground.teams.models import Team, User
from spakweb.work.worker import queue
queue.send = lambda key, queue="default": None
kit.ground(User.objects.get(username="alice"), Team.objects.get(slug="demo-team"))
"""


def test_start_a_campaign_follow_it_and_find_its_patch(person, data: Path) -> None:
    words = [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", MADE]
    made = subprocess.run(
        words, cwd=ROOT, env=environment(data, 8000), capture_output=True, text=True, check=False, timeout=120
    )
    assert made.returncode == 0, made.stderr
    alice = person("alice", color_scheme="light", reduced_motion="reduce")
    page = alice.page
    alice.go("/t/demo-team/specs/writes/")
    page.get_by_role("navigation", name="Writes").get_by_role("link", name="Campaigns").click()
    page.get_by_label("Candidates at most").fill("2")
    page.get_by_label("Most fresh pairs of runs for one candidate").fill("20")
    page.get_by_label("Most runs of pairs in total").fill("60")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Margin, in points of the pass rate").fill("50")
    assert alice.flaws(dark=True) == []
    page.get_by_role("button", name="Start the campaign").click()
    page.wait_for_url("**/campaigns/1/")
    expect(page.get_by_role("heading", name="Runs under way")).to_be_visible()
    assert alice.flaws() == []
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1 .pill")).to_have_text("Ended", timeout=200_000)
    expect(page.get_by_text("Its proposer has no more to propose.")).to_be_visible()
    page.locator("summary", has_text="pairs").click()
    assert alice.flaws(dark=True) == []
    page.get_by_role("link", name="Patch 1").click()
    page.wait_for_url("**/patches/1/")
    expect(page.get_by_text("Fit for review").first).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("1 candidate against the base"))).to_be_visible()
    expect(page.get_by_role("table").filter(has_text="Pairs of the campaign")).to_be_visible()
    assert alice.flaws(dark=True) == []
    alice.go("/t/demo-team/reviews/")
    expect(page.get_by_text("campaign 1 (nightly) candidate 1")).to_be_visible()
    alice.go("/t/demo-team/campaigns/")
    assert alice.flaws(dark=True) == []
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("campaigns/", "campaigns/1/", "specs/writes/campaigns/"):
        alice.go(f"/t/demo-team/{path}")
        assert alice.flaws() == []


@pytest.mark.findings("B24")
def test_a_newcomers_first_campaign_ends_in_something_to_look_at(person, data: Path) -> None:
    """After the one above, which made the suite: what is missing is named, and a click mends it."""
    alice = person("alice", color_scheme="light", reduced_motion="reduce")
    page = alice.page

    def campaign(number: int) -> None:
        alice.go("/t/demo-team/specs/writes/campaigns/")
        page.get_by_label("Most fresh pairs of runs for one candidate").fill("2")
        page.get_by_role("button", name="Start the campaign").click()
        page.wait_for_url(f"**/campaigns/{number}/")
        expect(page.locator("h1 .pill")).to_have_text("Ended", timeout=200_000)
        assert alice.flaws(dark=True) == []

    campaign(2)
    expect(page.get_by_text("Not shown to be better", exact=True).first).to_be_visible()
    page.get_by_text("No gate case was golden").get_by_role("link", name="Nightly").click()
    page.wait_for_url("**/suites/nightly/")
    page.get_by_role("button", name="Mark as golden").click()
    expect(page.locator(".tag", has_text="golden")).to_be_visible()
    assert alice.flaws(dark=True) == []
    campaign(3)
    expect(page.locator("article .pill", has_text="Fit for review")).to_be_visible()
    page.get_by_role("link", name="Patch 2").click()
    expect(page.get_by_text("Golden cases")).to_be_visible()
    assert alice.flaws() == []


@pytest.mark.findings("B12")
def test_runs_of_campaigns_are_shown_when_they_are_asked_for(person) -> None:
    alice = person("alice", color_scheme="light", reduced_motion="reduce")
    page = alice.page
    alice.go("/t/demo-team/runs/")
    expect(page.get_by_role("link", name="campaign 1")).to_have_count(0)
    page.get_by_label("Of experiments and campaigns").check()
    page.wait_for_url("**/runs/?**trials=1**")
    expect(page.get_by_role("link", name="campaign 1").first).to_be_visible()
    assert alice.flaws(dark=True) == []
