"""A run as events in the shape of seed 002 (section 5.2): one flat object for each effect.

    {"timestamp", "task", "step", "type", "prompt", "response", "status"}

Takes records and blobs; gives events in order, by replay. `prompt` is what was sent or asked for, `response`
what came back, both as text; an effect that is still open has no response, and the status `waiting` or
`running`. From the last event one knows where the run is and which question is open (section 5.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from spak import canon
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.ports import Blobs
from spak.records import Kind, Record
from spak.runner.blobs import expand, prompt_of
from spak.runner.views.turns import Turn, turns


def events(records: Iterable[Record], blobs: Blobs) -> Iterator[dict[str, Any]]:
    """The events of a run. Raises: LedgerError."""
    last: Turn | None = None
    for turn in turns(records):
        last = turn
        effect = turn.done
        if effect is not None:
            sent, came = _sent(effect, turn.rules, blobs), _came(turn, blobs)
            yield _event(turn.proposal.at, effect.task, effect.step, _type(effect), sent, came, _status(turn))
        for record in turn.commits:
            if record.kind == Kind.PERMIT and record.body.get("allow") is False:
                asked = _text({"name": record.body.get("name", ""), "args": record.body.get("args")})
                code = str(record.body.get("code", ""))
                yield _event(record.at, record.task, record.step, "policy", asked, code, "denied")
            elif record.kind == Kind.END:
                codes = ", ".join(map(str, record.body.get("codes") or ())) or None
                status = str(record.body.get("state", ""))
                yield _event(record.at, record.task, record.step, "end", None, codes, status)
    pending = last.after.r6 if last is not None else None
    if last is not None and pending is not None and pending.act != "observe":
        status = "waiting" if pending.cls == "ask" else "running"
        sent = _sent(pending, last.rules, blobs)
        yield _event(last.proposal.at, pending.task, pending.step, _type(pending), sent, None, status)


def _event(
    at: int, task: str, step: str, type_: str, prompt: str | None, response: str | None, status: str
) -> dict[str, Any]:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return {
        "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "task": task,
        "step": step,
        "type": type_,
        "prompt": prompt,
        "response": response,
        "status": status,
    }


def _type(effect: Effect) -> str:
    match effect.act:
        case "ask":
            return "llm.query"
        case "plan":
            return "llm.plan"
        case "tool":
            return f"tool.{effect.name}"
        case "validate":
            return f"validate.{effect.name}"
    return effect.act


def _sent(effect: Effect, rules: Rules, blobs: Blobs) -> str | None:
    if effect.items:
        return prompt_of(effect, blobs, rules).text
    if effect.act in ("tool", "validate", "approve"):
        return _text(expand(effect.args, blobs))
    return None


def _came(turn: Turn, blobs: Blobs) -> str | None:
    body = turn.proposal.body
    if turn.proposal.kind == Kind.PLAN:
        return _text(expand(body.get("candidates", []), blobs))
    if "out" in body:
        return str(expand(body["out"], blobs))
    kept = ("outcome", "exit", "status", "metrics", "checks", "facts", "approve", "code")
    found = {name: body[name] for name in kept if name in body}
    return _text(expand(found, blobs)) if found else ""


def _status(turn: Turn) -> str:
    if turn.rolled_back:
        return "rolled_back"
    route = turn.first(Kind.ROUTE)
    if turn.proposal.kind == Kind.PLAN or route is None:
        return "success"
    return "fail" if route.body.get("signal") in ("fail", "timeout") else "success"


def _text(value: Any) -> str:
    return canon.dumps(value).decode()
