"""What lists and streams show of a record and of a run: plain JSON, small whatever the record holds.

`row` gives one line for a record; `header` gives a run as its page's header has it, with an honest state: a
run whose worker is gone is queued, whatever its row still says. Both are pure but for the clock of `header`,
and its look at the disk for a run that waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from spak.records import Kind, Record
from spakweb.runs.models import State
from spakweb.runs.storage import FULL, no_room

TEXT = 200

HEADER = (
    *("pk", "key", "team_id", "name", "state", "reason", "task", "count", "projected", "holder"),
    *("lease_until", "wanted", "enqueued_at", "queue", "labels", "made_at", "started_at", "ended_at"),
    *("summary__steps", "summary__tokens", "summary__cost", "summary__waiting__id"),
)
"""The columns that `header` reads, for `.values(*HEADER)`."""


def row(record: Record) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "kind": str(record.kind),
        "authority": str(record.authority),
        "task": record.task,
        "step": record.step,
        "attempt": record.attempt,
        "at": record.at,
        "text": " ".join(_text(record.kind, record.body).split())[:TEXT],
    }


def standing(state: str, holder: str, lease_until: datetime | None, now: datetime) -> str:
    """The state as it may be shown: what nobody holds does not run."""
    held = bool(holder) and lease_until is not None and lease_until > now
    return State.QUEUED if state == State.RUNNING and not held else state


def header(found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """A run as its header shows it, from `.values(*HEADER)`."""
    state = standing(found["state"], found["holder"], found["lease_until"], now)
    return {
        "key": found["key"],
        "state": str(state),
        "why": _why(str(state), found),
        "reason": found["reason"],
        "task": found["task"],
        "count": found["count"],
        "steps": found["summary__steps"] or 0,
        "tokens": found["summary__tokens"] or {},
        "cost": found["summary__cost"] or 0,
        "started_at": _moment(found["started_at"]),
        "ended_at": _moment(found["ended_at"]),
        "wanted": found["wanted"],
        "asks": (found["summary__waiting__id"] or "") if state == State.WAITING else "",
    }


def listed(found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The same for a list of runs."""
    more = {"name": found["name"], "made_at": _moment(found["made_at"]), "labels": found["labels"]}
    return {**header(found, now), **more}


def _why(state: str, found: Mapping[str, Any]) -> str:
    if state == State.QUEUED:
        if no_room():
            return FULL
        if found["state"] == State.RUNNING:
            return "its worker is gone; waiting for another"
        if found["reason"]:
            return f"tried again within a minute: {found['reason']}"
        return "waiting for a worker" + (f" of {found['queue']}" if found["queue"] != "default" else "")
    if state == State.WAITING:
        return "waiting for an answer"
    return "being stopped" if state == State.RUNNING and found["wanted"] else ""


def _text(kind: str, body: Mapping[str, Any]) -> str:
    match kind:
        case Kind.GENESIS:
            return "the run begins"
        case Kind.PERMIT:
            allowed = {True: "may", False: "may not", "ask": "may, if somebody approves,"}
            said = allowed.get(body.get("allow", True), "may")
            return f"{said} {body.get('act', '')} {body.get('name', '')}"
        case Kind.ACT:
            code = f" {body['exit']}" if "exit" in body else ""
            status = f" {body['status']}" if "status" in body else ""
            return f"{body.get('outcome', '')}{code}{status} {_first(body.get('out', ''))}"
        case Kind.PLAN:
            return f"{len(body.get('candidates', ()))} candidates by {body.get('by', '')}"
        case Kind.ROUTE:
            return f"{body.get('signal', '')} \u2192 {body.get('to', '')}"
        case Kind.END:
            return f"{body.get('state', '')} {', '.join(str(code) for code in body.get('codes') or ())}"
        case _:
            words = (value for value in body.values() if isinstance(value, str | int) and value != "")
            return " ".join(str(value)[:80] for value in list(words)[:4])


def _first(out: object) -> str:
    return out[: 2 * TEXT] if isinstance(out, str) else "(in a blob)" if out else ""


def _moment(found: datetime | None) -> str:
    return found.isoformat() if found else ""
