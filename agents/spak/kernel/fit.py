"""What fits and what does not: candidates, and the shapes of values from outside; R4 for what does not.

Takes values of proposals; gives R4 entries (`{code, expected, received, hint}`) or plain numbers. Pure and
total: no value, however odd, raises. It decides nothing about the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.kernel.render import NotANumber
from spak.kernel.rules import Rules
from spak.lang.catalog import ToolEntry
from spak.lang.schema import violations
from spak.program import Task

NAMED = 80
"""Characters of a tool's name that are counted and recorded: a model may name anything."""

BOUND = 2048
"""Bytes of a schema or of a payload in R4."""

TEXT = 256
"""Characters of a text in a payload that is too long as a whole."""

CUT = "\u2026"
"""What stands at the end of a text that was cut."""


def misfit(rules: Rules, task: Task, candidate: Any) -> list[Mapping[str, Any]]:
    """Why a candidate can not be taken, as R4 values; empty when it can."""
    if not isinstance(candidate, Mapping) or not isinstance(candidate.get("tool"), str):
        return [r4("plan.malformed", "an object with tool and args", type_name(candidate), "name a tool")]
    name, args = candidate["tool"], candidate.get("args", {})
    entry = rules.catalog.tool(name)
    if entry is None or not in_tools(rules, task, name):
        known = ", ".join(task.tools) or "none"
        reason = r4("policy.not_in_tools", known, name[:NAMED], f"TASK {task.name} may use: {known}")
        return [with_payload(reason, args)]
    if not isinstance(args, Mapping):
        reason = r4("schema.type", "an object", type_name(args), "args is an object of the tool's fields")
        return [with_payload(reason, args, entry.schema)]
    return misfits(entry, args) or unproved(candidate)


def unproved(candidate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Why a candidate with verdicts of its own can not be taken: one of them is not ok, or is no verdict."""
    checks = candidate.get("checks", [])
    for check in checks if isinstance(checks, list) else [None]:
        if not isinstance(check, Mapping) or check.get("ok") is not True:
            name = str(check.get("name", ""))[:NAMED] if isinstance(check, Mapping) else ""
            return [r4("plan.unproved", "checks that are ok", name or "no check", "propose what meets them")]
    return []


def misfits(entry: ToolEntry, args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Why arguments do not fit a tool's schema, as R4 values; empty when they do."""
    found = violations(entry.schema, args)
    reasons = [r4(v.code, v.expected, v.received, f"{v.path}: {v.hint}") for v in found]
    return [with_payload(item, args, entry.schema) for item in reasons[:1]] + reasons[1:]


def with_payload(
    error: Mapping[str, Any], payload: Any, schema: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """R4 with the schema that was expected and the payload that was received, each cut to BOUND bytes. Both
    are what `step` was given, so that secrets are out of them already. Source: seed 001."""
    expected = {"schema": bounded(schema)} if schema is not None else {}
    return {**error, **expected, "payload": bounded(payload)}


def bounded(value: Any) -> Any:
    """A JSON value of at most BOUND bytes: as it is, else with its long texts cut, else the beginning of its
    text."""
    if len(canon.dumps(value)) <= BOUND:
        return value
    short = _cut(value)
    text = canon.dumps(short)
    if len(text) <= BOUND:
        return short
    return text[: BOUND - len(CUT.encode())].decode("utf-8", "ignore") + CUT


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT else value[:TEXT] + CUT
    if isinstance(value, Mapping):
        return {key: _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, (list, tuple)) else value


def in_tools(rules: Rules, task: Task, name: str) -> bool:
    """Whether TOOLS of the task has a tool, under this name or another of its names."""
    entry = rules.catalog.tool(name)
    return entry is not None and any(item == name or rules.catalog.tool(item) is entry for item in task.tools)


def unanswered(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """R4 of an answer that could not be used, with what its reading said: short texts and nothing else."""
    given = {name: body.get(name) for name in ("code", "expected", "received", "hint")}
    texts = {name: text[:400] for name, text in given.items() if isinstance(text, str)}
    usual = {"code": "llm.no_answer", "expected": "an answer", "received": "", "hint": "ask again"}
    out = body.get("out", "")
    head = out.get("head", "") if isinstance(out, Mapping) else out
    return with_payload({**usual, **texts}, head if isinstance(head, str) else "")


def r4(code: str, expected: str, received: str, hint: str) -> Mapping[str, Any]:
    """The error register. Source: seed 001 (code, expected schema, received payload, recovery hint)."""
    return {"code": code, "expected": expected, "received": received, "hint": hint}


def not_a_number(found: NotANumber) -> Mapping[str, Any]:
    """R4 of a comparison of a text with a number."""
    return r4(
        "run.not_a_number",
        f"a number to compare with {found.number}",
        canon.dumps(found.text).decode(),
        f"{found.comparison} compares a text with a number: print the number and nothing else",
    )


def described(place: str, first: Mapping[str, Any]) -> str:
    """A diagnostic in a line: where, what, and what to do."""
    words = [str(first.get(name, "")) for name in ("file", "line", "message", "hint")]
    where = ":".join(word for word in words[:2] if word not in ("", "0"))
    text = "; ".join(word for word in words[2:] if word)
    return ": ".join(word for word in (place, where, text) if word)[:400]


def failed_check(code: str, validator: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """R4 of a check that failed, with its first diagnostic where it has one."""
    hint, listed = f"validator {validator}", body.get("diagnostics")
    if isinstance(listed, list) and listed and isinstance(listed[0], Mapping):
        hint = described(hint, listed[0])
    return r4(code, "all checks ok", code, hint)


def exit_r4(exit_code: int, place: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """R4 of a non-zero exit: the tool's first diagnostic says more than the number."""
    diagnostics = body.get("diagnostics")
    first = diagnostics[0] if isinstance(diagnostics, list) and diagnostics else None
    if not isinstance(first, Mapping):
        return r4("tool.exit", "exit 0", f"exit {exit_code}", place)
    code, hint = first.get("code"), described(place, first)
    return r4(code if isinstance(code, str) and code else "tool.exit", "exit 0", f"exit {exit_code}", hint)


def booleans(facts: Any) -> Any:
    """The answers to questions, in order; whatever is not true is false."""
    return iter([fact is True for fact in facts] if isinstance(facts, list) else [])


def count(side: Any, name: str) -> int:
    """A number of `side` that counts something; 0 for what is none."""
    value = side.get(name) if type(side) is dict or isinstance(side, Mapping) else None
    return value if type(value) is int and value > 0 else 0


def score(candidate: Mapping[str, Any]) -> int:
    """The score of a candidate, 0 where it gives none."""
    score = candidate.get("score", 0)
    return score if type(score) is int else 0


def type_name(value: Any) -> str:
    """The kind of a value, for a message."""
    return type(value).__name__
