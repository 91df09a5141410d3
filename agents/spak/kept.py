"""Answers that are kept for whoever asks the same again, bounded by the size of the questions.

`by_size(most)` is `functools.lru_cache` for functions of texts whose answers grow with them: a parsed policy
takes 50 to 200 bytes for each character of it. It counts characters of questions, not questions. What was
asked least recently goes first, and a question longer than `most` is answered and not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple, Unpack

from spak import exclusive

Asked = TypeVarTuple("Asked")
Answer = TypeVar("Answer")


def by_size(most: int) -> Callable[[Callable[[Unpack[Asked]], Answer]], Callable[[Unpack[Asked]], Answer]]:
    """Keep answers to `most` characters and bytes of arguments together. Two threads that ask the same at
    once may each compute it."""

    def keep(answer: Callable[[Unpack[Asked]], Answer]) -> Callable[[Unpack[Asked]], Answer]:
        kept: OrderedDict[tuple[*Asked], Answer] = OrderedDict()
        lock, size = exclusive.lock(), 0

        @wraps(answer)
        def known(*asked: *Asked) -> Answer:
            nonlocal size
            with lock:
                if asked in kept:
                    kept.move_to_end(asked)
                    return kept[asked]
            found = answer(*asked)
            more = _size(asked)
            with lock:
                if more <= most and asked not in kept:
                    kept[asked] = found
                    size += more
                    while size > most:
                        size -= _size(kept.popitem(last=False)[0])
            return found

        return known

    return keep


def _size(asked: object) -> int:
    """Characters and bytes of all texts in it."""
    if isinstance(asked, tuple):
        return sum(map(_size, asked))
    return len(asked) if isinstance(asked, str | bytes) else 0
