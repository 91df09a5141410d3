"""The ordered prompt items of a question, made from the state and never from the talk so far.

    fixed      axioms, predictions, goal, tools, format        the same for every turn of a task
    memory     references, then fresh entries, oldest first    grows at its end (spak.kernel.memory)
    changing   fired heuristics, R4, the state as facts, the question itself

First what stays the same from turn to turn, so that prompt caches hit: between two prompts of a task only the
end differs, unless the memory was flushed; under PRUNE_ON_CONFIRM fresh entries become references between
them. No window slides. Items are data `{role, name, text}`; text may hold references (spak.kernel.render)
that the runner resolves. Counting tokens and sending are not done here; `verdict` decides on a count.
Source: seed 000 sections 3.1 and 3.2 (ContextBuilder, Inject), seed 001 (R4 returned as tool result, R2),
seed 004 section 8.1 (the state, not the talk).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spak import canon
from spak.kernel import memory as memories
from spak.kernel.memory import Memory, settle
from spak.kernel.render import goal, render
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.program import Program, Step, Task

PACKET = (
    "Answer with one JSON object and nothing else: "
    '{"control_packet": {"reasoning_trace": TEXT, "tool_calls": [{"tool": NAME, "args": {...}}, ...]}, '
    '"surface_response": TEXT}. tool_calls: best first. control_packet is read by the kernel, '
    "surface_response by people."
)
RECALL = "A ref://N stands for an older text; recall reads it."

Verdict = Literal["send", "compact", "refuse"]


@dataclass(frozen=True, slots=True)
class Built:
    """A prompt: its items, and how many of them, from the first on, the next prompt begins with as well."""

    items: tuple[Mapping[str, Any], ...]
    prefix: int


def build(rules: Rules, state: State, task: Task, step: Step, memory: Memory) -> Built:
    """The prompt of an ask or a plan step. An ask says in its own template what it wants to see, so it has
    no memory. Raises: render.Unbound."""
    return assemble(
        _fixed(rules, state, task, step),
        memory if step.kind == "plan" else Memory(),
        _changing(rules, state, task, step),
        rules.program.memory,
    )


def assemble(
    fixed: Sequence[Mapping[str, Any]],
    memory: Memory,
    changing: Sequence[Mapping[str, Any]],
    policy: str = "",
) -> Built:
    """The three parts in their order; the policy of the memory says how much of it lasts."""
    lasting = len(fixed) + settle.lasting(memory, policy)
    return Built((*fixed, *memories.shown(memory), *changing), lasting)


def verdict(count: int, room: int | None, memory: Memory) -> Verdict:
    """What to do with a prompt of so many tokens: it goes if there is room for it, or where nobody stated a
    limit; else the memory is made smaller as long as that takes something away. Never a silent cut."""
    if room is None or count <= room:
        return "send"
    return "compact" if memory.fresh or memory.blocks else "refuse"


def _fixed(rules: Rules, state: State, task: Task, step: Step) -> list[Mapping[str, Any]]:
    found = _of_program(rules.program)
    if task.goal:
        found.append({"role": "system", "name": "goal", "text": goal(task, state)})
    if step.kind == "plan":
        found.append(_item("system", "tools", _tools(rules, task)))
        found.append(_item("system", "format", f"{PACKET} {RECALL}" if "recall" in task.tools else PACKET))
    return found


def _changing(rules: Rules, state: State, task: Task, step: Step) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for index in state.r7.fired:
        found.append(_item("user", f"heuristic.{index + 1}", rules.program.heuristics[index].text))
    if state.r4 is not None:
        found.append(_item("user", "error", canon.dumps(state.r4).decode()))
    facts = _facts(state) if step.kind == "plan" else []
    if facts:
        found.append(_item("user", "state", "\n".join(facts)))
    prompt = step.args.get("prompt")
    if prompt is not None:
        found.append({"role": "user", "name": "prompt", "text": render(prompt, rules, state)})
    return found


def _facts(state: State) -> list[str]:
    """What the registers know and nothing else in the prompt says, as atoms: a turn that measured nothing and
    failed at nothing has none, since each of these lines is paid in full every time."""
    r7 = state.r7
    found = [f"metric({_quoted(name)}, {value})." for name, value in sorted(r7.metrics.items())]
    if r7.best is not None:
        found.append(f"best({r7.best.value}).")
    if r7.fails:
        found += [f"fails({r7.fails}).", f"retries_left({r7.retries})."]
    return found


def _quoted(text: str) -> str:
    return canon.dumps(text).decode()


def _of_program(program: Program) -> list[Mapping[str, Any]]:
    """The items that every prompt of a program begins with."""
    named = (("axioms", program.axioms), ("predictions", program.predictions))
    return [_item("system", name, "\n".join(f"- {line}" for line in lines)) for name, lines in named if lines]


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
