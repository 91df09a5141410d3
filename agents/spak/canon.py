"""Canonical bytes and hashes: RFC 8785 JSON (JCS) with SHA-256 in base64url.

Takes JSON values with finite doubles and ASCII member names; gives the one byte string that stands for
the value, on every machine and in every version. It does not redact, sort lists or coerce types.

orjson writes what orjson writes right (integers, most doubles, strings); a walk sends the rest through the
reference implementation: orjson alone writes `2.0`, `-0.0` and `1e+16` otherwise than RFC 8785 demands and
turns NaN into null in silence. `_plain` finds out first whether the walk is needed: mostly it is not.
"""

from __future__ import annotations

import hashlib
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any

import orjson
import rfc8785

from spak.errors import UserError

MAX_INT = 2**53 - 1
ZERO = "A" * 43

_ORDERED = orjson.OPT_SORT_KEYS
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_SIXTEEN = b"0" * 16
_SHA256 = hashlib.sha256()
"""Copied for each digest: that takes half as long as to make one."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def dumps(value: Any) -> bytes:
    """The canonical bytes of a JSON value.

    Raises: UserError `canon.value` for NaN, infinities, integers beyond 2^53-1, lone surrogates, member
    names that are not ASCII, and types that JSON does not have.
    """
    try:
        return orjson.dumps(value if _plain(value) else _walk(value), option=_ORDERED)
    except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
        raise UserError("canon.value", f"not a JSON value: {error}") from error
    except RecursionError as error:
        raise UserError("canon.value", "nested too deep for a record") from error


def loads(data: bytes | str) -> Any:
    """The value as `dumps` wrote it: integers beyond 2^53-1 come back as the doubles they were.

    Raises: UserError `canon.text` for anything that is not JSON.
    """
    try:
        raw = data if isinstance(data, bytes) else data.encode()
        value = orjson.loads(raw)
        return _narrow(value) if _may_hold_big(raw) else value
    except (orjson.JSONDecodeError, UnicodeEncodeError) as error:
        raise UserError("canon.text", f"not JSON: {error}") from error


def digest(data: bytes) -> str:
    """SHA-256 in base64url without padding: 43 characters."""
    hashing = _SHA256.copy()
    hashing.update(data)
    return b2a_base64(hashing.digest()).translate(_URL_SAFE)[:43].decode()


def content_hash(value: Any) -> str:
    """The hash of a value's canonical bytes."""
    return digest(dumps(value))


def _plain(value: Any) -> bool:
    """True when orjson alone writes the value as RFC 8785 demands; most records are, and this is quick."""
    kind = type(value)
    if kind is dict:
        try:
            if not "".join(value).isascii():
                return False
        except TypeError:  # a member name that is no text: the walk says which
            return False
        items = value.values()
    elif kind is list or kind is tuple:
        items = value
    else:
        return _plain_leaf(value)
    for item in items:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if not -MAX_INT <= item <= MAX_INT:
                return False
        elif kind is dict or kind is list or kind is tuple:
            if not _plain(item):
                return False
        elif not _plain_leaf(item):
            return False
    return True


def _plain_leaf(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(-MAX_INT <= value <= MAX_INT)
    if kind is float:
        return bool(1e-5 <= abs(value) <= MAX_INT and not value.is_integer())
    return kind is str or kind is bool or value is None


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
    if isinstance(value, Mapping):
        return _walk(dict(value))
    raise UserError("canon.value", f"not a JSON value: {kind.__name__}")


def _double(value: float) -> Any:
    if value.is_integer() and -MAX_INT <= value <= MAX_INT:
        return int(value)
    if 1e-5 <= abs(value) <= MAX_INT:
        return value
    if value != value or value in (float("inf"), float("-inf")):
        raise UserError("canon.value", f"not a finite number: {value}")
    return orjson.Fragment(rfc8785.dumps(value))


def _may_hold_big(data: bytes) -> bool:
    """True when a run of 16 digits may stand for an integer out of range; to say yes is never wrong."""
    return _SIXTEEN in data.translate(_DIGITS)


def _narrow(value: Any) -> Any:
    kind = type(value)
    if kind is int and not -MAX_INT <= value <= MAX_INT:
        return float(value)
    if kind is dict:
        return {name: _narrow(item) for name, item in value.items()}
    if kind is list:
        return [_narrow(item) for item in value]
    return value
