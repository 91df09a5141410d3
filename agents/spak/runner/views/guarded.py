"""What a guarded agent did: its actions in order, each with its class and what became of it.

Takes the records of a session; an action is what those of one attempt say. It reads no blob, so that it has
nothing of what was said or changed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spak.files.walk import printable
from spak.policy.approval import LATER
from spak.records import Kind, Record
from spak.runner.views.report import plural

MODEL, CHANGES, SEEN = "model_request", "contained", "witnessed"
CLASSES = {
    MODEL: "proposed",
    **dict.fromkeys((CHANGES, "tunnel", "tunnel_closed"), "contained"),
    SEEN: "witnessed",
}
DONE = "done"
"""The class of every other tool."""
MOST, WIDE = 20, 90


@dataclass(slots=True)
class Action:
    """One action of the agent."""

    seq: int
    """Of its permit."""
    tool: str
    args: Mapping[str, Any]
    at: int = 0
    allow: Any = True
    act: Record | None = None
    rolled_back: bool = False
    why: str = ""
    code: str = ""
    """Of the newest decision."""
    signer: str = ""
    """Who approved or denied it."""

    @property
    def effect(self) -> str:
        """Its class: `proposed`, `contained`, `witnessed` or `done`."""
        return CLASSES.get(self.tool, DONE)

    @property
    def verdict(self) -> tuple[str, str]:
        """A state, as of a run, and the word for what became of it."""
        if self.act is None:
            if self.code == "policy.approval_later" or self.allow == "ask":
                return "waiting", "put off until somebody approves"
            return ("refused", "denied") if self.allow is False else ("running", "under way")
        outcome = self.act.body.get("outcome")
        if self.rolled_back:
            return "refused", "taken back"
        if outcome != "exited" or self.act.body.get("exit"):
            return "failed", "failed"
        return "succeeded", "kept" if self.tool == CHANGES else "done"

    @property
    def paths(self) -> str:
        """The first paths of its changes, and how many more."""
        paths = [str(path) for path in self.args.get("paths") or ()]
        more = int(self.args.get("changes") or len(paths)) - len(paths[:3])
        return ", ".join(paths[:3]) + (f" and {more} more" if more > 0 else "")


def actions(records: Iterable[Record]) -> Iterator[Action]:
    """The actions of some records in a row, in order."""
    now: Action | None = None
    for record in records:
        body = record.body
        match record.kind:
            case Kind.PERMIT if body.get("act") == "tool":
                args = body.get("args")
                tool, args = str(body.get("name", "")), args if isinstance(args, Mapping) else {}
                if now is None or now.allow != "ask" or (tool, args) != (now.tool, now.args):
                    if now is not None:
                        yield now
                    now = Action(record.seq, tool, args, record.at)
                now.allow, now.code = body.get("allow"), str(body.get("code", ""))
                now.why = now.code
            case Kind.PERMIT:
                continue
            case Kind.APPROVAL if now is not None:
                key = str(record.body.get("signer", ""))
                now.signer = "" if body.get("decision") == LATER else str(record.side.get("by", "")) or key
            case Kind.ACT if now is not None:
                now.act = record
                now.why = str(body.get("why") or body.get("code") or "")
            case Kind.ROUTE if now is not None:
                now.rolled_back = body.get("txn") == "rollback"
                now.why = now.why or str(body.get("code", ""))
                yield now
                now = None
    if now is not None:
        yield now


def lines(records: Iterable[Record]) -> list[str]:
    """The newest of them for a terminal, a line each, under how many there were. Requests to the model that
    were answered are only counted."""
    found = list(actions(records))
    shown = [one for one in found if one.tool != MODEL or one.verdict[1] != "done"]
    counts = Counter(one.verdict[1] for one in shown)
    said = [plural(len(found) - len(shown), "answer") + " of the model"]
    said += [f"{count} {word}" for word, count in counts.items()]
    listed = [f"{one.seq:6}  {one.effect:<9}  {_about(one)}: {_became(one)}" for one in shown[-MOST:]]
    left = [f"        {len(shown) - MOST} before them: --as events shows all"] if len(shown) > MOST else []
    return ["; ".join(said), *left, *listed]


def _about(one: Action) -> str:
    if one.tool == CHANGES:
        return printable(one.paths) or "a person took changes back"
    args = json.dumps(one.args, ensure_ascii=False, default=str)
    text = f"{one.tool} {args}"
    return printable(text if len(text) <= WIDE else f"{text[: WIDE - 1]}…")


def _became(one: Action) -> str:
    word = one.verdict[1] if one.tool != CHANGES or one.paths else "done"
    return f"{word} ({one.why})" if one.why and word not in ("kept", "done") else word
