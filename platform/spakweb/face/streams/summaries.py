"""What lists and streams show of a record and of a run: plain JSON, small whatever the record holds.

`row` gives one line for a record; `header` gives a run as its page's header has it, with an honest state: a
run whose worker is gone is queued, whatever its row still says. Both are pure but for the clock of `header`,
and its look at the disk for a run that waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from spak.records import Record
from spakweb.ground.unsafe_text import reveal
from spakweb.store.jobs.leases import is_held, silent_since
from spakweb.store.ledger.projection import tokens_used
from spakweb.store.ledger.storage import FULL, no_room
from spakweb.store.runs.models import GOES_ON, TRIES, State
from spakweb.store.runs.words import sentence

HEADER = (
    *("pk", "key", "team_id", "name", "state", "reason", "task", "count", "projected", "holder"),
    *(
        "lease_until",
        "wanted",
        "enqueued_at",
        "queue",
        "labels",
        "trial",
        "made_at",
        "started_at",
        "ended_at",
    ),
    *(
        "tries",
        "summary__steps",
        "summary__tokens",
        "summary__cost",
        "summary__waiting__id",
        "summary__checks",
        "summary__by_own_tests",
        "agent",
        "heard_at",
    ),
)
"""The columns that `header` reads, for `.values(*HEADER)`."""


def row(record: Record) -> dict[str, Any]:
    """A record as a line of the timeline."""
    return {
        "seq": record.seq,
        "kind": record.kind,
        "authority": record.authority,
        "task": record.task,
        "step": record.step,
        "attempt": record.attempt,
        "at": record.at,
        "text": reveal(sentence(record)),
    }


def standing(
    state: str, holder: str, lease_until: datetime | None, now: datetime, heard_at: datetime | None = None
) -> str:
    """The state as it may be shown: what nobody holds does not run, nor does a guarded session (`heard_at`)
    that reports no more."""
    if heard_at is not None:
        return State.PAUSED if state in GOES_ON and heard_at < silent_since(now) else state
    held = is_held(holder, lease_until, now)
    return State.QUEUED if state == State.RUNNING and not held else state


def header(found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """A run as its header shows it, from `.values(*HEADER)`."""
    state = standing(found["state"], found["holder"], found["lease_until"], now, found["heard_at"])
    return {
        "key": found["key"],
        "state": str(state),
        "why": _why(str(state), found),
        "reason": found["reason"],
        "task": found["task"],
        "count": found["count"],
        "steps": found["summary__steps"] or 0,
        "tokens": {"used": tokens_used({"tokens": found["summary__tokens"]})},
        "cost": found["summary__cost"] or 0,
        "started_at": _moment(found["started_at"]),
        "ended_at": _moment(found["ended_at"]),
        "wanted": found["wanted"],
        "checked": _checked(found),
        "by_own_tests": found["summary__by_own_tests"] or [],
        "asks": (found["summary__waiting__id"] or "") if state == State.WAITING else "",
    }


def _checked(found: Mapping[str, Any]) -> bool | None:
    """Whether anything checked the result of a run that succeeded; None of others, and if unknown."""
    checks = None if found["agent"] else found["summary__checks"]
    return checks > 0 if found["state"] == State.SUCCEEDED and isinstance(checks, int) else None


def list_row(found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The same for a list of runs."""
    more = {
        "name": found["name"],
        "made_at": _moment(found["made_at"]),
        "labels": found["labels"],
        "trial": found["trial"],
        "agent": found["agent"],
    }
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
    if state == State.PAUSED and found["agent"]:
        return "its guard reports no more"
    if state == State.PAUSED and found["tries"] >= TRIES:
        return f"stopped after {found['tries']} errors: {found['reason']}"
    return "being stopped" if state == State.RUNNING and found["wanted"] else ""


def _moment(found: datetime | None) -> str:
    return found.isoformat() if found else ""
