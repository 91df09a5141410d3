"""Facts that hold for a time: `p(X)@[From, To]`, read as a predicate `p@` of two columns more.

A time is a number; a date is a way to write one, the nanoseconds since the beginning of 1970 in UTC. An end
that is open is the least or the greatest number. So an interval is two values like any others: rules, proofs
and the checker of proofs know nothing of it. Nothing here has a clock, and no two intervals are ever merged.
"""

from __future__ import annotations

import re
from datetime import date

MARK = "@"
"""What the name of a temporal predicate ends with."""

OPEN_START, OPEN_END = -(2**63), 2**63 - 1
COLUMNS = ("@from", "@to")

DATE = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?Z?)?"
_FIELDS = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?Z?)?")


def instant(text: str) -> int | None:
    """The number that a date stands for; None for a day or an hour that does not exist."""
    found = _FIELDS.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(field or 0) for field in found.groups()[:6])
    if hour > 23 or minute > 59 or second > 59:
        return None
    try:
        days = date(year, month, day).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    whole = ((days * 24 + hour) * 60 + minute) * 60 + second
    return whole * 10**9 + int((found[7] or "").ljust(9, "0"))


def is_temporal(pred: str) -> bool:
    """Whether a predicate's rows hold for an interval of time."""
    return pred.endswith(MARK)


def written(pred: str, args: list[str]) -> str:
    """The atom as the language writes it, its interval behind it."""
    if not is_temporal(pred) or len(args) < len(COLUMNS):
        return f"{pred}({', '.join(args)})"
    start, end = args[-2:]
    times = start if start == end != "_" else f"{start}, {end}"
    return f"{pred[: -len(MARK)]}({', '.join(args[:-2])})@[{times}]"


def named(pred: str, arity: int) -> str:
    """Name and columns, `p/1` or `p/1@`."""
    if is_temporal(pred):
        return f"{pred[: -len(MARK)]}/{arity - len(COLUMNS)}{MARK}"
    return f"{pred}/{arity}"
