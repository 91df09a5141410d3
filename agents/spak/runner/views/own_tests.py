"""The paths by which a run's check passed that fails without them: what makes it "by its own tests".

Takes records in order; gives the paths that the check of the beginning was taken without
(spak.runner.perform), as long as the files are those that were checked. A projection of the ledger: it
decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spak.kernel.metric import signal as metric_signal
from spak.kernel.outcomes import PASSED
from spak.records import Kind, Record

MOST = 50
"""Paths that a record names."""
NAMED = 5
"""Those that a line names."""


def paths(records: Iterable[Record]) -> tuple[str, ...]:
    """Those of a run as its records leave it; empty where no check failed without them."""
    found: dict[str, Any] = {}
    for record in records:
        feed(found, record)
    return known(found)


def feed(found: dict[str, Any], record: Record) -> None:
    """Take the next record into `found`, which is JSON."""
    body = record.body
    if record.kind == Kind.GENESIS:
        rules = body.get("rules")
        found["root"] = rules.get("r3") if isinstance(rules, Mapping) else ""
    if record.kind != Kind.ACT:
        return
    if body.get("r3", found.get("root")) != found.get("root"):
        found.clear()
        found["root"] = body["r3"]
    if isinstance(again := body.get("beginning"), Mapping):
        steps, step = found.setdefault("steps", {}), f"{record.task}/{record.step}"
        steps.pop(step, None)
        if metric_signal.plain(again)[0] not in PASSED and isinstance(again.get("apart"), list):
            steps[step] = [str(path) for path in again["apart"][:MOST]]


def known(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of what was fed, each once."""
    steps = found.get("steps") or {}
    return tuple(sorted({path for listed in steps.values() for path in listed}))[:MOST]


def named(listed: Iterable[str]) -> str:
    """Some paths as a line names them."""
    every = list(listed)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more
