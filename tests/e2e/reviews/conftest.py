"""A platform with its worker, and people in browsers, for the stories of reviews."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from editor_kit import Person
from platform_kit import Up, running, windows


@pytest.fixture(scope="module")
def platform(data: Path) -> Iterator[Up]:
    with running(data, "--demo") as found:
        yield found


@pytest.fixture
def person(platform: Up, browser: Any) -> Iterator[Callable[..., Person]]:
    with windows(Person, browser, platform) as make:
        yield make
