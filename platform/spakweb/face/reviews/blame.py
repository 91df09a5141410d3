"""Who wrote each line of a spec, and who gave each field its value: `lines(texts)` gives for each line of the
last text the one it came with. Pure but for `context`, which reads the versions of a spec and its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spak.lang.diff import fields
from spak.merge import opcodes
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import history
from spakweb.work.reviews.parts import shown_value
from spakweb.work.specs import show

MOST = 200
"""Versions that are looked at, the newest; older lines belong to the oldest of them."""
LINES = 2_000


def lines(texts: Sequence[str]) -> list[int]:
    """For each line of the last text, the place of the text that it came with."""
    old: list[str] = []
    owners: list[int] = []
    for place, text in enumerate(texts):
        new = show.lines_of(text)
        found: list[int] = []
        for kind, a, b, c, d in opcodes(old, new):
            found += owners[a:b] if kind == "equal" else [place] * (d - c)
        old, owners = new, found
    return owners


def context(spec: Spec) -> dict[str, Any]:
    """What the blame page of a spec shows: origins of its lines and fields, and its history."""
    versions = list(spec.versions.select_related("author").order_by("-number")[:MOST])[::-1]
    owners = lines([one.text for one in versions])
    rows, before = [], -1
    for number, (line, owner) in enumerate(zip(show.lines_of(versions[-1].text), owners, strict=True), 1):
        rows.append({"number": number, "line": line, "version": versions[owner], "first": owner != before})
        before = owner
    found = [
        {"path": one.path, "value": shown_value(one.value), "version": versions[one.origin]}
        for one in fields([one.text for one in versions])
    ]
    records = [{"record": one, **history.read(one)} for one in spec.history.order_by("-number")[:MOST]]
    return {
        "rows": rows[:LINES],
        "more": max(0, len(rows) - LINES),
        "fields": found[:LINES],
        "records": records,
        "record_count": spec.history.count(),
        "wrong": history.verify(spec),
    }
