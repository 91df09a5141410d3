"""The values in a file of secrets, so that they can be kept out of records.

Takes the name and the bytes of such a file; gives texts. Read are lines `KEY=VALUE` and `key: value`, the
texts and long numbers of JSON and TOML, netrc's words, passwords within URLs, the lines of private
keys, and any other line unchanged. It rather finds too much than too little, but for plain words under a name
that promises no secret (`is_ordinary`); what is too short is the redactor's to leave (spak.secrets.redact).
"""

from __future__ import annotations

import codecs
import json
import re
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from spak.secrets import which

MAX_BYTES = 256 << 10
"""Bytes of a file that are looked at; a larger one is no list of passwords."""
LONG_NUMBER = 10**5
PIECE = 500
"""Characters of a value that are looked for as one."""
_DEPTH = 40

_PAIR = re.compile(
    r"""(?:export\s+|set\s+|-\s+)?["']?([\w.$/@:\[\]-]{1,200}?)["']?\s*(?:=|:(?!//))\s*(.*)\Z"""
)
_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.+)\Z")
_OLD = re.compile(r"[#;\s]*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.+)\Z")
"""A pair that was commented out."""
_HEAD = re.compile(r"\[[\w .:/\"'-]{1,200}\]|[{}\[\](),;|>-]*|[\w.\"'-]+:\s*[|>]?-?")
_FLOW = re.compile(r"[{}\[\],]")
_QUOTED = re.compile(r"""["']([^"'\n]{6,})["']""")
_ODD = re.compile(r"(?<!\S)(?=\S*[0-9])(?=\S*[A-Za-z])[^\s=:,\"'{}\[\]]{8,}(?!\S)")
"""A word that is hardly one of a language."""
_TELLING = re.compile(
    r"pass|pwd|pw|secret|token|key|auth|cred|priv|salt|sign|pepper|dsn|conn|session|cookie|hash|pin|otp|cert|code|"
    r"seed|phrase|mnemonic|webhook|license|jwt|hmac|sas",
    re.I,
)
"""A name that may be a secret's."""
_ORDINARY = re.compile(r"(?:(?:[A-Z]?[a-z]{0,15}|[A-Z]{1,15}|v?[0-9]{1,5}|[0-9]+)(?:[-_ .,/:@+]+|\Z))+")
"""Words and numbers, a path, a host: nothing that letters and digits are mixed in."""
_COMMENT = re.compile(r"\s+[#;].*\Z")
_NETRC = re.compile(r"\b(login|user|password|passwd|account)[ \t]+(\S+)")
_IN_URL = re.compile(r"://([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{1,400})@")
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,60})-----(.*?)(?:-----END [A-Z0-9 ]{1,60}-----|\Z)", re.S)
_PUBLIC = re.compile(r"((X509|TRUSTED) )?CERTIFICATE|(NEW )?CERTIFICATE REQUEST|(RSA |SSH2 )?PUBLIC KEY|"
                     r"X509 CRL|DH PARAMETERS|EC PARAMETERS|PGP PUBLIC KEY BLOCK")  # fmt: skip


def is_public(path: str, data: bytes) -> bool:
    """Whether it is a `.pem`, or a copy of one, that holds certificates or public keys and no private one."""
    if not which.may_be_public(path.rpartition("/")[2]):
        return False
    text = data.decode("utf-8", "replace")
    kinds = [match[1] for match in _BLOCK.finditer(text)]
    return bool(kinds) and all(map(_PUBLIC.fullmatch, kinds)) and "PRIVATE KEY" not in text


def masked(path: str, data: bytes) -> frozenset[str]:
    """What a file that is masked holds. Of one that its contents alone make a file of secrets these are only
    the values that do: the rest may be in any text of the project."""
    found = frozenset() if which.secret(path) else which.finds(path, data)
    return _cut(found) or values(path, data)


def values(name: str, data: bytes) -> frozenset[str]:
    """What the file holds. Nothing for bytes that are no text, or more than MAX_BYTES."""
    if len(data) > MAX_BYTES or b"\0" in data[:8192]:
        return frozenset()
    text = data.decode("utf-8-sig", "replace")
    document = _document(name, text)
    pairs = list(_leaves(document) if document is not None else _lines(_BLOCK.sub("\n", text)))
    pairs += _NETRC.findall(text)
    for block in _BLOCK.finditer(text):
        if not _PUBLIC.fullmatch(block[1]):
            pairs += [("", line.strip()) for line in block[2].splitlines() if len(line.strip()) > 5]
    for user, password in _IN_URL.findall(text):
        pairs += [("user", user), ("", password), ("", unquote(password))]
    found = (value for key, value in pairs if value and not is_ordinary(key, value))
    return _cut(found)


def _cut(found: Iterable[str]) -> frozenset[str]:
    """In pieces; half of a surrogate pair, which no text has, as files write it."""
    texts = (value.encode("utf-8", "backslashreplace").decode() for value in found)
    return frozenset(text[at : at + PIECE] for text in texts for at in range(0, len(text), PIECE))


def is_ordinary(key: str, value: str) -> bool:
    """Whether a value is words, numbers or a place under a name that promises no secret: `APP_NAME=shop`.

    Texts of a project are full of such; taken out of what a model writes they would break its code.
    """
    return bool(key) and not _TELLING.search(key) and _ORDINARY.fullmatch(value) is not None


Pair = tuple[str, str]
"""The name of a value, empty where it has none, and the value."""


def _lines(text: str) -> Iterator[Pair]:
    """Values of lines: of a pair what is right of its sign, else the line."""
    quoted = key = ""
    for line in map(str.strip, text.splitlines()):
        if quoted:  # a value of several lines: each of them
            yield key, line.rstrip(quoted)
            quoted = "" if line.endswith(quoted) else quoted
        elif line[:1] in ("#", ";"):
            old = _OLD.match(line)
            yield from _plain(*old.groups()) if old is not None else ()
        elif line and not _HEAD.fullmatch(line):
            yield from (("", word) for word in _ODD.findall(line))
            for piece in [line, *(_FLOW.split(line) if _FLOW.search(line) else ())]:
                key, value = _split(piece.strip().removeprefix("- ").rstrip(",").strip())
                if not key:
                    yield from (("", word) for word in _QUOTED.findall(value))
                yield from _plain(key, value)
                if value[:1] in ("'", '"') and value[:1] not in value[1:]:
                    quoted = value[0]


def _split(line: str) -> Pair:
    """The name and what a line gives it; no name and the line where it names nothing."""
    pair = _PAIR.match(line)
    return (pair[1], pair[2]) if pair is not None and pair[2].strip("=") else ("", line)


def _plain(key: str, value: str) -> Iterator[Pair]:
    """A value as written and as parsed."""
    first = value[:1]
    if first in ("'", '"'):
        end = value.find(first, 1)
        inner = value[1:end] if end > 0 else value[1:]
        yield key, inner
        if "\\" in inner:
            yield key, _unescaped(inner)
        return
    bare = _COMMENT.sub("", value)
    yield key, bare
    named = _NAMED.match(bare)
    if named is not None:
        yield named[1], named[2]
    if ":" in bare and "://" not in bare:  # user:password, and .pgpass
        yield "", bare.rpartition(":")[2]


def _unescaped(text: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):  # of an escape that is none, which stays as it is
            return codecs.decode(text.encode("latin-1", "backslashreplace"), "unicode_escape")
    except UnicodeDecodeError:
        return text


def _document(name: str, text: str) -> Any:
    """The values of JSON or TOML; None for other texts, whose lines count."""
    low = name.lower()
    try:
        if low.endswith(".toml") or low.rpartition("/")[2] in ("credentials", "config"):
            return tomllib.loads(text)
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[Pair]:
    if depth > _DEPTH:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{key}.{name}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key, depth + 1)
    elif isinstance(value, str):
        yield key, value
        yield from ((key, line.strip()) for line in value.splitlines())
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= LONG_NUMBER:
        yield key, str(value)
