"""The list of runs in a browser: filters, choosing many, and a list that is fetched late."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from browser_runs_kit import ASKING, HELLO, TEAM, Begin, Person, ends, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_filters_survive(person: Person, begin: Begin) -> None:
    alice = person()
    begin(alice, HELLO)
    ends(alice, "Succeeded")
    page = alice.page
    page.click(".detail-side .tabs >> text=Records")
    page.select_option(".record-filter [name=kind]", "route")
    expect(page.locator("#records .kind").first).to_have_text("route")
    page.wait_for_url(re.compile("kind=route"))
    page.reload()
    assert set(page.locator("#records .kind").all_inner_texts()) == {"route"}
    page.click("#records a >> nth=0")
    expect(page.locator("#record .kind")).to_have_text("route")
    assert "kind=route" in page.url and "seq=" in page.url


def test_the_chosen_are_counted_and_asked_about(person: Person, begin: Begin) -> None:
    alice = person()
    path = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    page, key = alice.page, path.rstrip("/").rpartition("/")[2]
    alice.go(f"{TEAM}/runs/")
    page.fill("#run-filter [name=q]", key[-8:])
    expect(page.locator(".runs-table tbody tr")).to_have_count(1)
    page.wait_for_url(f"**/runs/?q={key[-8:]}")
    expect(page.locator("[value=cancel]")).to_be_disabled()
    page.check(f"input[value='{key}']")
    expect(page.locator("[data-chosen]")).to_have_text("1 chosen")
    expect(page.locator("[value=compare]")).to_be_disabled()
    page.click("[value=cancel]")
    expect(page.locator("dialog[open] p")).to_contain_text("Cancel the chosen run?")
    page.click("dialog[open] button:has-text('Cancel the run')")
    expect(page.locator(".message")).to_contain_text("Asked 1 run to cancel")
    assert page.url.endswith(f"?q={key[-8:]}")
    expect(page.locator(".runs-table .pill")).to_have_text("Cancelled")
    page.check("[name=mine]")
    page.wait_for_url("**mine=1")


HOLD = """() => {
  const read = Response.prototype.text, held = new Promise((go) => { window.go = go; });
  Response.prototype.text = async function () {
    const html = await read.call(this);
    window.came = true;
    await held;
    return html;
  };
}"""
"""From now on what the page fetches comes no further than to its door, until `go()`."""


def test_a_choice_outlives_a_list_that_was_on_its_way(person: Person, begin: Begin) -> None:
    alice, sockets = person(fresh=True), []
    page = alice.page
    page.route_web_socket(re.compile("/t/[a-z-]+/runs/events"), lambda socket: sockets.append(socket))
    begin(alice, HELLO)
    ends(alice, "Succeeded")
    alice.go(f"{TEAM}/runs/")
    page.evaluate(HOLD)
    opened(alice, sockets).send('{"type": "runs", "runs": [], "whole": false}')
    while not page.evaluate("window.came"):
        page.wait_for_timeout(50)
    row = page.locator("input[name=run]").first
    row.check()
    row.evaluate("row => { row.blur(); window.go(); }")
    page.wait_for_timeout(100)
    expect(row).to_be_checked()
    expect(page.locator("[data-chosen]")).to_have_text("1 chosen")
