"""Whether a text holds a secret, by what it says: the shapes of tokens and keys that are known, and literals
under a name that promises one (`db_password: ...`).

Takes the bytes at the beginning of a file; gives the values found, none for what is no text. It looks for
what is hardly anything else: a word, a number, a reference (`${DB_PASSWORD}`) and a placeholder (`changeme`)
are no secrets, nor are names of kernels with their sizes (`m16n8k16`), whatever their name. All patterns are
matched in linear time.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from spak.secrets.lists import LISTS

MAX_BYTES = 64 << 10
"""Bytes at the beginning of a file that are looked at."""

LEAST, MOST = 8, 500
"""Characters of a value under a name."""

SHAPES: Mapping[str, str] = LISTS.sections["shapes"]
"""Kind to pattern, for an engine that is linear in the text."""

_ALONE = "|".join(
    (
        LISTS.pattern("contents", "shapes").pattern,
        *(SHAPES[name] for name in SHAPES if name not in ("pem", "bearer", "url_password")),
    )
)
_TELLING = (
    r"pass(?:word|wd|phrase|code)|requirepass|pwd|secret(?:[_.-]?(?:access)?[_.-]?key(?:[_.-]?base)?)?|token"
    r"|credentials?|(?:api|access|account|private|auth|encryption|signing|master|shared|webhook)[_.-]?key|_auth"
)
_BEFORE_A_SPACE = _TELLING.replace("|token", "")
"""Names that a value may follow without a sign, as in `requirepass hunter22x`; not so in `token m16n8k16`."""
_OF_A_LIST = (
    r"(?i:\b(?:next|prev\w*|page|continuation|sync|start|stop|end|first|last|pad|[bceu]os|unk|mask|sep|cls|special)"
    r"[_.-]?(?:page[_.-]?)?token[\"']?\s*[:=]\s*[\"']?[^\s\"',;]*)"
)
"""Where the next part of a list begins, or a sign of a model's vocabulary, which are no secrets."""
_PASS = r"(?:\bpass|[_.-]pass|_PASS|[a-z]Pass)[\"']?\s*(?:=>|:=|[:=>])|\bPASS\s*="
"""A line of results has the word as well: `PASS test_f32x4`, `PASS: test_f32x4`."""
_NAMED = (
    rf"(?:(?i:{_TELLING})[\"']?\s*(?:=>|:=|[:=>])|(?i:{_BEFORE_A_SPACE})[\t ]|{_PASS})\s*"
    r"(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s\"',;<>(){}\[\]]+))"
)
_BARE = 2
"""Which of the groups of `_NAMED` is a value without quotes."""
_IN_ADDRESS = r"://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@"
_BEARER = r"(?i:\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]+)"
_NO_VALUE = (
    r"(?i)[$%@*!&]|\d+:|.*(?:[^!-~]|[{}()|`\\]|\.\.\.|\*\*\*|xxx|example|change.?me|your|placeholder|dummy|sample"
    r"|\bfake|todo|insert|replace|redacted|://)|[./~]|[\w.-]+(?:/[\w.-]+)*\.[a-z]{2,4}\z|(?:0x)?\d+\w?\z"
)
_SIZES = r"(?:[mM]\d{1,3}[nN]\d{1,3}[kK]\d{1,3}|(?:bf|tf|fp?|u?int|[iu])?\d{1,4}(?:x\d{1,4}){1,3})"
_PLAIN = r"(?:[a-z]{1,16}|[A-Z][a-z]{1,15}|[A-Z]{1,16})"
_OF_KERNELS = rf"(?:{_PLAIN}[-_.])*{_SIZES}(?:[-_.](?:{_PLAIN}|{_SIZES}))*\z"
"""Nothing but words and sizes of kernels, as in `loop-unroll-4x2`, `m16n8k16` and `vectorize_f32x4`."""


@cache
def _patterns() -> tuple[Any, Any, Any]:
    import re2  # takes a while to load

    found = re2.compile(f"{_OF_A_LIST}|({_ALONE})|{_NAMED}|{_IN_ADDRESS}|{_BEARER}".encode())
    return found, re2.compile(_NO_VALUE), re2.compile(_OF_KERNELS)


def found_in(data: bytes, telling: bool = False, *, code: bool = False) -> frozenset[str]:
    """The secrets in the beginning of a file; `telling`: its name promises one, so that any word which
    letters and digits are mixed in is held to be it; `code`: a value under a name is in quotes."""
    data = _unpacked(data[:MAX_BYTES])
    if b"\0" in data[:8192]:
        return frozenset()
    pattern, no_value, of_kernels = _patterns()
    found = set()
    for match in pattern.finditer(data):
        alone, *named = match.groups()
        if code and named[_BARE]:
            continue
        value = (alone or next(filter(None, named), b"")).decode("utf-8", "replace")
        whole = alone or (len(value) > 56 and "PRIVATE KEY-----" in value)  # a block within quotes
        none = no_value.match(value) or of_kernels.match(value) or not _is_literal(value)
        if "EXAMPLE" in value if whole else none:
            continue
        found.add(value)
    if any(map(_ID_OF_AWS.fullmatch, found)):
        found |= {key.decode() for key in _KEY_OF_AWS.findall(data)}
    if telling and not found:
        texts = (word.decode() for word in _WORD.findall(data))
        found = {text for text in texts if _is_literal(text, 3) and not no_value.match(text)}
    return frozenset(found)


def _unpacked(data: bytes) -> bytes:
    """The beginning of what is packed (gzip, bzip2, xz); else the bytes unchanged."""
    try:
        if data[:2] == b"\x1f\x8b":
            return zlib.decompressobj(31).decompress(data, MAX_BYTES)
        if data[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(data, MAX_BYTES)
        if data[:6] == b"\xfd7zXZ\0":
            return lzma.LZMADecompressor(memlimit=1 << 26).decompress(data, MAX_BYTES)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        pass
    return data


_ID_OF_AWS = re.compile(SHAPES["aws"])
_KEY_OF_AWS = re.compile(
    rb"(?<![\w/+=-])(?=[^a-z]{0,39}[a-z])(?=[^A-Z]{0,39}[A-Z])(?=[^0-9]{0,39}[0-9])[A-Za-z0-9/+]{40}(?![\w/+=-])"
)
"""What goes with an id of AWS: forty letters, digits, strokes and pluses; a commit's hash has no capitals."""
_WORD = re.compile(rb"[A-Za-z0-9+/_.!@#$%^&*-]{8,500}")


def _is_literal(value: str, least: int = 2) -> bool:
    """Whether letters and digits are mixed as in no word: `hunter22x`, and not `postgres-13`; or it is one
    long word."""
    kinds = ["a" if sign.isalpha() else "0" if sign.isdigit() else sign for sign in value]
    ends = set(" -_.,/:=")
    changes = sum(one != other and ends.isdisjoint((one, other)) for one, other in pairwise(kinds))
    return changes >= least or (len(value) >= 24 and value.isalnum())
