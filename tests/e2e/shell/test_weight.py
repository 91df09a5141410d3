"""What a browser fetches for a page that it has never seen: bytes on the wire and requests, counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from editor_kit import READY
from platform_kit import Watched

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TEAM = "/t/demo-team"
LIMITS = {  # kilobytes, requests, what shows that the page is ready
    f"{TEAM}/": (100, 10, "main h1"),
    f"{TEAM}/specs/attention-tuner/edit/": (300, 10, READY),
    "run": (200, 12, "#run-head"),
}


class Count:
    """Bytes and addresses of all that a window fetches, from the debugger's channel."""

    def __init__(self, window: Watched) -> None:
        session = window.context.new_cdp_session(window.page)
        session.send("Network.enable")
        session.send("Network.clearBrowserCache")
        self.asked: dict[str, str] = {}
        self.bytes = 0
        session.on("Network.requestWillBeSent", self._asked)
        session.on("Network.loadingFinished", self._done)

    def _asked(self, event: dict[str, Any]) -> None:
        self.asked[event["requestId"]] = event["request"]["url"]

    def _done(self, event: dict[str, Any]) -> None:
        self.bytes += int(event["encodedDataLength"])


@pytest.mark.parametrize("path", LIMITS)
def test_a_page_that_was_never_seen_is_light(window: Callable[..., Watched], path: str) -> None:
    alice = window("alice", fresh=True)
    kilobytes, requests, ready = LIMITS[path]
    if path == "run":
        alice.go(f"{TEAM}/specs/hello/run/")
        alice.page.click("button:has-text('Start the run')")
        alice.page.wait_for_selector("#run-head")
        path = alice.page.url.removeprefix(alice.url)
        alice.go(f"{TEAM}/specs/")
    count = Count(alice)
    alice.go(path)
    alice.page.wait_for_selector(ready)
    alice.page.wait_for_load_state("networkidle")
    print(path, count.bytes, len(count.asked))
    assert 0 < len(count.asked) <= requests, sorted(count.asked.values())
    assert 0 < count.bytes < kilobytes * 1000, f"{count.bytes / 1000:.0f} kB"
