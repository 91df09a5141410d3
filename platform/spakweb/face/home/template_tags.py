"""Tags that every page uses: `{% icon "spec" %}`, `{{ when|ago }}`, `{{ hash|short }}`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from spakweb.face.docs.places import code_url
from spakweb.face.home import icons
from spakweb.ground import access
from spakweb.ground.text import plural

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon as SVG."""
    return mark_safe(icons.icon(name))


@register.simple_tag(takes_context=True)
def may(context: Any, action: str) -> bool:
    """Whether the person may do that in the page's team."""
    return access.can(context["user"], action, context["team"])


@register.filter
def ago(when: datetime | None) -> str:
    """A relative time; the exact one on hover and for screen readers."""
    if when is None:
        return "never"
    exact = timezone.localtime(when)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S %Z"),
        since_words(timezone.now() - when),
    )


def since_words(past: timedelta) -> str:
    """A span of time before now, in words."""
    seconds = past.total_seconds()
    if seconds < 45:
        return "just now"
    for size, limit, word in (
        (60, 60, "minute"),
        (3600, 24, "hour"),
        (86400, 30, "day"),
        (2629800, 12, "month"),
    ):
        count = max(1, round(seconds / size))
        if count < limit:
            return f"{count} {word}{'' if count == 1 else 's'} ago"
    years = max(1, round(seconds / 31557600))
    return f"{years} year{'' if years == 1 else 's'} ago"


@register.filter
def breakable(text: str) -> SafeString:
    """Text that a line may break behind `_`, `-`, `.`, `:` and `/` of: names and codes have no spaces."""
    return mark_safe(re.sub(r"([_.:/-]+)(?=[^_.:/-])", r"\1<wbr>", escape(text)))


@register.filter
def ticked(text: str) -> SafeString:
    """Text whose parts between backticks are code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


@register.filter
def short(hash: str) -> str:
    """The first characters of a hash."""
    return hash[:10]


register.filter(plural)
register.filter(code_url)
