"""Snapshots: the kernel's state after a number of records, as bytes, so that taking up a run need not replay
them.

    pack(rules, count, head, state, beside) -> bytes        unpack(the same bytes) -> state, beside

A snapshot is a cache. It names the records that it was made from (their number and the hash of the last), the
run's rules, this version of SPAK and the layout of the state; `unpack` refuses bytes that differ in any of
these or that do not match their own hash, and the caller replays from the first record. It proves nothing:
whoever checks a ledger replays it and compares (`equal`). `beside` is JSON of whoever holds the run.

The fields come from the dataclasses themselves, so none can be left out; a change of them is another layout.
Values keep their types and the order of their members, which JSON alone would lose: an array begins with what
it is (`t` tuple, `l` list, `m` mapping whose members are not in order, `f` double, `i` large integer, or the
name of a class), an object is a mapping whose members are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from spak import __version__, canon
from spak.errors import UserError
from spak.kernel.rules import Rules
from spak.kernel.state import State

FORMAT = 2
"""Version of the bytes; raise it when an older reader would misread them."""

_HASH = 43


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The packed state after `count` records, the last of which has the hash `head`."""

    count: int
    head: str
    data: bytes


class Unusable(Exception):
    """A snapshot that does not belong to this run, these records or this kernel; its text says why."""


class Outdated(Unusable):
    """A snapshot that another version made, which is no damage."""


def pack(rules: Rules, count: int, head: str, state: State, history: Mapping[str, Any]) -> bytes:
    """The state after `count` records, the last of which has the hash `head`.

    Raises: UserError `canon.value` when something in it is no value of a state.
    """
    text = canon.dumps(
        {
            "beside": encode(history),
            "count": count,
            "format": FORMAT,
            "head": head,
            "layout": layout(),
            "rules": rules.opening,
            "state": encode(state),
        }
    )
    return canon.digest(text).encode() + b"\n" + text


def unpack(data: bytes, rules: Rules, count: int, head: str) -> tuple[State, Mapping[str, Any]]:
    """The state and what was kept with it. Raises: Unusable."""
    digest, text = data[:_HASH], data[_HASH + 1 :]
    if canon.digest(text).encode() != digest:
        raise Unusable("it is damaged")
    try:
        found = canon.loads(text)
        if found["format"] != FORMAT or found["layout"] != layout():
            raise Outdated("another version of spak made it")
        if found["rules"] != rules.opening:
            raise Unusable("it was made under other rules")
        if (found["count"], found["head"]) != (count, head):
            raise Unusable("it is of other records")
        state, history = decode(found["state"]), decode(found["beside"])
    except (KeyError, TypeError, ValueError, IndexError, UserError) as error:
        raise Unusable(f"it cannot be read ({type(error).__name__})") from error
    if not isinstance(state, State) or not isinstance(history, dict):
        raise Unusable("it holds no state")
    return state, history


def equal(one: State, other: State) -> bool:
    """Whether two states are the same in every field, type and order."""
    return canon.dumps(encode(one)) == canon.dumps(encode(other))


def encode(value: Any) -> Any:
    """A value of a state as canonical JSON can hold it. Raises: UserError `canon.value` for any other."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if -canon.MAX_INT <= value <= canon.MAX_INT else ["i", str(value)]
    if kind is float:
        return ["f", repr(value)]
    if kind is tuple:
        return ["t", *map(encode, value)]
    if kind is list:
        return ["l", *map(encode, value)]
    if kind in _fields():
        return [kind.__name__, *(encode(getattr(value, name)) for name in _fields()[kind])]
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    if isinstance(value, str):  # StrEnum
        return str(value)
    raise UserError("canon.value", f"no value of a state: {kind.__name__}")


def decode(value: Any) -> Any:
    """What `encode` was given; mappings come back as dicts. Raises: KeyError, TypeError, ValueError."""
    if type(value) is dict:
        return {name: decode(item) for name, item in value.items()}
    if type(value) is not list:
        return value
    kind, *items = value
    match kind:
        case "t":
            return tuple(map(decode, items))
        case "l":
            return list(map(decode, items))
        case "m":
            return {decode(name): decode(item) for name, item in zip(*[iter(items)] * 2, strict=True)}
        case "f":
            return float(items[0])
        case "i":
            return int(items[0])
    made = _classes()[kind]
    if len(items) != len(_fields()[made]):
        raise ValueError(kind)
    return made(**dict(zip(_fields()[made], map(decode, items), strict=True)))


@cache
def layout() -> str:
    """The hash of this version and of the fields of everything that a state is made of."""
    return canon.content_hash(
        [__version__, [[cls.__name__, list(names)] for cls, names in _fields().items()]]
    )


def _encode_mapping(value: Mapping[Any, Any]) -> Any:
    names = list(value)
    if all(type(name) is str and name.isascii() for name in names) and names == sorted(names):
        return {name: encode(item) for name, item in value.items()}
    return ["m", *(encode(part) for pair in value.items() for part in pair)]


@cache
def _fields() -> Mapping[type, tuple[str, ...]]:
    """The classes that a state is made of, each with the names of its fields."""
    found: dict[type, tuple[str, ...]] = {}
    left: list[Any] = [State]
    while left:
        hint = left.pop()
        left += get_args(hint)
        names = _names(hint)
        if names and hint not in found:
            found[hint] = names
            left += get_type_hints(hint).values()
    return dict(sorted(found.items(), key=lambda item: item[0].__name__))


@cache
def _classes() -> Mapping[str, type]:
    return {cls.__name__: cls for cls in _fields()}


def _names(hint: Any) -> tuple[str, ...]:
    """The fields of a dataclass or a named tuple; none of anything else."""
    if not isinstance(hint, type):
        return ()
    return tuple(getattr(hint, "__dataclass_fields__", ())) or tuple(getattr(hint, "_fields", ()))
