"""`{% reviews_waiting as waiting %}`: how many open patches wait for the person, for the navigation."""

from __future__ import annotations

from typing import Any

from django import template

from spak import canon
from spak.evolve.campaigns.judge import NO_GOLDEN
from spakweb.face.reviews import front, inbox
from spakweb.work.reviews import campaigns

register = template.Library()


@register.simple_tag(takes_context=True)
def reviews_waiting(context: Any) -> int:
    """How many patches wait for the person, for the navigation."""
    return inbox.count(context["user"], context["team"])


@register.filter
def need(patch: Any) -> str:
    """What a row of the inbox asks for, in words."""
    return inbox.NEEDS[patch.need]


@register.filter
def stage_looks(stage: dict[str, Any]) -> tuple[str, str]:
    """Pill and word of a campaign's stage: green where it judged something."""
    word = stage["verdict"]
    if word == "pass" and stage["why"] == NO_GOLDEN:
        return "cancelled", "Nothing to judge"
    return campaigns.MARKS.get(word, ("waiting", word))


@register.filter
def stage_name(stage: str) -> str:
    """What a stage of a campaign's gate looks at."""
    return campaigns.STAGES.get(stage, stage)


@register.filter
def both_ways(actions: dict[str, Any]) -> list[tuple[str, int, str, list[Any]]]:
    """Newly permitted and newly denied actions, each with its title, count and pill."""
    return [
        ("newly permitted", actions["permitted_count"], "failed", actions["permitted"]),
        ("newly denied", actions["denied_count"], "succeeded", actions["denied"]),
    ]


@register.filter
def as_json(value: Any) -> str:
    """A value as JSON of at most 300 characters."""
    text = canon.dumps(value).decode()
    return text if len(text) <= 300 else f"{text[:299]}…"


@register.filter
def verdict_word(verdict: str) -> str:
    """The verdict of a campaign's gate in words."""
    return campaigns.VERDICTS.get(verdict, verdict)


@register.filter
def curve(evidence: dict[str, Any]) -> Any:
    """The evidence of a campaign's candidate as a drawing."""
    return campaigns.curve(evidence)


@register.filter
def matrix(evidence: dict[str, Any]) -> dict[str, Any]:
    """The pairs of a campaign's candidate by case and round."""
    return campaigns.matrix(evidence)


@register.filter
def front_drawing(points: list[dict[str, Any]], mine: int) -> Any:
    """The front of a campaign as a drawing; `mine` is the candidate that the page is about, 0: none."""
    return front.drawing(points, mine or 0)


@register.filter
def front_rows(points: list[dict[str, Any]], mine: int) -> list[dict[str, Any]]:
    """The front of a campaign as rows of a table."""
    return front.rows(points, mine or 0)
