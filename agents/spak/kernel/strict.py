"""JSON from outside, read strictly: what two readers could read differently is refused with a code.

Takes text; gives the value, or Unreadable with a code, a place and a hint. Refused are a member named twice,
NaN and Infinity, a byte order mark, text before or after the value, lone surrogates, and what nests deeper or
is longer than a limit. It reads each character a bounded number of times, whatever the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from spak import canon

DEPTH = 24
"""Nesting that is read: more than any schema here asks for, far less than a stack holds."""

_SCAN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.S)  # a text without end is taken whole: linear
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unreadable(Exception):
    """Text that is not one JSON value; `code` is stable."""

    def __init__(self, code: str, expected: str, received: str, hint: str) -> None:
        super().__init__(code)
        self.code = code
        self.expected = expected
        self.received = received
        self.hint = hint


def loads(text: str, *, limit: int, depth: int = DEPTH, number: Callable[[str], Any] | None = None) -> Any:
    """The value of a text of at most `limit` characters.

    `number` makes the value of every number from its text; without it they are int and float.
    Raises: Unreadable.
    """
    if len(text) > limit:
        raise Unreadable("answer.too_long", f"at most {limit} characters", str(len(text)), "answer in less")
    if text.startswith("\ufeff"):
        raise Unreadable(
            "answer.bom", "JSON from the first character on", "a byte order mark", "leave it out"
        )
    _check_depth(text, depth)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_members,
            parse_constant=_constant,
            parse_int=number or _int,
            parse_float=number or _float,
        )
    except json.JSONDecodeError as error:
        raise _misread(text, error) from error
    if "\\u" in text or _SURROGATE.search(text):
        _check_characters(value)
    return value


def _check_depth(text: str, limit: int) -> None:
    level = 0
    for match in _SCAN.finditer(text):
        mark = match.group()[0]
        if mark == '"':
            continue
        level += 1 if mark in "[{" else -1
        if level > limit:
            raise Unreadable("answer.too_deep", f"at most {limit} levels", "more", "nest less")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Unreadable("answer.duplicate", "each member once", twice[:80], f"write {twice[:80]!r} once")
    return found


def _constant(name: str) -> Any:
    raise Unreadable("answer.number", "a finite number", name, "JSON has no NaN and no Infinity")


def _int(text: str) -> int:
    value = int(text) if len(text) <= 17 else canon.MAX_INT + 1
    if abs(value) > canon.MAX_INT:
        raise Unreadable("answer.number", "a whole number of at most 2^53-1", text[:40], "write it as a text")
    return value


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Unreadable("answer.number", "a finite number", text[:40], "write a smaller number")
    return value


def _check_characters(value: Any) -> None:
    """Half a surrogate pair is no character: no file and no record can hold it."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            stack += item
        elif isinstance(item, str) and _SURROGATE.search(item):
            raise Unreadable(
                "answer.characters", "whole characters", "half a surrogate pair", "write the character itself"
            )


def _misread(text: str, error: json.JSONDecodeError) -> Unreadable:
    if not text.strip():
        return Unreadable("answer.empty", "one JSON object", "nothing", "answer with one JSON object")
    if error.msg == "Extra data":
        rest = text[error.pos :].strip()[:40]
        return Unreadable("answer.trailing", "nothing after the object", rest, "answer with the object alone")
    if text.lstrip()[0] not in "{[":
        return Unreadable("answer.not_json", "one JSON object", text.strip()[:40], "begin with {")
    where = f"character {error.pos}: {text[error.pos : error.pos + 40]}"
    return Unreadable("answer.not_json", "one JSON object", where, error.msg)
