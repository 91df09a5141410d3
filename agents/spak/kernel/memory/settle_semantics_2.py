"""When entries of the memory settle, and what is left of them, as semantics 2 decides it (see settle.py).

A new entry past the limit may settle before any prompt has shown it, FLUSH_ON_TRANSITION settles only what
pays, and a long text is never shown. Kept so that ledgers of that version replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spak import canon
from spak.kernel.memory import (
    GIST,
    NAMED,
    WHOLE,
    Entry,
    Memory,
    Reference,
    Role,
    brief,
    compact_json,
    gist,
    lines,
)

LIMIT = 24_000
"""Characters of fresh entries past which the older half settles, whatever the policy."""
HORIZON = 8
"""Prompts still to come that a flush may count on in a run that has made fewer."""


def entry(ref: int, role: Role, name: str, text: str, call: Any = "") -> Entry:
    """An entry of a whole text and, for a tool, its arguments."""
    data = text.encode("utf-8", "replace")
    kept = gist([brief(call), text])
    called = _called(name, call)
    if len(text) + len(called) > WHOLE:
        return Entry(ref, role, name, called[:GIST], "", len(data), canon.digest(data), kept)
    return Entry(ref, role, name, called, compact_json(text), len(data), canon.digest(data), kept)


def long(ref: int, role: Role, name: str, value: Mapping[str, Any], call: Any = "") -> Entry:
    """An entry of a text that is a blob: a reference from the start."""
    called, size = _called(name, call)[:GIST], value.get("size", 0)
    kept = gist([brief(call), value.get("head", "")])
    return Entry(ref, role, name, called, "", size, str(value.get("$blob", "")), kept)


def _called(name: str, call: Any) -> str:
    return f"{name} {compact_json(brief(call))}" if call else ""


def remember(memory: Memory, item: Entry, policy: str, limit: int = LIMIT) -> Memory:
    """The memory with one more entry; what is past the limit settles, in a block."""
    memory = replace(memory, fresh=(*memory.fresh, item))
    if sum(item.length for item in memory.fresh) <= limit:
        return memory
    keep, left = len(memory.fresh) - 1, limit // 2
    while keep > 0 and memory.fresh[keep].length <= left:
        left -= memory.fresh[keep].length
        keep -= 1
    return _settle(memory, keep + 1, gists=policy != "FIFO")


def transition(memory: Memory, policy: str) -> Memory:
    """The memory after the run went on to another task.

    FLUSH_ON_TRANSITION settles every entry that a prompt has shown, when that is worth its price with a
    prefix cache: the references are sent once at the full price instead of a tenth, and so is what comes
    after them, and every prompt to come is shorter. How many will come nobody knows: as many as there were
    is the guess, HORIZON at first. What no prompt has shown yet stays, so that nothing settles unseen.
    """
    if policy != "FLUSH_ON_TRANSITION" or not memory.sent:
        return memory
    old = memory.fresh[: memory.sent]
    named = len(lines(_block(memory, memory.sent, True)))
    gone = sum(item.length for item in old) - named
    if max(memory.calls, HORIZON) * gone <= 9 * named:
        return memory
    return _settle(memory, memory.sent, gists=True)


def compact(memory: Memory, policy: str) -> Memory | None:
    """The memory made smaller for a prompt that is too long: first everything fresh settles, then the
    references fold into one line; None when there is nothing left to take away."""
    if memory.fresh:
        return _settle(memory, len(memory.fresh), gists=policy != "FIFO")
    if memory.blocks:
        return _fold(memory, len(memory.blocks))
    return None


def _settle(memory: Memory, count: int, gists: bool) -> Memory:
    """The first `count` fresh entries as one more block of references."""
    block = _block(memory, count, gists)
    blocks = (*memory.blocks, block)
    memory = replace(memory, blocks=blocks, fresh=memory.fresh[count:], sent=max(0, memory.sent - count))
    if not gists:
        return _fold(memory, len(blocks))
    if sum(len(lines(block)) for block in blocks) <= NAMED:
        return memory
    return _fold(memory, max(1, len(blocks) // 2))


def _fold(memory: Memory, count: int) -> Memory:
    """The first `count` blocks as part of the one line for all older references."""
    gone = memory.blocks[:count]
    return replace(
        memory,
        folded=memory.folded + sum(map(len, gone)),
        upto=gone[-1][-1].ref,
        blocks=memory.blocks[count:],
    )


def _block(memory: Memory, count: int, gists: bool) -> tuple[Reference, ...]:
    """References to the first `count` fresh entries; a literal is in one gist only."""
    known = {word for block in memory.blocks for item in block for word in item.gist.split()}
    found = []
    for item in memory.fresh[:count]:
        words = [word for word in item.gist.split() if gists and word not in known]
        known.update(words)
        kept = " ".join(words)
        found.append(Reference(item.ref, item.name, item.size, item.digest, kept))
    return tuple(found)
