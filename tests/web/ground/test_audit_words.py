"""Every action that the platform records has a phrase for the audit log's page."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from spakweb.ground.audit.actions import record
from spakweb.ground.audit.words import WORDS, words

PLATFORM = Path(__file__).resolve().parents[3] / "platform" / "spakweb"
COMPOSED = {
    "run.": {"run.answer", "run.call", "run.approve", "run.deny", "run.pause", "run.cancel", "run.resume"},
    "view.": {"view.kept", "view.changed", "view.dropped"},
}
"""What the names are that are put together where they are recorded."""


def recorded() -> Iterator[str]:
    """The first text of each call of `record` and of the helpers that call it."""
    for path in sorted(PLATFORM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("record", "_note"):
                continue
            for given in node.args[:2]:
                for text in ast.walk(given):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str) and "." in text.value:
                        yield text.value


def test_every_action_has_a_phrase() -> None:
    found = set(recorded())
    assert {"run.started", "spec.saved", "token.made", "run."} <= found
    known = set().union(*(COMPOSED.get(name, {name}) for name in found))
    assert sorted(known - WORDS.keys()) == []
    assert words("of.another_version") == "of.another_version"


@pytest.mark.django_db
def test_the_page_says_both(cast: Any) -> None:
    record(cast["alice"], "run.started", "r1", cast.team)
    text = cast.client("alice").get(reverse("spak-audit", args=[cast.team.slug])).content.decode()
    assert "Started a run" in text and "<code" in text and "run.started" in text
