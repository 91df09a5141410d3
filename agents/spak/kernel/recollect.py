"""What the memory keeps of an answered effect, and what becomes of it when a prompt is too long.

Takes the pending effect and the body of the proposal that answered it; gives the memory with one more entry.
Only a program whose plans a model fills has a memory at all: nobody else reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak.kernel import memory
from spak.kernel.memory import Memory, settle
from spak.kernel.rules import Rules
from spak.kernel.state import Effect


def acted(held: Memory, rules: Rules, pending: Effect, body: Mapping[str, Any]) -> Memory:
    """With what a tool did: its arguments, its output, and an exit that is not 0."""
    exit_code = body.get("exit", 0)
    note = f"exit {exit_code}\n" if exit_code else ""
    return _remember(held, rules, pending, "user", body.get("out", ""), note)


def answered(held: Memory, rules: Rules, pending: Effect, body: Mapping[str, Any]) -> Memory:
    """With the answer to a question."""
    return _remember(held, rules, pending, "assistant", body.get("out", ""), "")


def sent(held: Memory, rules: Rules) -> Memory:
    """After a prompt has shown it."""
    return memory.sent(held)


def moved(held: Memory, rules: Rules) -> Memory:
    """After the run went on to another task."""
    return settle.transition(held, rules.program.memory)


def smaller(held: Memory, rules: Rules, size: Size, items: Sequence[Mapping[str, Any]]) -> Memory | None:
    """Made smaller for a prompt of these items that was counted; None when nothing is left to take away."""
    written = sum(memory.length(item["text"]) for item in items)
    over = size.tokens - (size.room or 0)
    return settle.compact(held, rules.program.memory, written * over // max(1, size.tokens) + 1)


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
        """Tokens that the prompt may have; None where nobody stated a limit."""
        limits = [limit for limit in (self.window, self.budget) if limit is not None]
        return min(limits) if limits else None

    def knob(self, budget: int) -> tuple[str, str]:
        """Why it cannot be sent, and what would let it."""
        if self.window is not None and self.tokens > self.window:
            return "budget.window", f"a model with a window of {self.tokens * 5 // 4 + 1} tokens"
        return "budget.tokens", f"BUDGET {{ tokens: {budget * 2} }}"


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _remember(
    held: Memory, rules: Rules, pending: Effect, role: memory.Role, value: Any, note: str
) -> Memory:
    call = dict(pending.args) if pending.act == "tool" else ""
    name, policy = pending.name or pending.step, rules.program.memory
    if isinstance(value, Mapping):
        item = memory.long(pending.attempt, role, name, value, call, note)
    else:
        item = memory.entry(pending.attempt, role, name, note + str(value), call)
    return settle.remember(held, item, policy)
