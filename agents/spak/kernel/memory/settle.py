"""When entries of the memory settle, and what is left of them: the policies that CONFIG names.

    FIFO                  past the limit the oldest leave; one line says how many there are
    SUMMARIZE             past the limit the oldest become a reference with a gist and a summary: their first
                          and last lines
    FLUSH_ON_TRANSITION   at a change of task everything leaves, and past the limit the oldest; a reference
                          with a gist is left
    PRUNE_ON_CONFIRM      what a prompt has shown leaves once the answer to that prompt led to a
                          committed result; a reference with a gist is left

Under every policy a text stays in full until a prompt has shown it, unless what no prompt has shown passes
a limit of its own, or the model's window has no room for it (`compact`). Past the limit the older half leaves
at once, so that the beginning of prompts changes rarely. A block of references is added after those before it
and never edited, until all references pass their limit and the older half of them folds into one line.

Only committed results become entries (spak.kernel.answer), so PRUNE_ON_CONFIRM has nothing to ask of a
transaction: an answer that did not fit, or whose tool was rolled back, remembers nothing, and its prompt is
sent again with the same texts.

Pure functions. Source: seed 001 (tool messages pruned after the log confirms), ADR 0026 and ADR 0132.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, takewhile

from spak.kernel.memory import LIMIT, NAMED, UNSEEN, Entry, Memory, Reference, head, lines, shown

PRUNE = "PRUNE_ON_CONFIRM"
EDGE = 2
"""First and last lines of a text that a summary shows."""
WIDTH = 160
"""Characters of one line in a summary."""


def remember(memory: Memory, item: Entry, policy: str, limit: int = LIMIT, unseen: int = UNSEEN) -> Memory:
    """The memory with one more entry; past the limit the older half of what prompts have shown settles, and
    under PRUNE_ON_CONFIRM all of it: the new entry is the result that confirms it."""
    if policy == PRUNE:
        memory = _settle(memory, memory.sent, policy)
    memory = replace(memory, fresh=(*memory.fresh, item))
    lengths = [entry.length for entry in memory.fresh]
    if sum(lengths) <= limit:
        return memory
    older = len(lengths) - _newest(lengths, limit // 2)
    over = len(lengths) - _newest(lengths, unseen)
    return _settle(memory, max(min(older, memory.sent), over), policy)


def transition(memory: Memory, policy: str) -> Memory:
    """The memory after the run went on to another task."""
    if policy != "FLUSH_ON_TRANSITION" or not memory.sent:
        return memory
    return _settle(memory, memory.sent, policy)


def lasting(memory: Memory, policy: str) -> int:
    """How many of the items that `memory.shown` gives the next prompt has as well, if nothing is too long."""
    settled = (1 if memory.folded else 0) + len(memory.blocks)
    return settled if policy == PRUNE else len(shown(memory))


def compact(memory: Memory, policy: str, excess: int) -> Memory | None:
    """The memory made smaller for a prompt that is too long by about `excess` characters.

    The older half of what prompts have shown settles, or more if that is not enough; of what no prompt has
    shown no more than needed; then the references fold into one line. None when nothing is left to take away.
    """
    if not memory.fresh:
        return _fold(memory, sum(map(len, memory.blocks))) if memory.blocks else None
    saved = list(accumulate(_saved(memory, policy)))
    count = bisect_left(saved, excess) + 1
    if count <= memory.sent:
        count = max(count, bisect_left(saved, saved[memory.sent - 1] // 2) + 1)
    return _settle(memory, min(count, len(memory.fresh)), policy)


def _newest(lengths: list[int], limit: int) -> int:
    """How many of the last lengths are within the limit together."""
    return sum(1 for _ in takewhile(lambda total: total <= limit, accumulate(reversed(lengths))))


def _saved(memory: Memory, policy: str) -> Iterator[int]:
    """What each fresh entry's settling makes the prompt shorter by."""
    for item in memory.fresh:
        left = 0 if policy == "FIFO" else len(_reference(item, policy, set()).line())
        yield max(0, item.length - left)


def _settle(memory: Memory, count: int, policy: str) -> Memory:
    """The first `count` fresh entries as one more block of references."""
    if not count:
        return memory
    known = {word for block in memory.blocks for item in block for word in item.gist.split()}
    block = tuple(_reference(item, policy, known) for item in memory.fresh[:count])
    memory = replace(
        memory,
        blocks=(*memory.blocks, block),
        fresh=memory.fresh[count:],
        sent=max(0, memory.sent - count),
    )
    flat = [item for block in memory.blocks for item in block]
    if policy == "FIFO":
        return _fold(memory, len(flat))
    if sum(len(lines(block)) for block in memory.blocks) <= NAMED:
        return memory
    return _fold(memory, len(flat) - _newest([len(item.line()) for item in flat], NAMED // 2))


def _fold(memory: Memory, count: int) -> Memory:
    """The oldest `count` references as part of the one line for all older ones."""
    gone, blocks = 0, []
    upto = memory.upto
    for block in memory.blocks:
        taken = min(count - gone, len(block))
        if taken:
            upto = block[taken - 1].ref
        if taken < len(block):
            blocks.append(block[taken:])
        gone += taken
    return replace(memory, folded=memory.folded + gone, upto=upto, blocks=tuple(blocks))


def _reference(item: Entry, policy: str, known: set[str]) -> Reference:
    """What is left of an entry; a literal is in one gist only, and `known` gets those of this one."""
    if policy == "FIFO":
        return Reference(item.ref, item.name, item.size, item.digest)
    summary = _summary(item) if policy == "SUMMARIZE" else ""
    words = [word for word in item.gist.split() if word not in known and word not in summary]
    known.update(words)
    return Reference(item.ref, item.name, item.size, item.digest, " ".join(words), summary)


def _summary(item: Entry) -> str:
    """The first and last lines of a text; of one that is a blob only the first are known."""
    found = [line.strip() for line in head(item.text).splitlines()]
    found = [f"  {line[:WIDTH]}..." if len(line) > WIDTH else f"  {line}" for line in found if line]
    if not isinstance(item.text, str):
        return "\n".join([*found[:EDGE], "  ..."])
    if len(found) <= 2 * EDGE + 1:
        return "\n".join(found)
    return "\n".join([*found[:EDGE], f"  ... {len(found) - 2 * EDGE} lines ...", *found[-EDGE:]])
