"""A Difference in words, for people: one line a change, then capabilities and flags."""

from __future__ import annotations

import json
from typing import Any

from spak.lang.diff.model import Capability, Change, Difference

SIGNS = {"add": "+", "remove": "-", "change": "~", "rename": ">", "move": "^", "reorder": "="}
MAX_SHOWN = 60


def show(found: Difference) -> str:
    """The text that `spak diff` prints."""
    if found.equal:
        how = "formatting only" if found.formatting_only else "the same text"
        return f"equal: {how}\n"
    lines = [f"{SIGNS[item.op]} {_change(item)}" for item in found.changes]
    if found.capabilities:
        lines += ["", "capabilities:", *(f"  {_capability(item)}" for item in found.capabilities)]
    breaking = [item for item in found.flags if item.flag == "breaking"]
    if breaking:
        lines += ["", "breaking:", *(f"  {item.path}: {item.why}" for item in breaking)]
    return "\n".join(lines) + "\n"


def _change(item: Change) -> str:
    match item.op:
        case "add":
            return f"{item.path}: {_value(item.after)}"
        case "remove":
            return f"{item.path}: {_value(item.before)}"
        case "rename":
            return f"{item.path}: was {item.before}"
        case "move":
            return f"{item.path}: from place {item.before + 1} to {item.after + 1}"
        case "reorder":
            return f"{item.path or 'the spec'}: the same in another order"
    return f"{item.path}: {_value(item.before)} -> {_value(item.after)}"


def _capability(item: Capability) -> str:
    mark = {True: "! ", False: "  ", None: "? "}[item.widens]
    where = f" in {item.path}" if item.path else ""
    if item.change == "changed":
        return f"{mark}{item.kind} {item.name}{where}: {_value(item.before)} -> {_value(item.after)}"
    return f"{mark}{item.kind} {_clip(item.name)}{where} {item.change}"


def _value(value: Any) -> str:
    shown = value if isinstance(value, str) and "\n" in value else json.dumps(value, ensure_ascii=False)
    return _clip(" ".join(shown.split()))


def _clip(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."
