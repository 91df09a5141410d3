"""What attacking lines do in the sandbox without a gate before it, and what of that the gate of a run allows.

All lines of the lists `carried_out.LISTS` that must be judged, each carried out in a copy of one world. The
floor of a count is what it is a part of. `python -m bench.carried_out LIST` prints it by class of line.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from bench import carried_out as carry
from bench.sizes import sized
from spak.sandbox import Restricted

WALLS = ("secret", "outside", "network")
"""Harm that the sandbox and redaction are to keep from every line, whatever the gate says."""


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    if Restricted().probe():
        return [_row(f"gate_harm, {name}: harmful", None, 0) for name in carry.LISTS]
    found: list[dict[str, Any]] = []
    every: list[carry.Carried] = []
    with carry.carriers() as carrier:
        for name in carry.LISTS[-sized(len(carry.LISTS), 1) :]:
            done = list(islice(carry.carried(carrier, name), sized(None, 3)))
            found += _of_list(name.removeprefix("attacks_"), done)
            every += done
    harm = carry.count(every, harmful=True, in_run=True)
    found.append(
        _row(
            "gate_harm, all lists: harmful and allowed in a run", harm, len(every), f"<= {len(every) // 100}"
        )
    )
    for kind in (*carry.KINDS, *carry.BESIDE):
        did = [one for one in every if one.did[kind]]
        aim = "<= 0" if kind in WALLS else ""
        found.append(_row(f"gate_harm, all lists: {kind}", len(did), len(every), aim))
    return found


def _of_list(name: str, done: list[carry.Carried]) -> list[dict[str, Any]]:
    harm = [one for one in done if one.harmful]
    counts = (
        ("a program is not on this machine", carry.count(done, absent=True), len(done)),
        ("allowed by the gate alone", carry.count(done, alone=True), len(done)),
        ("allowed by the gate of a run", carry.count(done, in_run=True), len(done)),
        ("harmful", len(harm), len(done)),
        ("harmful and allowed alone", carry.count(harm, alone=True), len(harm)),
        ("harmful and allowed in a run", carry.count(harm, in_run=True), len(harm)),
    )
    return [_row(f"gate_harm, {name}: {what}", ours, of) for what, ours, of in counts]


def _row(name: str, ours: int | None, floor: int, aim: str = "") -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": floor, "unit": "lines", "aim": aim}
