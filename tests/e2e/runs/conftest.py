"""One platform with its worker and one browser for the stories of runs; each window is checked at its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from platform_kit import CHROMIUM, FLAGS, Up, Watched, missing, running

TEAM = "/t/demo-team"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def run_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(tmp_path_factory.mktemp("up") / "data", "--demo") as found:
        yield found


@pytest.fixture(scope="module")
def run_browser() -> Iterator[Any]:
    if not CHROMIUM:
        missing("Chromium", "chromium fonts-dejavu")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture
def person(run_platform: Up, run_browser: Any) -> Iterator[Callable[..., Watched]]:
    """`person("bob", color_scheme="dark")`: a signed-in window."""
    made: list[Watched] = []

    def make(name: str = "alice", **options: Any) -> Watched:
        made.append(Watched(run_browser, run_platform.url, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def begin() -> Callable[..., str]:
    """`begin(window, text, mode)`: a spec of that text is run from its page; gives the path of the run."""

    def make(window: Watched, text: str, mode: str = "") -> str:
        page = window.page
        window.go(f"{TEAM}/specs/new/")
        page.click("summary:has-text('Paste a text')")
        page.fill("[name=name]", f"story {next(NUMBERS)}")
        page.fill("[name=text]", text)
        page.click("button:has-text('Make it')")
        page.click("main a.primary:has-text('Run')")
        if mode:
            page.check(f"input[name=mode][value={mode}]")
        page.click("button:has-text('Start the run')")
        page.wait_for_selector("#run-head")
        return page.url.removeprefix(window.url)

    return make
