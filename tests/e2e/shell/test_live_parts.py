"""Parts of pages that wait for a worker follow what it does without a reload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from platform_kit import Watched, manage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TEAM = "/t/demo-team"
WEBHOOK = """
from spakweb.ground.teams.models import Team
from spakweb.store.hooks.models import Webhook
team = Team.objects.get(slug="demo-team")
Webhook.objects.create(team=team, name="live", url="https://hooks.example/", events="succeeded",
    salt="x" * 48, made_by=team.members.first())
"""
FAILED = """
from spakweb.store.hooks.models import Delivery
Delivery.objects.update(state="failed", error="the address answers 500", tries=8)
"""


def does(data: Path, text: str) -> None:
    made = manage(data, "shell", "--no-imports", "-c", text)
    assert made.returncode == 0, made.stderr


def test_a_delivery_is_followed(data: Path, window: Callable[..., Watched]) -> None:
    does(data, WEBHOOK)
    alice = window("alice")
    alice.go(f"{TEAM}/webhooks/")
    page = alice.page
    page.click("main a:has-text('live')")
    page.click("button:has-text('Send a test')")
    row = page.locator("#deliveries tbody tr")
    expect(row).to_contain_text("Test")
    expect(page.locator("#deliveries [hx-trigger]")).to_have_count(1)
    does(data, FAILED)
    expect(row).to_contain_text("the address answers 500")
    expect(page.locator("#deliveries [hx-trigger]")).to_have_count(0)
    assert alice.flaws(dark=True) == []
