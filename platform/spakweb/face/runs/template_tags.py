"""Tags of the pages that show runs: `{% state "failed" %}`, `{{ 1234|took }}`, `{{ value|figure }}`.

The one place where a state of a run becomes a glyph and a word.
"""

from __future__ import annotations

from math import floor
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from spakweb.ground import unsafe_text
from spakweb.store.runs import endings, words
from spakweb.store.runs.models import Run

register = template.Library()


@register.simple_tag
def state(name: str, more: str = "") -> SafeString:
    """The pill: colour, glyph and word, and what there is to say beside it."""
    label = f"{words.state(name)}{f', {more}' if more else ''}"
    return format_html(
        '<span class="pill {0}" data-state="{0}">{1}<span>{2}</span></span>',
        name,
        mark_safe(words.glyph(name)),
        label,
    )


@register.filter
def glyph(name: str) -> SafeString:
    """The glyph of a state; its word stands beside it."""
    return mark_safe(words.glyph(name))


@register.simple_tag
def run_state(run: Run) -> SafeString:
    """The pill of a run; `data-state` has its state as programs read it."""
    return format_html(
        '<span class="pill {}" data-state="{}">{}<span>{}</span></span>',
        run.shown_state,
        run.state,
        mark_safe(words.glyph(run.shown_state)),
        words.state(run.shown_state),
    )


@register.filter
def mode(name: str) -> str:
    """A mode in words."""
    return words.MODES.get(name, name)


@register.filter
def in_words(reason: str) -> str:
    """Why a run ended or waits, with the phrase of its code before it."""
    return endings.in_words(str(reason or ""))


@register.filter
def signs(text: Any) -> str:
    """A name of somebody's with control characters and marks of direction made visible."""
    return unsafe_text.reveal(str(text))


@register.filter
def took(milliseconds: Any) -> str:
    """Milliseconds in words."""
    return words.took(milliseconds)


@register.filter
def figure(value: Any) -> str:
    """A number as people read it; what is unknown is not available, never 0."""
    return words.figure(value)


@register.filter
def metric(value: Any, name: str) -> str:
    """A figure with the unit that the name of its metric says."""
    return words.metric(str(name or ""), value)[1]


@register.filter
def percent(value: Any) -> str:
    """A share; near the whole with a decimal and never rounded up, since 99.4 % are not all, nor 98.9 99."""
    if value is None:
        return "not available"
    return f"{floor(1000 * value) / 10:.1f} %" if 0.95 <= value < 1 else f"{100 * value:.0f} %"


@register.filter
def cost(nanos: Any) -> str:
    """Nano-dollars in words."""
    return words.money(nanos)


@register.filter
def lookup(found: Any, key: Any) -> Any:
    """The value of a key, for templates."""
    return found.get(key) if isinstance(found, dict) else None
