"""One platform and one browser for the stories of a module; each window is looked through at its end.

Server and browser end with their module: Playwright keeps an event loop in the thread, beside which Django
will not touch its database, and a second Playwright will not start.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import missing
from platform_kit import CHROMIUM, Server, Watched, Web, chromium, kept, seeded, windows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a platform with its demo team."""
    return Path(shutil.copytree(seeded(tmp_path_factory), tmp_path_factory.mktemp("platform") / "data"))


@pytest.fixture(scope="module")
def platform(data: Path) -> Iterator[Server]:
    with kept(Web(data)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM:
        missing("Chromium", "chromium fonts-dejavu")
    with chromium() as made:
        yield made


@pytest.fixture
def window(platform: Server, browser: Any) -> Iterator[Callable[..., Watched]]:
    """`window("alice", color_scheme="dark")`; without a name, nobody's."""
    with windows(Watched, browser, platform) as make:
        yield make
