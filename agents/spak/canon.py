"""Canonical bytes and hashes: RFC 8785 JSON (JCS) with SHA-256 in base64url.

Takes JSON values with finite doubles and ASCII member names; gives the one byte string that stands for
the value, on every machine and in every version. It does not redact, sort lists or coerce types.

The walk lets orjson write what orjson writes right (integers, most doubles, strings) and sends the rest
through the reference implementation: orjson alone writes `2.0`, `-0.0` and `1e+16` otherwise than RFC 8785
demands and turns NaN into null in silence.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from typing import Any

import orjson
import rfc8785

from spak.errors import UserError

MAX_INT = 2**53 - 1
ZERO = "A" * 43

_ORDERED = orjson.OPT_SORT_KEYS
_BIG = re.compile(rb"[0-9]{16}")


def dumps(value: Any) -> bytes:
    """The canonical bytes of a JSON value.

    Raises: UserError `canon.value` for NaN, infinities, integers beyond 2^53-1, lone surrogates, member
    names that are not ASCII, and types that JSON does not have.
    """
    try:
        return orjson.dumps(_walk(value), option=_ORDERED)
    except orjson.JSONEncodeError as error:
        raise UserError("canon.value", f"not a JSON value: {error}") from error
    except RecursionError as error:
        raise UserError("canon.value", "nested too deep for a record") from error


def loads(data: bytes | str) -> Any:
    """The value as `dumps` wrote it: integers beyond 2^53-1 come back as the doubles they were.

    Raises: UserError `canon.text` for anything that is not JSON.
    """
    try:
        return _narrow(orjson.loads(data)) if _may_hold_big(data) else orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UserError("canon.text", f"not JSON: {error}") from error


def digest(data: bytes) -> str:
    """SHA-256 in base64url without padding: 43 characters."""
    return urlsafe_b64encode(hashlib.sha256(data).digest())[:43].decode()


def content_hash(value: Any) -> str:
    """The hash of a value's canonical bytes."""
    return digest(dumps(value))


def _walk(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        if -MAX_INT <= value <= MAX_INT:
            return value
        raise UserError("canon.value", f"integer out of range: {value}", "use a string beyond 2^53-1")
    if kind is float:
        return _double(value)
    if kind is dict:
        for name in value:
            if type(name) is not str or not name.isascii():
                raise UserError("canon.value", f"member name is not ASCII text: {name!r}")
        return {name: _walk(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [_walk(item) for item in value]
    if isinstance(value, str):  # StrEnum
        return str(value)
    raise UserError("canon.value", f"not a JSON value: {kind.__name__}")


def _double(value: float) -> Any:
    if value.is_integer() and -MAX_INT <= value <= MAX_INT:
        return int(value)
    if 1e-5 <= abs(value) <= MAX_INT:
        return value
    if value != value or value in (float("inf"), float("-inf")):
        raise UserError("canon.value", f"not a finite number: {value}")
    return orjson.Fragment(rfc8785.dumps(value))


def _may_hold_big(data: bytes | str) -> bool:
    """True when a run of 16 digits may stand for an integer out of range; cheap and never wrong to say yes."""
    text = data if isinstance(data, bytes) else data.encode()
    return _BIG.search(text) is not None


def _narrow(value: Any) -> Any:
    kind = type(value)
    if kind is int and not -MAX_INT <= value <= MAX_INT:
        return float(value)
    if kind is dict:
        return {name: _narrow(item) for name, item in value.items()}
    if kind is list:
        return [_narrow(item) for item in value]
    return value
