"""The page of an experiment whose model is away, in a browser: it says that it is paused, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from platform_kit import manage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

PAUSED = """
import sys
sys.path.insert(0, "tests")
import platform_campaigns as kit
from spakweb.work.specs.actions import save_version
from spakweb.work.suites import actions
from spakweb.ground.teams.models import Team, User
from spakweb.work.worker import queue
queue.send = lambda key, queue="default": None
alice = User.objects.get(username="alice")
spec, suite = kit.ground(alice, Team.objects.get(slug="demo-team"))
save_version(alice, spec, kit.ASKS, 1, "it asks")
spec.refresh_from_db()
actions.begin(alice, suite, [spec.head, spec.versions.get(number=1)], 2, ["gate"], "ollama")
"""
"""No model of this name answers here."""


@pytest.mark.findings("E1")
def test_the_page_of_an_experiment_that_is_paused_says_why(person, data: Path) -> None:
    made = manage(data, "shell", "--no-imports", "-c", PAUSED)
    assert made.returncode == 0, made.stderr
    alice = person("alice", color_scheme="light", reduced_motion="reduce")
    alice.go("/t/demo-team/suites/nightly/1/")
    expect(alice.page.locator("h1 .pill")).to_have_text("Paused", timeout=100_000)
    expect(alice.page.get_by_text("llm.").first).to_be_visible()
    assert alice.flaws(dark=True) == []
