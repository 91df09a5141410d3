"""The glyphs of a drawn graph as paths (no font is needed): what a node is, and the state of its task."""

from __future__ import annotations

from collections.abc import Mapping

from spak.lang.graph.model import State

KINDS: Mapping[str, str] = {
    "steps": "M1 2h2M6 2h6M1 6h2M6 6h6M1 10h2M6 10h6",
    "plan": "M1 6h4M5 6l4-4h3M5 6h7M5 6l4 4h3",
    "missing": "M3 4a3 3 0 1 1 4 3q-1 .5-1 1.5M6 11v.1",
}
"""Glyphs of 12 by 12: a list, a choice of ways, a question mark."""
VALIDATOR = "M1 9.5a5 5 0 0 1 10 0M6 9.5l2.5-3.5"
"""A gauge."""

STATES: Mapping[State, str] = {
    State.QUEUED: "M6 1.5a4.5 4.5 0 1 0 .01 0z",
    State.RUNNING: "M6 1.5a4.5 4.5 0 1 0 .01 0zM6 1.5v9M8 2v8M10 4v4",
    State.WAITING: "M3 6V3.5M5 6V2M7 6V2M9 6V3.5M3 6v2.5q0 2.5 3 2.5t3-2.5V6M3 8L1.5 6.5",
    State.PAUSED: "M4 2v8M8 2v8",
    State.DONE: "M2 6.5l3 3 5.5-7",
    State.ALLOWED: "M1 6.5l2.5 2.5 4-5M10 2.5v4M10 9v.1",
    State.FAILED: "M2.5 2.5l7 7M9.5 2.5l-7 7",
    State.REFUSED: "M6 1.5a4.5 4.5 0 1 0 .01 0zM3 3l6 6",
    State.CANCELLED: "M2 6h8",
}
