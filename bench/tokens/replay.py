"""The prompts that a recorded run would have had: through our own context builder, and as others do it.

`ours` feeds each recorded call, result and message to spak.kernel.memory and takes the prompts from
spak.kernel.context: the functions that a run uses, not copies of them. A recording has no tasks, so
transitions are inferred: one where a person speaks, and one where a call uses a tool that was not used since
the last transition (each task has its own TOOLS). Nothing else is known about the run ahead of time.

    fixed      the system message and the last message before the first turn (the goal)
    memory     calls and results, messages; reasoning beside a call is in the ledger and never resent

Every function here gives, for each recorded turn of the model, the items of the prompt and the turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.tokens.trajectories import Call, Message, Trajectory
from spak.kernel import context, memory
from spak.kernel.memory import Memory, settle

Items = Sequence[Mapping[str, Any]]
Prompts = Iterator[tuple[Items, Message]]


def ours(run: Trajectory, policy: str, pinned: bool = False, texts: dict[int, str] | None = None) -> Prompts:
    """Through the context builder. `pinned` keeps what was given before the goal in the fixed part too;
    `texts` gets every text by its ref, as the ledger would hold it."""
    start = next(index for index, item in enumerate(run.messages) if item.role == "assistant")
    fixed, before = _opening(run.messages[:start], pinned)
    made = _Run(policy, {} if texts is None else texts)
    for message in before:
        made.remember("user", "given", message.text)
    waiting: list[Call] = []
    for message in run.messages[start:]:
        if message.role == "assistant":
            yield context.assemble(fixed, made.memory, ()).items, message
            made.memory = memory.sent(made.memory)
            waiting = list(message.calls)
            if not waiting:
                made.remember("assistant", "said", message.said)
        elif message.role == "tool" and waiting:
            made.result(waiting.pop(0), message.text)
        else:
            made.transition()
            made.remember("user", "said", message.text)


class _Run:
    """The memory of a run under way, with what a ledger would know beside it."""

    def __init__(self, policy: str, texts: dict[int, str]) -> None:
        self.policy = policy
        self.texts = texts
        self.memory = Memory()
        self.tools: set[str] = set()

    def transition(self) -> None:
        self.memory = settle.transition(self.memory, self.policy)
        self.tools = set()

    def result(self, call: Call, text: str) -> None:
        if call.name not in self.tools:
            self.transition()
        self.tools.add(call.name)
        self.remember("user", call.name, text, call.args)

    def remember(self, role: memory.Role, name: str, text: str, call: str = "") -> None:
        ref = len(self.texts) + 1
        self.texts[ref] = f"{call}\n{text}"
        self.memory = settle.remember(self.memory, memory.entry(ref, role, name, text, call), self.policy)


def full(run: Trajectory) -> Prompts:
    """All messages, as recorded."""
    for index, message in enumerate(run.messages):
        if message.role == "assistant":
            yield [_item(item) for item in run.messages[:index]], message


def last_results(run: Trajectory, keep: int) -> Prompts:
    """All messages, but of the tool results only the last few: a sliding policy, as many have it."""
    for index, message in enumerate(run.messages):
        if message.role == "assistant":
            seen = run.messages[:index]
            results = [i for i, item in enumerate(seen) if item.role == "tool"]
            gone = set(results[: max(0, len(results) - keep)])
            yield [_item(item) for i, item in enumerate(seen) if i not in gone], message


def flush(run: Trajectory, every: int) -> Prompts:
    """All but the system message dropped after so many messages: the row to beat."""
    kept: list[Message] = []
    for index, message in enumerate(run.messages):
        if message.role == "assistant":
            yield [_item(item) for item in kept], message
        kept.append(message)
        if (index + 1) % every == 0:
            kept = [item for item in kept if item.role == "system"]


def floor(run: Trajectory) -> Prompts:
    """Nothing but the fixed part: less no builder can send."""
    start = next(index for index, item in enumerate(run.messages) if item.role == "assistant")
    fixed, _ = _opening(run.messages[:start], False)
    for message in run.messages[start:]:
        if message.role == "assistant":
            yield fixed, message


def _opening(messages: Sequence[Message], pinned: bool) -> tuple[list[Mapping[str, Any]], list[Message]]:
    """What stands in the fixed part, and what is only the oldest memory (a demonstration)."""
    last = len(messages) - 1
    fixed, before = [], []
    for index, message in enumerate(messages):
        if message.role == "system" or index == last or pinned:
            fixed.append(_item(message))
        else:
            before.append(message)
    return fixed, before


def _item(message: Message) -> Mapping[str, Any]:
    return {"role": message.role, "name": "message", "text": message.text}
