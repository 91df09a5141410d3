"""A prompt for a page: its items in order, each with a title, those that the kernel adds folded.

Takes the text as it was sent and the outline of its items (`run_json.outline`); gives pieces of plain text
that a template escapes. Their texts, joined by blank lines, are what was sent. Changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spakweb.store.runs.words import one_line

TITLES = {
    "axioms": "Axioms of the spec",
    "predictions": "Predictions of the spec",
    "goal": "Goal of the task",
    "tools": "Tools that it may call",
    "format": "Form of the answer",
    "state": "What the run has measured",
    "error": "The last error",
    "prompt": "Prompt of the step",
}
FOLDED = ("tools", "format", "state", "error")
"""Items that the kernel adds and writes for models; what the spec says and what was remembered is open."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One item. `code` and `words` are those of an error; `own` says that the spec's step wrote it."""

    title: str
    text: str
    folded: bool = False
    code: str = ""
    words: str = ""
    own: bool = False


def pieces(text: str, outline: Iterable[Mapping[str, Any]] | None) -> list[Piece]:
    """The prompt's items. One piece with the whole text where the outline is missing or does not fit it."""
    found, at = [], 0
    for item in outline or ():
        end = at + int(item["chars"])
        found.append(_piece(str(item["name"]), text[at:end]))
        at = end + 2
    if not found or at - 2 != len(text):
        return [Piece(TITLES["prompt"], text, own=True)]
    return found


def _piece(name: str, text: str) -> Piece:
    code, words = _error(text) if name == "error" else ("", "")
    return Piece(_title(name), text, name in FOLDED, code, words, name == "prompt")


def _title(name: str) -> str:
    kind, _, number = name.partition(".")
    match kind:
        case "heuristic":
            return f"Heuristic {number}"
        case "ref":
            return f"Remembered: ref://{number}"
        case "memory":
            return "Remembered before that"
    return TITLES.get(name, name)


def _error(text: str) -> tuple[str, str]:
    """An R4 entry in words, after its code."""
    try:
        found = json.loads(text)
    except ValueError:
        return "", ""
    if not isinstance(found, dict):
        return "", ""
    expected, received, hint = (
        one_line(str(found.get(name) or ""), 200) for name in ("expected", "received", "hint")
    )
    said = ", ".join(
        f"{label} {value}" for label, value in (("expected", expected), ("received", received)) if value
    )
    words = ". ".join(f"{part[0].upper()}{part[1:]}" for part in (said, hint) if part)
    return str(found.get("code", "")), words
