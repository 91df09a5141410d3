"""The modes of a run in words, and which of them a spec's LEVEL permits.

Takes a parsed spec; gives the choices of a form, each with why it cannot be had. What a worker would refuse
(`usage.mode`) is refused before anything is queued.
"""

from __future__ import annotations

from typing import NamedTuple

from spak.begin import MODE_LEVELS, level_of
from spak.lang import Parsed
from spakweb.ground.errors import Refused

MODES = ("", *MODE_LEVELS)
_TEXTS = {
    "": ("As the spec says", "Its CONFIG MODE. Without one: automatic with a backend, else step by step."),
    "stepwise": ("Step by step", "Every question waits for a person."),
    "semi_auto": (
        "Semi-automatic",
        "The backend answers, and the run pauses after every AUTO_STEPS questions.",
    ),
    "full_auto": ("Automatic", "The backend answers every question."),
}


class Choice(NamedTuple):
    """A mode that the start form offers, and why it cannot be chosen."""

    mode: str
    word: str
    text: str
    barred: str
    """Why it cannot be had; empty when it can."""


def choices(parsed: Parsed) -> list[Choice]:
    """All modes, in the order of a form."""
    return [Choice(mode, *_TEXTS[mode], barred(mode, parsed)) for mode in MODES]


def barred(mode: str, parsed: Parsed) -> str:
    """Why the spec does not permit the mode; empty when it does."""
    least = {str(name): level for name, level in MODE_LEVELS.items()}.get(mode, 0)
    level = level_of(parsed)
    return f"Requires LEVEL {least}; the AGENT has LEVEL {level}." if least > level else ""


def require_permitted(mode: str, parsed: Parsed) -> None:
    """Raises: Refused `web.run_mode`."""
    if mode not in MODES:
        raise Refused("web.run_mode", f"There is no mode {mode[:40]!r}.", f"One of: {', '.join(MODES[1:])}.")
    if why := barred(mode, parsed):
        word = _TEXTS[mode][0].lower()
        raise Refused(
            "web.run_mode",
            f"This spec cannot run in mode {word}. {why}",
            "Choose another mode, or raise LEVEL.",
        )
