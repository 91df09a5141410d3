"""Specs and helpers that the stories of runs in a browser share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from platform_kit import Watched

Person = Callable[..., Watched]
Begin = Callable[..., str]
TEAM = "/t/demo-team"
HELLO = """\
task Hello {
  step greet: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_contains("hello.txt", "Hello")
}
"""
ASKING = """\
task Talk {
  step hear: llm.query { prompt: "Say <b>a word</b>." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


def opened(window: Watched, sockets: list[Any], many: int = 1) -> Any:
    """The newest of that many sockets that the page opened and `route_web_socket` gave us."""
    while len(sockets) < many:
        window.page.wait_for_timeout(50)
    return sockets[many - 1]


def state(window: Watched) -> Any:
    return window.page.locator("#run-head .pill").first


def ends(window: Watched, word: str) -> None:
    expect(state(window)).to_have_text(word)
