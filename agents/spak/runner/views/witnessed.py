"""What a run only witnessed: how many calls an agent's hooks asked about, and what came of the answers.

Takes records in order; gives counts. A projection of the ledger, which proves what the guard answered and
not that the agent obeyed: `obeyed` is what the agent's own hooks, or the files, agree with; `unknown` is a
call of which nothing was heard any more, `against` one that was done though it was denied, `unasked` one
that was done without a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.records import Kind, Record

WITNESSED = "witnessed"


def feed(found: dict[Any, Any], record: Record) -> None:
    """Take the next record into `found`."""
    body = record.body
    if record.kind != Kind.PERMIT or body.get("name") != WITNESSED or body.get("allow") is not True:
        return
    args = body.get("args")
    if not isinstance(args, Mapping):
        return
    session = str(args.get("agent")), str(args.get("session", ""))
    calls = found.setdefault(session, {})
    event, call = args.get("event"), str(args.get("id"))
    for verdict_and_end in calls.values():
        if verdict_and_end[0] == "deny" and not verdict_and_end[1]:
            verdict_and_end[1] = "obeyed"
    if event == "asked":
        if call in calls:
            call = f"{call} {len(calls)}"
        calls[call] = [str(args.get("verdict")), ""]
    elif event == "turn":
        for verdict_and_end in calls.values():
            if verdict_and_end[0] == "ask" and not verdict_and_end[1]:
                verdict_and_end[1] = "obeyed"
    elif event == "unasked":
        calls[f"unasked {len(calls)}"] = ["", "unasked"]
    elif call in calls:
        calls[call][1] = "against" if event == "against" else "obeyed"


def known(found: Mapping[Any, Mapping[str, list[str]]]) -> dict[str, int] | None:
    """The counts of what was fed; None where nothing was witnessed."""
    calls = [call for session in found.values() for call in session.values()]
    if not calls:
        return None
    ends = [end for _, end in calls]
    asked = [verdict for verdict, _ in calls if verdict]
    return {
        "asked": len(asked),
        "allowed": asked.count("allow"),
        "put_to_a_person": asked.count("ask"),
        "denied": asked.count("deny"),
        "obeyed": ends.count("obeyed"),
        "unknown": ends.count(""),
        "against": ends.count("against"),
        "unasked": ends.count("unasked"),
    }


def sentence(counts: Mapping[str, int]) -> str:
    """The counts in a line."""
    said = ", ".join(
        f"{counts[name]} {name.replace('_', ' ')}"
        for name in ("allowed", "put_to_a_person", "denied", "obeyed", "unknown", "against", "unasked")
        if counts[name] or name in ("obeyed", "unknown")
    )
    return f"{counts['asked']} asked: {said}"
