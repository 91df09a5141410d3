"""People in browsers, for the stories of reviews."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from editor_kit import Person
from platform_kit import Server, windows


@pytest.fixture
def person(platform: Server, browser: Any) -> Iterator[Callable[..., Person]]:
    with windows(Person, browser, platform) as make:
        yield make
