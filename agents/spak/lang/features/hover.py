"""Hover: what the word at an offset means, and which section of the documentation is about it.

Takes a View and an offset; gives Markdown, the section, and the stretch that they are about. Names that the
spec gives come first (tasks, steps, variables), then the word is looked up among what might have stood in its
place, which tells a key from a value and a setting of CONFIG from one of a TASK.
"""

from __future__ import annotations

from dataclasses import dataclass

from spak.lang import settings
from spak.lang.features import describe, words
from spak.lang.features.complete import choices
from spak.lang.features.names import TEXTS, at
from spak.lang.features.place import Frame, spot_of
from spak.lang.features.sections import section
from spak.lang.features.view import Occurrence, View


@dataclass(frozen=True, slots=True)
class Hover:
    """What is shown, in Markdown, the range that it is about, and the section: `language#inputs`."""

    markdown: str
    start: int
    end: int
    section: str = ""


def hover(view: View, offset: int) -> Hover | None:
    """What is known of the word at the offset."""
    if view.in_comment(offset):
        return None
    item = at(view, offset)
    if item is not None and not (item.defines and item.kind in TEXTS):
        text = _named(view, item)
        if text:
            return Hover(text, item.start, item.end, _section(view, item.kind, item.name))
    word = view.word_at(offset)
    if not word.text:
        return None
    text, about = _word(view, word.text, offset)
    return Hover(text, word.start, word.end, about) if text else None


def _section(view: View, kind: str, name: str) -> str:
    tool = view.catalog.tool(name.removeprefix("tool.")) if kind == "tool" else None
    return section(kind, name if tool is None else tool.name)


def _named(view: View, item: Occurrence) -> str:
    catalog = view.catalog
    match item.kind:
        case "task":
            return describe.task(view, item.name)
        case "step" | "check":
            return describe.step(view, item.owner, item.name)
        case "variable" | "builtin":
            return describe.variable(view, item.name)
        case "input" | "axiom" | "heuristic" | "prediction":
            return describe.variable(view, f"{item.kind}.{item.name}")
        case "tool":
            tool = catalog.tool(item.name)
            return describe.tool(tool) if tool is not None else ""
        case "validator":
            validator = catalog.validators.get(item.name)
            return describe.validator(validator) if validator is not None else ""
        case _:
            table = catalog.proposers if item.kind == "proposer" else catalog.backends
            entry = table.get(item.name)
            return describe.named(item.kind, entry) if entry is not None else ""


def _word(view: View, text: str, offset: int) -> tuple[str, str]:
    """The meaning of the choice that the word is, and its section; where it is not one, of the keyword or
    setting."""
    here = spot_of(view, view.word_at(offset))
    for item in choices(view, here):
        if item.label.lower() == text.lower():
            about = item.about() or describe.word(item.label, words.Word(item.detail))
            return about, _section(view, *_owner(view, here.frame) or (item.kind, item.label))
    if here.wanted in ("text", "variable", "name") or view.token_at(offset) is None:
        return "", ""
    keyword = words.KEYWORDS.get(text.upper())
    if keyword is not None:
        return describe.word(text, keyword), section("keyword", text)
    place = settings.place_of(text)
    found = settings.find(place, text) if place and text in settings.KEYS else None
    return (describe.setting(found), section("setting", found.key)) if found is not None else ("", "")


def _owner(view: View, frame: Frame) -> tuple[str, str] | None:
    """The kind and the name of what the fields of a block belong to, where the catalog has it."""
    kind, _, name = frame.owner.partition(".")
    if frame.block == "step" and kind == "tool" and view.catalog.tool(name) is not None:
        return "tool", name
    known = {"validators": view.catalog.validators, "proposers": view.catalog.proposers}.get(frame.table, {})
    return (frame.table.removesuffix("s"), frame.owner) if frame.owner in known else None
