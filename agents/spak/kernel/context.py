"""The ordered prompt items of a question, made from the state and never from the talk so far.

system model, goal, fired heuristics, R4, tools (for a plan), the question itself: first what stays the same
from turn to turn, so that prompt caches hit. Items are data `{role, name, text}`; text may hold references
(spak.kernel.render) that the runner resolves. Counting tokens and sending are not done here.
Source: seed 000 sections 3.1 and 3.2 (ContextBuilder, Inject), seed 001 (R4 returned as tool result).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.kernel.render import render
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.program import Step, Task

_PLAN = (
    "Answer with one JSON object and nothing else: "
    '{"candidates": [{"tool": NAME, "args": {...}}, ...]}, best first.'
)


def items(rules: Rules, state: State, task: Task, step: Step) -> tuple[Mapping[str, Any], ...]:
    """The prompt items of an ask or a plan step. Raises: render.Unbound."""
    program = rules.program
    found: list[Mapping[str, Any]] = []
    if program.axioms:
        found.append(_item("system", "axioms", "\n".join(f"- {axiom}" for axiom in program.axioms)))
    if program.predictions:
        found.append(_item("system", "predictions", "\n".join(f"- {line}" for line in program.predictions)))
    if step.kind == "plan":
        found.append(_item("system", "tools", _tools(rules, task)))
        found.append(_item("system", "format", _PLAN))
    if task.goal:
        found.append(_item("user", "goal", task.goal))
    for index in state.r7.fired:
        found.append(_item("user", f"heuristic.{index + 1}", program.heuristics[index].text))
    if state.r4 is not None:
        found.append(_item("user", "error", canon.dumps(state.r4).decode()))
    prompt = step.args.get("prompt")
    if prompt is not None:
        found.append({"role": "user", "name": "prompt", "text": render(prompt, rules, state)})
    return tuple(found)


def _item(role: str, name: str, text: str) -> Mapping[str, Any]:
    return {"role": role, "name": name, "text": text}


def _tools(rules: Rules, task: Task) -> str:
    lines = []
    for name in task.tools:
        tool = rules.catalog.tool(name)
        if tool is not None:
            schema = canon.dumps(tool.schema).decode()
            lines.append(f"{name}: {tool.summary} args: {schema}")
    return "\n".join(lines)
