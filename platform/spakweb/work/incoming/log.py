"""What pages and programs see of a receiver: its address, and the messages that came."""

from __future__ import annotations

from typing import Protocol

from django.urls import reverse

from spakweb.store.incoming.models import Received, Receiver

SHOWN = 50
"""Messages that a log shows, the newest first."""
PILLS = {
    "done": ("succeeded", "tick"),
    "ignored": ("queued", "info"),
    "held": ("waiting", "pause"),
    "repeated": ("queued", "history"),
    "refused": ("failed", "cross"),
}
"""Colour and glyph of a state."""


class Builds(Protocol):
    """A request, of Django or of the framework, as far as addresses go."""

    def build_absolute_uri(self, location: str) -> str:
        """The whole address."""


def address(request: Builds, receiver: Receiver) -> str:
    """Where messages are sent."""
    return request.build_absolute_uri(reverse("spak-hook-receive", args=[receiver.key]))


def deliveries(receiver: Receiver) -> list[tuple[Received, str, str]]:
    """The newest messages, with the colour and the glyph of what became of each."""
    return [(row, *PILLS[row.state]) for row in receiver.deliveries.select_related("run")[:SHOWN]]
