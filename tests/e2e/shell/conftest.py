"""One platform and one browser for the stories of the shell; each window is checked when it closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from platform_kit import CHROMIUM, FLAGS, Up, Watched, missing, running


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(tmp_path_factory.mktemp("up") / "data", "--demo") as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if not CHROMIUM:
        missing("Chromium", "chromium fonts-dejavu")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture
def window(platform: Up, chromium: Any) -> Iterator[Callable[..., Watched]]:
    """`window("alice", color_scheme="dark")`."""
    made: list[Watched] = []

    def make(name: str = "", **options: Any) -> Watched:
        made.append(Watched(chromium, platform.url, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
