"""What the memory keeps of an answered effect, and what becomes of it when a prompt is too long.

Takes the pending effect and the body of the proposal that answered it; gives the memory with one more entry.
Only a program whose plans a model fills has a memory at all: nobody else reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spak.kernel import memory
from spak.kernel.memory import Entry, Memory
from spak.program import Program

if TYPE_CHECKING:
    from spak.kernel.state import Effect


def reads_memory(program: Program) -> bool:
    """Whether some plan of the program is put to a model or a person."""
    return any(
        step.kind == "plan" and not task.proposing.name
        for task in program.tasks.values()
        for step in task.steps
    )


def acted(held: Memory, policy: str, pending: Effect, body: Mapping[str, Any]) -> Memory:
    """With what a tool did: its arguments, its output, and an exit that is not 0."""
    exit_code = body.get("exit", 0)
    note = f"exit {exit_code}\n" if exit_code else ""
    return memory.remember(held, _entry(pending, "user", body.get("out", ""), note), policy)


def answered(held: Memory, policy: str, pending: Effect, body: Mapping[str, Any]) -> Memory:
    """With the answer to a question."""
    return memory.remember(held, _entry(pending, "assistant", body.get("out", ""), ""), policy)


@dataclass(frozen=True, slots=True)
class Size:
    """A counted prompt: its tokens, and how many it may have; None where nobody stated a limit."""

    tokens: int
    window: int | None
    budget: int | None

    @classmethod
    def of(cls, body: Mapping[str, Any], spent: int, budget: int) -> Size:
        """From an observation `{tokens, window}`; what makes no sense in it counts as nothing.

        A fifth of the window is kept for the answer, and for models whose own count is higher than ours.
        """
        tokens, window = _count(body.get("tokens")), _count(body.get("window"))
        return cls(tokens, window * 4 // 5 if window else None, budget - spent if budget else None)

    @property
    def room(self) -> int | None:
        limits = [limit for limit in (self.window, self.budget) if limit is not None]
        return min(limits) if limits else None

    def knob(self, budget: int) -> tuple[str, str]:
        """Why it cannot be sent, and what would let it."""
        if self.window is not None and self.tokens > self.window:
            return "budget.window", f"a model with a window of {self.tokens * 5 // 4 + 1} tokens"
        return "budget.tokens", f"BUDGET {{ tokens: {budget * 2} }}"


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _entry(pending: Effect, role: memory.Role, value: Any, note: str) -> Entry:
    call = dict(pending.args) if pending.act == "tool" else ""
    name = pending.name or pending.step
    if isinstance(value, Mapping):
        return memory.long(pending.attempt, role, name, value, call)
    return memory.entry(pending.attempt, role, name, note + str(value), call)
