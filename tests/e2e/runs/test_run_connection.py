"""A run's page whose connection, server or data goes: what it says, and how it comes back."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from browser_runs_kit import ASKING, HELLO, TEAM, Begin, Person, ends, opened
from platform_kit import Up

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_a_list_whose_line_was_cut_is_fetched_again(person: Person) -> None:
    alice, sockets = person(fresh=True), []
    page, whole = alice.page, '{"type": "runs", "runs": [], "whole": true}'
    page.route_web_socket(re.compile("/t/[a-z-]+/runs/events"), lambda socket: sockets.append(socket))
    alice.go(f"{TEAM}/runs/")
    opened(alice, sockets).send(whole)
    with page.expect_request(lambda asked: asked.headers.get("hx-request") == "true") as again:
        sockets[0].close(code=1012)
        opened(alice, sockets, 2).send(whole)
    assert again.value.url.endswith("/runs/")


def test_a_run_that_changed_before_the_socket_was_open_is_fetched_again(person: Person, begin: Begin) -> None:
    alice, sockets = person(fresh=True), []
    page = alice.page
    page.route_web_socket(re.compile("/t/[a-z-]+/runs/events"), lambda socket: sockets.append(socket))
    begin(alice, HELLO)
    ends(alice, "Succeeded")
    alice.go(f"{TEAM}/runs/")
    key = page.locator("[data-run]").first.get_attribute("data-run")
    with page.expect_request(lambda asked: asked.headers.get("hx-request") == "true"):
        opened(alice, sockets).send(
            json.dumps({"type": "runs", "runs": [{"key": key, "state": "running"}], "whole": True})
        )


def test_a_page_whose_server_is_away_or_that_slept_says_so(
    person: Person, begin: Begin, platform: Up
) -> None:
    """A server that is stopped closes no connection; a laptop that sleeps stops the page itself."""
    alice = person(fresh=True)
    page, line = alice.page, alice.page.locator("#run-line")
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    sleeping = alice.context.new_cdp_session(page)
    processes = [platform.process.pid, *platform.children()]
    for asleep in (False, True):
        if asleep:
            sleeping.send("Page.setWebLifecycleState", {"state": "frozen"})
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            if asleep:
                time.sleep(1)
                sleeping.send("Page.setWebLifecycleState", {"state": "active"})
            expect(line).to_contain_text("Connection lost at")
            expect(page.locator("html.not-live")).to_have_count(1)
        finally:
            for pid in reversed(processes):
                os.kill(pid, signal.SIGCONT)
        expect(page.locator("html.not-live")).to_have_count(0)
        expect(line).to_be_hidden()
    alice.troubles.clear()  # what could not be fetched meanwhile


@pytest.mark.parametrize("cut", ["silent", "offline"])
def test_a_page_says_within_five_seconds_that_it_is_not_live(person: Person, begin: Begin, cut: str) -> None:
    """A cut network closes no socket: the page asks, and nobody answers."""
    alice, silent = person(fresh=True), []

    def pass_on(socket: Any) -> None:
        server = socket.connect_to_server()
        socket.on_message(lambda message: None if silent else server.send(message))
        server.on_message(lambda message: None if silent else socket.send(message))

    page = alice.page
    page.clock.install()  # five seconds of the page, however slow the machine is
    alice.expected.append("WebSocket is closed before")  # its seconds pass at once, and it tries meanwhile
    page.route_web_socket(re.compile("/runs/[^/]+/events"), pass_on)
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    page.wait_for_timeout(2500)
    expect(page.locator("#run-line")).to_be_hidden()
    silent.append(cut)
    if cut == "offline":
        page.evaluate("dispatchEvent(new Event('offline'))")
    page.clock.run_for(5000)
    assert "Connection lost at" in page.locator("#run-line").inner_text()
    expect(page.locator("html.not-live")).to_have_count(1)
    silent.clear()
    expect(page.locator("#run-line")).to_have_text("Connected again. The page is live.")
    expect(page.locator("html.not-live")).to_have_count(0)
    expect(page.locator("#run-line")).to_be_hidden()


def test_a_tab_that_cannot_be_loaded_says_why_and_is_tried_again(person: Person, begin: Begin) -> None:
    alice = person(fresh=True)
    alice.expected += ["503", "ERR_FAILED"]
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    page, said = alice.page, alice.page.locator(".detail-side > [role=alert]")
    page.route("**/*tab=records*", lambda route: route.fulfill(status=503, body="away"))
    page.click(".detail-side .tabs >> text=Records")
    expect(said).to_contain_text("The server reported an error (503).")
    assert "tab=records" not in page.url
    with page.expect_response(lambda answer: answer.request.headers.get("hx-target") == "pane"):
        answered_elsewhere(alice)  # the timeline below the message is drawn anew
        ends(alice, "Succeeded")
    page.unroute("**/*tab=records*")
    said.get_by_role("button", name="Try again").click()
    expect(page.locator("#records .kind").first).to_be_visible()
    expect(said).to_have_count(0)
    page.route("**/r/*/", lambda route: route.abort())
    page.locator("#records a").first.click()
    expect(page.locator("#record [role=alert]")).to_contain_text("The server cannot be reached.")
    page.unroute("**/r/*/")
    page.click("#record button:has-text('Try again')")
    expect(page.locator("#record .kind")).to_be_visible()


def answered_elsewhere(alice: Any) -> None:
    """The question of a run is answered in another window of the same person."""
    window = alice.context.new_page()
    window.goto(alice.page.url)
    window.fill("#run-ask textarea", "word")
    window.click("#run-ask button:has-text('Answer')")
    window.close()


def test_a_click_is_not_lost_where_the_page_is_drawn_anew_under_it(person: Person, begin: Begin) -> None:
    """A press and its release meet the same element."""
    alice = person(fresh=True)
    page, sockets, asked = alice.page, [], []

    def pass_on(socket: Any) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket(re.compile("/runs/[^/]+/events"), pass_on)
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    table = page.locator("#pane details", has_text="Steps as a table")
    expect(table).to_be_visible()
    page.evaluate("document.getElementById('pane').firstElementChild.dataset.old = 'yes'")
    page.route("**/runs/*/", lambda route: asked.append(route))
    opened(alice, sockets).send(json.dumps({"type": "resync", "to": 1}))
    while not asked:
        page.wait_for_timeout(50)
    table.locator("summary").hover()
    page.mouse.down()
    with page.expect_response("**/runs/*/"):
        asked[0].continue_()
    page.wait_for_timeout(100)  # it would be drawn by now
    page.mouse.up()
    expect(page.locator("#pane [data-old]")).to_have_count(0)
    assert table.get_attribute("open") is not None


def test_a_record_on_its_way_is_shown_where_the_list_is_drawn_anew_meanwhile(
    person: Person, begin: Begin
) -> None:
    alice = person(fresh=True)
    page, sockets, asked, opening = alice.page, [], [], []

    def pass_on(socket: Any) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket(re.compile("/runs/[^/]+/events"), pass_on)
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    page.click(".detail-side .tabs >> text=Records")
    link = page.locator("#records a").first
    expect(link).to_be_visible()
    page.evaluate("document.getElementById('records').dataset.old = 'yes'")
    record, pane = re.compile(r"/r/\d+/$"), re.compile(r"/runs/[^/]+/\?")
    page.route(record, lambda route: opening.append(route))
    page.route(pane, lambda route: asked.append(route))
    with page.expect_request(pane):
        opened(alice, sockets).send(json.dumps({"type": "resync", "to": 1}))
    link.focus()
    with page.expect_request(record):
        page.keyboard.press("Enter")
    expect(link).to_be_focused()
    for route in asked:
        route.continue_()
    expect(page.locator("#records[data-old]")).to_have_count(0)
    expect(link).to_be_focused()
    opening[0].continue_()
    expect(page.locator("#record-title")).to_be_focused()


def test_without_sockets_the_page_asks(person: Person, begin: Begin) -> None:
    alice = person(fresh=True)
    alice.page.route_web_socket(re.compile("/events"), lambda socket: socket.close(code=1011))
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    alice.page.fill("#run-ask textarea", "word")
    alice.page.click("#run-ask button:has-text('Answer')")
    ends(alice, "Succeeded")
