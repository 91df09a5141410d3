"""The documentation and the page of the API in a browser: a search is followed, an operation is tried."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from platform_kit import Watched

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_a_search_leads_to_the_section(window: Callable[..., Watched]) -> None:
    nobody = window()
    nobody.go("/docs/")
    nobody.page.keyboard.press("/")
    nobody.page.keyboard.type("lang.markdown_escape")
    nobody.page.keyboard.press("Enter")
    nobody.page.click("main ol a >> nth=0")
    nobody.page.wait_for_url("**/docs/errors/#lang.markdown_escape")
    expect(nobody.page.locator("[id='lang.markdown_escape']")).to_be_in_viewport()


def test_an_operation_is_opened_by_its_address_and_tried(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    alice.go("/api/#list_runs")
    operation = alice.page.locator("#list_runs")
    expect(operation.locator("pre code").first).to_contain_text("$SPAK_TOKEN")
    operation.get_by_role("button", name="Try it").click()
    expect(operation.locator("[data-status]")).to_have_text("200 OK")
    expect(operation.locator("[data-body]")).to_contain_text('"runs"')
    assert alice.flaws(dark=True) == []
    operation.get_by_label("team").fill("no-such/team")
    operation.get_by_role("button", name="Try it").click()
    expect(operation.locator("[data-status]")).to_contain_text("404")
    expect(operation.locator("[data-body]")).to_contain_text("web.404")
    alice.forget("404")


def test_a_stream_is_shown_until_it_is_stopped(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    alice.go("/api/#stream_runs")
    operation = alice.page.locator("#stream_runs")
    operation.get_by_role("button", name="Try it").click()
    expect(operation.locator("[data-status]")).to_have_text("200 OK")
    operation.get_by_role("button", name="Stop").click()
    expect(operation.locator("[data-status]")).to_have_text("200 OK (stopped)")
