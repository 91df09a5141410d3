"""What the memory keeps of an answered effect, and what becomes of it when a prompt is too long.

Takes the pending effect and the body of the proposal that answered it; gives the memory with one more entry.
Only a program whose plans a model fills has a memory at all: nobody else reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel import memory
from spak.kernel.memory import Entry, Memory
from spak.kernel.state import Effect
from spak.program import Program


def reads_memory(program: Program) -> bool:
    """Whether some plan of the program is put to a model or a person."""
    return any(
        step.kind == "plan" and not task.proposing.name
        for task in program.tasks.values()
        for step in task.steps
    )


def acted(held: Memory, pending: Effect, body: Mapping[str, Any], policy: str) -> Memory:
    """With what a tool did: its arguments, its output, and an exit that is not 0."""
    exit_code = body.get("exit", 0)
    note = f"exit {exit_code}\n" if exit_code else ""
    return memory.remember(held, _entry(pending, "user", body.get("out", ""), note), policy)


def answered(held: Memory, pending: Effect, body: Mapping[str, Any], policy: str) -> Memory:
    """With the answer to a question."""
    return memory.remember(held, _entry(pending, "assistant", body.get("out", ""), ""), policy)


def _entry(pending: Effect, role: memory.Role, value: Any, note: str) -> Entry:
    call = dict(pending.args) if pending.act == "tool" else ""
    name = pending.name or pending.step
    if isinstance(value, Mapping):
        return memory.long(pending.attempt, role, name, value, call)
    return memory.entry(pending.attempt, role, name, note + str(value), call)
