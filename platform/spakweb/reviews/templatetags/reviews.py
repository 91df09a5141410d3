"""`{% reviews_waiting as waiting %}`: how many open patches wait for the person, for the navigation."""

from __future__ import annotations

from typing import Any

from django import template

from spakweb.reviews import inbox

register = template.Library()


@register.simple_tag(takes_context=True)
def reviews_waiting(context: Any) -> int:
    return inbox.count(context["user"], context["team"])


@register.filter
def need(patch: Any) -> str:
    """What a row of the inbox asks for, in words."""
    return inbox.NEEDS[patch.need]
