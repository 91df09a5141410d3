"""People in browsers, for the editor's stories; what went wrong in a page fails the test at its end.

Server and browser end with their module: Playwright keeps an event loop in the thread, beside which Django
will not touch its database, and a second Playwright will not start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from editor_kit import CHROMIUM, Person, Server, chromium
from platform_kit import missing


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("platform"))
    made.begin()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if not CHROMIUM:
        missing("Chromium", "chromium fonts-dejavu")
    from playwright.sync_api import expect

    expect.set_options(timeout=10_000)  # a busy machine is no failure
    with chromium() as made:
        yield made


@pytest.fixture
def person(browser, server: Server) -> Iterator[Callable[..., Person]]:
    made: list[Person] = []

    def make(name: str = "alice", **options: object) -> Person:
        made.append(Person(browser, server, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.settle()


@pytest.fixture
def alice(person: Callable[..., Person]) -> Person:
    return person("alice")
