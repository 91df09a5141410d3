"""What fits and what does not: candidates, and the shapes of values from outside; R4 for what does not.

Takes values of proposals; gives R4 entries (`{code, expected, received, hint}`) or plain numbers. Pure and
total: no value, however odd, raises. It decides nothing about the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel.rules import Rules
from spak.lang.schema import violations
from spak.program import Task


def misfit(rules: Rules, task: Task, candidate: Any) -> list[Mapping[str, Any]]:
    """Why a candidate can not be taken, as R4 values; empty when it can."""
    if not isinstance(candidate, Mapping) or not isinstance(candidate.get("tool"), str):
        return [r4("plan.malformed", "an object with tool and args", shape(candidate), "name a tool")]
    name, args = candidate["tool"], candidate.get("args", {})
    entry = rules.catalog.tool(name)
    if entry is None or not listed(rules, task, name):
        known = ", ".join(task.tools) or "none"
        return [r4("policy.not_in_tools", known, name, f"TASK {task.name} may use: {known}")]
    if not isinstance(args, Mapping):
        return [r4("schema.type", "an object", shape(args), "args is an object of the tool's fields")]
    found = violations(entry.schema, args)
    return [r4(v.code, v.expected, v.received, f"{v.path}: {v.hint}") for v in found]


def listed(rules: Rules, task: Task, name: str) -> bool:
    entry = rules.catalog.tool(name)
    return entry is not None and any(item == name or rules.catalog.tool(item) is entry for item in task.tools)


def unanswered(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """R4 of an answer that could not be used, with what its reading said: short texts and nothing else."""
    told = {name: body.get(name) for name in ("code", "expected", "received", "hint")}
    said = {name: text[:400] for name, text in told.items() if isinstance(text, str)}
    usual = {"code": "llm.no_answer", "expected": "an answer", "received": "", "hint": "ask again"}
    return {**usual, **said}


def r4(code: str, expected: str, received: str, hint: str) -> Mapping[str, Any]:
    """The error register. Source: seed 001 (code, expected schema, received payload, recovery hint)."""
    return {"code": code, "expected": expected, "received": received, "hint": hint}


def exit_r4(exit_code: int, place: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """R4 of a non-zero exit: the tool's first diagnostic says more than the number."""
    diagnostics = body.get("diagnostics")
    first = diagnostics[0] if isinstance(diagnostics, list) and diagnostics else None
    if not isinstance(first, Mapping):
        return r4("tool.exit", "exit 0", f"exit {exit_code}", place)
    words = [str(first.get(name, "")) for name in ("file", "line", "message", "hint")]
    hint = f"{place}: " + " ".join(word for word in words if word not in ("", "0"))
    code = first.get("code")
    return r4(
        code if isinstance(code, str) and code else "tool.exit", "exit 0", f"exit {exit_code}", hint[:400]
    )


def booleans(facts: Any) -> Any:
    return iter([fact is True for fact in facts] if isinstance(facts, list) else [])


def count(side: Any, name: str) -> int:
    value = side.get(name) if isinstance(side, Mapping) else None
    return value if type(value) is int and value > 0 else 0


def score(candidate: Mapping[str, Any]) -> int:
    score = candidate.get("score", 0)
    return score if type(score) is int else 0


def shape(value: Any) -> str:
    return type(value).__name__
