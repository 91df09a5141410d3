"""A run and its records in words: states with their glyphs, one line for lists, numbers with units.

Takes rows and records, gives plain text; templates escape it. Text of models and tools is never trusted:
nothing here makes markup but the glyphs, which are constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.lang.graph import STATES
from spak.lang.graph import State as NodeState
from spak.records import Kind, Record

WORDS = {
    "queued": "Queued",
    "running": "Running",
    "waiting": "Waiting",
    "paused": "Paused",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "refused": "Refused",
    "cancelled": "Cancelled",
}
"""How people read the states of a run; the same words on pills, nodes, bars."""
FINER = {
    "unchecked": "Completed, unchecked",
    "own-tests": "Succeeded, by its own tests",
    "allowed": "A step failed",
    "unheard": "Not heard of",
}
"""Shown in place of "Succeeded": of a run whose result nothing checked, or whose check fails without what the
run changed of its tests, and of a task in which a step failed that was allowed to. The last one is in place
of "Paused": of a guarded session whose guard reports no more."""
MODES = {"stepwise": "step by step", "semi_auto": "semi-automatic", "full_auto": "automatic"}
"""How people read the modes."""
REGISTERS = {
    "R0": "instruction",
    "R1": "counters",
    "R2": "prompt",
    "R3": "workspace",
    "R4": "error",
    "R5": "program",
    "R6": "pending effect",
    "R7": "executive",
}
NODES = {
    **dict.fromkeys(("succeeded", "unchecked", "own-tests"), NodeState.DONE.value),
    "unheard": "paused",
    "": "",
}
"""How the graph names a state, where it has another word."""
LINE = 200


def node_state(name: str) -> str:
    """A state as the graph has it."""
    found = NODES.get(name, name)
    return found if found in {item.value for item in NodeState} else ""


def state(name: str) -> str:
    """The word for a state of a run or a task."""
    return WORDS.get(name) or FINER.get(name, name)


def glyph(name: str) -> str:
    """The glyph of a state as inline SVG; a word stands beside it."""
    path = STATES.get(NodeState(node_state(name) or "queued"), "")
    return (
        '<svg class="state-glyph" viewBox="0 0 12 12" aria-hidden="true" focusable="false">'
        f'<path d="{path}"/></svg>'
    )


def took(milliseconds: Any) -> str:
    """A span of time: 18 ms, 2.4 s, 3 min 5 s, 2 h 10 min."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return "not available"
    if milliseconds < 1000:
        return f"{round(milliseconds)} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min{f' {whole % 60} s' if whole % 60 else ''}"
    return f"{whole // 3600} h{f' {whole % 3600 // 60} min' if whole % 3600 >= 60 else ''}"


def money(nanos: Any) -> str:
    """Money, kept as billionths of a dollar."""
    if not isinstance(nanos, int | float):
        return "not available"
    dollars = nanos / 1_000_000_000
    if dollars >= 0.1 or not dollars:
        return f"${dollars:,.2f}"
    return f"${dollars:.4f}" if dollars >= 0.001 else f"${dollars:.9f}".rstrip("0")


def figure(value: Any) -> str:
    """A number for reading: 12,345; 1.57; 12.3k is never used, since it hides digits."""
    if isinstance(value, bool) or value is None:
        return "not available" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


DECIDED = {"approve": "approved", "deny": "denied"}
FIRST = ("time_ns", "spread_ppm", "err_max", "passed", "failed", "count")
"""Metrics that are told first of many."""


def measured(metrics: Mapping[str, Any], most: int = 4) -> str:
    """What was measured, on one line, what matters most first."""
    order = [name for name in FIRST if name in metrics] + [name for name in metrics if name not in FIRST]
    return ", ".join(" ".join(metric(name, metrics[name])) for name in order[:most])


def metric(name: str, value: Any) -> tuple[str, str]:
    """A metric's name and its value with the unit that the name ends in: ns, ppm or ms."""
    stem, _, unit = name.rpartition("_")
    if stem and isinstance(value, int | float) and not isinstance(value, bool):
        match unit:
            case "ns":
                return stem, f"{value / 1e6:.3g} ms" if value >= 1e5 else f"{value / 1e3:.3g} µs"
            case "ms":
                return stem, f"{value:.3g} ms" if value < 1000 else took(value)
            case "ppm":
                return stem, f"{value / 1e4:.3g} %"
    return name, figure(value)


def one_line(value: Any, most: int = LINE) -> str:
    """A JSON value on one line, cut with an ellipsis."""
    if isinstance(value, Mapping) and "head" in value and "$blob" in value:
        value = str(value["head"])
    text = value if isinstance(value, str) else canon.dumps(value).decode("utf-8", "replace")
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def sentence(record: Record) -> str:
    """What a record says, on one line."""
    try:
        return one_line(_SENTENCES.get(record.kind, _other)(record))
    except (TypeError, KeyError, ValueError, AttributeError):  # a body from elsewhere, of another shape
        return one_line(record.body)


def action(body: Mapping[str, Any]) -> str:
    """What a permit is about: the tool and what it would do."""
    args, name = body.get("args"), str(body.get("name") or body.get("act") or "")
    if body.get("act") in ("ask", "plan"):
        whom = "" if name in ("ask", "plan") else f" {name}"
        return f"ask{whom} for a plan" if body["act"] == "plan" else f"ask{whom}"
    if not isinstance(args, Mapping):
        return name
    match name:
        case "run" if isinstance(args.get("cmd"), list):
            return f"run {' '.join(map(str, args['cmd']))}"
        case "check":
            atoms = args.get("atoms") or []
            return f"check {', '.join(str(atom.get('function', '')) for atom in atoms)}"
        case "ask" | "plan" | "":
            return "ask for a plan" if name == "plan" else "ask"
    if "path" in args:
        return f"{name} {args['path']}"
    if all(isinstance(value, str | int | float) for value in args.values()):
        return one_line(" ".join([name, *(f"{key}={_plain(value)}" for key, value in args.items())]), 120)
    return f"{name} {one_line(args, 120)}"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _genesis(record: Record) -> str:
    host = record.body.get("host", {})
    parent = host.get("parent")
    mode = str(host.get("mode", ""))
    begun = f"begins {host.get('spec', '')}, {MODES.get(mode, mode)}"
    return f"{begun}, forked from {parent['run']} at record {parent['at']}" if parent else begun


def _act(record: Record) -> str:
    body, by = record.body, record.side.get("by")
    if "facts" in body:
        facts = list(body["facts"])
        held = f"{sum(fact is True for fact in facts)} of {len(facts)} hold"
        return f"conditions on files: {held if facts else 'none'}"
    if "status" in body:
        metrics = body.get("metrics") or {}
        found = measured(metrics)
        return f"{body.get('status')}: {found}" if found else str(body["status"])
    outcome = str(body.get("outcome", ""))
    if outcome == "exited":
        out = one_line(body.get("out", ""), 120)
        return f"exited {body.get('exit')}{f': {out}' if out else ''}"
    if outcome == "answered":
        return f"answered{f' by {by}' if by else ''}: {one_line(body.get('out', ''), 140)}"
    code = body.get("code")
    return f"{outcome}{f' [{code}]' if code else ''}" if outcome else one_line(body)


def _permit(record: Record) -> str:
    allow = record.body.get("allow")
    word = {True: "permitted", False: "denied", "ask": "waits for an approval"}.get(allow, str(allow))
    code = record.body.get("code")
    args = record.body.get("args")
    patch = args.get("patch") if isinstance(args, Mapping) else None
    what = action(record.body)
    if isinstance(patch, str):  # of a patch its length is enough: what was decided has to be in sight
        lines = len(patch.splitlines())
        what = f"{record.body.get('name')}, {lines} line{'' if lines == 1 else 's'}"
    return f"{what}: {word}{f' [{code}]' if code else ''}"


def _route(record: Record) -> str:
    body = record.body
    to, code = str(body.get("to", "")), body.get("code")
    where = f", to {to.rstrip('/')}" if to else ""
    best = f", best {figure(body['best'])}" if "best" in body else ""
    return f"{body.get('signal', 'goes on')}{f' [{code}]' if code else ''}{where}{best}"


def _plan(record: Record) -> str:
    found = record.body.get("candidates")
    tools = ", ".join(str(item.get("tool", "")) for item in found[:4]) if isinstance(found, list) else ""
    return f"{len(found or ())} candidate{'' if len(found or ()) == 1 else 's'}: {tools}"


def _other(record: Record) -> str:
    return one_line(record.body)


def _extend(record: Record) -> str:
    body = record.body
    asked = f"{figure(body['by'])} more of {body['budget']}"
    if body["allow"] is not True:
        return f"{asked}: refused, {body['code']}"
    return f"{asked}{' by the law' if body.get('law') else ''}: {figure(body['limit'])} in all"


_SENTENCES: dict[str, Any] = {
    Kind.GENESIS: _genesis,
    Kind.OBSERVE: lambda record: "observed " + ", ".join(sorted(record.body.get("facts", record.body))),
    Kind.ACT: _act,
    Kind.PERMIT: _permit,
    Kind.ROUTE: _route,
    Kind.PLAN: _plan,
    Kind.SELECT: lambda record: (
        f"candidate {record.body['i'] + 1}" if record.body["i"] >= 0 else "no candidate can be used"
    ),
    Kind.INJECT: lambda record: f"heuristic {record.body['heuristic']} on {', '.join(record.body['on'])}",
    Kind.CONTEXT: lambda record: f"{record.body['act']}: {figure(record.body['tokens'])} tokens",
    Kind.EXTEND: _extend,
    Kind.APPROVAL: lambda record: (
        f"{DECIDED.get(record.body.get('decision', ''), 'signed')}"
        f"{' by ' + record.side['by'] if 'by' in record.side else ''}"
    ),
    Kind.CONTROL: lambda record: ", ".join(str(name) for name in record.body),
    Kind.RESUME: lambda record: f"taken up after {figure(record.body['records'])} records",
    Kind.ROLLBACK: lambda record: "the workspace was set back to what the last commit says",
    Kind.LATE: lambda record: "an answer came too late and was left out",
    Kind.END: lambda record: f"{record.body['state']}{_codes(record.body)}",
}


def _codes(body: Mapping[str, Any]) -> str:
    codes = body.get("codes") or []
    return f": {', '.join(map(str, codes))}" if codes else ""
