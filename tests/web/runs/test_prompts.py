"""A prompt on pages: its items apart, what the kernel adds folded and in words, and nothing of it lost."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.urls import reverse

from spak import data
from spakweb.face.runs.prompts import pieces
from spakweb.store.runs.models import Run
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

SHIPPED = (data.path("specs/examples") / "build_feature.spak").read_text()
SPEC = SHIPPED.replace("pytest tests/ -q", "grep -q re.findall slug.py").replace(
    'VALIDATOR PyTest { paths: ["tests/"], conftest: false, min_tests: 4 }', ""
)
PRE = re.compile(r'<pre class="text[^"]*"[^>]*>(.*?)</pre>', re.S)


def shown(part: str) -> str:
    """What is read without unfolding."""
    return re.sub(r"<details.*?</details>", "", part, flags=re.S)


@pytest.fixture
def run(ground: None, cast: Any) -> Run:
    spec = create_spec(cast["alice"], cast.team, "build_feature", SPEC)
    run = actions.start(cast["alice"], spec, mode="stepwise")
    execute.advance(run.key)
    run.refresh_from_db()
    return run


@pytest.mark.django_db(transaction=True)
def test_the_question_begins_with_words_of_the_spec(run: Run, cast: Any) -> None:
    text = cast.client("alice").get(reverse("spak-run", args=[run.team.slug, run.key])).content.decode()
    ask = text[text.index('id="prompt-title"') : text.index("<form", text.index('id="prompt-title"'))]
    assert "{&quot;code&quot;" in ask and "{&quot;code&quot;" not in shown(ask)
    assert "Fix failing tests" in shown(ask)
    assert "The last error: <code>tool.exit</code>" in ask and "Expected exit 0, received exit 1" in ask
    assert 'href="/docs/errors/#tool.exit"' in ask
    sent = run.summary["waiting"]["prompt"]
    assert "\n\n".join(html.unescape(one) for one in PRE.findall(ask)) == sent


@pytest.mark.django_db(transaction=True)
def test_the_page_of_a_record_shows_it_in_the_same_way(run: Run, cast: Any) -> None:
    seq = run.records.filter(kind="permit").latest("seq").seq
    address = reverse("spak-run-prompt", args=[run.team.slug, run.key, seq])
    part = cast.client("alice").get(address).content.decode()
    assert "{&quot;code&quot;" not in shown(part) and "Fix failing tests" in shown(part)
    assert "\n\n".join(map(html.unescape, PRE.findall(part))) == run.summary["waiting"]["prompt"]


OUTLINES: tuple[Any, ...] = (None, [], [{"name": "error", "chars": 2}], [{"name": "goal", "chars": 99}])


@pytest.mark.parametrize("outline", OUTLINES, ids=["none", "empty", "short", "long"])
def test_a_prompt_whose_items_are_not_known_is_one_text(outline: Any) -> None:
    [piece] = pieces("a\n\nb <i>", outline)
    assert (piece.text, piece.folded) == ("a\n\nb <i>", False)


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "{}", '{"code": 7, "expected": {"a": "<b>"}}'])
def test_an_odd_error_is_shown_as_it_was_sent(text: str) -> None:
    [piece] = pieces(text, [{"name": "error", "chars": len(text)}])
    assert piece.text == text and piece.folded
