"""A platform with its worker, and runs that are begun from their pages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from platform_kit import Up, Watched, running

TEAM = "/t/demo-team"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def platform(data: Path) -> Iterator[Up]:
    with running(data, "--demo") as found:
        yield found


@pytest.fixture
def person(window: Callable[..., Watched]) -> Callable[..., Watched]:
    """`person("bob", color_scheme="dark")`: a signed-in window, alice's when no name is given."""

    def make(name: str = "alice", **options: Any) -> Watched:
        return window(name, **options)

    return make


@pytest.fixture
def begin() -> Callable[..., str]:
    """`begin(window, text, mode)`: a spec of that text is run from its page; gives the path of the run."""

    def make(window: Watched, text: str, mode: str = "") -> str:
        page = window.page
        window.go(f"{TEAM}/specs/new/")
        page.click("summary:has-text('Paste a spec')")
        page.fill("[name=name]", f"story {next(NUMBERS)}")
        page.fill("[name=text]", text)
        page.click("button:has-text('Create spec')")
        page.wait_for_url("**/edit/", wait_until="commit")
        page.goto(page.url.replace("/edit/", "/run/"))
        if mode:
            page.check(f"input[name=mode][value={mode}]")
        page.click("button:has-text('Start the run')")
        page.wait_for_selector("html[data-live] #run-head")  # its script hears keys and clicks
        return page.url.removeprefix(window.url)

    return make
