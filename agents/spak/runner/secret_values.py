"""The values that stand in a file of secrets, so that they can be kept out of records.

Takes the name and the bytes of such a file; gives texts. Read are lines `KEY=VALUE` and `key: value`, the
texts and long numbers of JSON and TOML, netrc's words, passwords within URLs, the lines of private
keys, and any line else as it is. It rather finds too much than too little; what is too short or too common
to be kept out of a text is the redactor's to leave (spak.llm.redact).
"""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

MAX_BYTES = 256 << 10
"""Bytes of a file that are looked at; a larger one is no list of passwords."""
LONG_NUMBER = 10**5
_DEPTH = 40

_PAIR = re.compile(r"""(?:export\s+|set\s+|-\s+)?["']?[\w.$/@:\[\]-]{1,200}?["']?\s*(?:=|:(?!//))\s*(.*)\Z""")
_NAMED = re.compile(r"[A-Za-z_][\w-]*=(.+)\Z")
_OLD = re.compile(r"[#;\s]*(?:export\s+)?[A-Za-z_][\w.-]*\s*=\s*(.+)\Z")
"""A pair that was commented out."""
_HEAD = re.compile(r"\[[\w .:/\"'-]{1,200}\]|[{}\[\](),;|>-]*|[\w.\"'-]+:\s*[|>]?-?")
_FLOW = re.compile(r"[{}\[\],]")
_QUOTED = re.compile(r"""["']([^"'\n]{6,})["']""")
_ODD = re.compile(r"(?<!\S)(?=\S*[0-9])(?=\S*[A-Za-z])[^\s=:,\"'{}\[\]]{8,}(?!\S)")
"""A word that is hardly one of a language."""
_COMMENT = re.compile(r"\s+[#;].*\Z")
_NETRC = re.compile(r"\b(?:login|user|password|passwd|account)[ \t]+(\S+)")
_IN_URL = re.compile(r"://([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{1,400})@")
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,60})-----(.*?)(?:-----END [A-Z0-9 ]{1,60}-----|\Z)", re.S)
_PUBLIC = re.compile(r"((X509|TRUSTED) )?CERTIFICATE|(NEW )?CERTIFICATE REQUEST|(RSA |SSH2 )?PUBLIC KEY|"
                     r"X509 CRL|DH PARAMETERS|EC PARAMETERS|PGP PUBLIC KEY BLOCK")  # fmt: skip


def is_public(data: bytes) -> bool:
    """Whether it holds certificates or public keys, and no private one: such a `.pem` is no secret."""
    text = data.decode("utf-8", "replace")
    kinds = [match[1] for match in _BLOCK.finditer(text)]
    return bool(kinds) and all(map(_PUBLIC.fullmatch, kinds)) and "PRIVATE KEY" not in text


def values(name: str, data: bytes) -> frozenset[str]:
    """What the file holds. Nothing for bytes that are no text, or more than MAX_BYTES."""
    if len(data) > MAX_BYTES or b"\0" in data[:8192]:
        return frozenset()
    text = data.decode("utf-8-sig", "replace")
    found = {*_structured(name, text), *_lines(_BLOCK.sub("\n", text)), *_NETRC.findall(text)}
    for block in _BLOCK.finditer(text):
        if not _PUBLIC.fullmatch(block[1]):
            found.update(line.strip() for line in block[2].splitlines() if len(line) > 15)
    for user, password in _IN_URL.findall(text):
        found.update((user, password, unquote(password)))
    return frozenset(text for text in found if text)


def _lines(text: str) -> Iterator[str]:
    """Values of lines: of a pair what is right of its sign, else the line."""
    quoted = ""
    for line in map(str.strip, text.splitlines()):
        if quoted:  # a value of several lines: each of them
            yield line.rstrip(quoted)
            quoted = "" if line.endswith(quoted) else quoted
        elif line[:1] in ("#", ";"):
            old = _OLD.match(line)
            yield from _plain(old[1]) if old is not None else ()
        elif line and not _HEAD.fullmatch(line):
            yield from _QUOTED.findall(line)
            yield from _ODD.findall(line)
            for piece in [line, *(_FLOW.split(line) if _FLOW.search(line) else ())]:
                value = _right(piece.strip().removeprefix("- ").rstrip(",").strip())
                yield from _plain(value)
                if value[:1] in ("'", '"') and value[:1] not in value[1:]:
                    quoted = value[0]


def _right(line: str) -> str:
    """What a line gives its name; the line where it names nothing."""
    pair = _PAIR.match(line)
    return pair[1] if pair is not None and pair[1].strip("=") else line


def _plain(value: str) -> Iterator[str]:
    """A value as it is written and as it is meant."""
    first = value[:1]
    if first in ("'", '"'):
        end = value.find(first, 1)
        inner = value[1:end] if end > 0 else value[1:]
        yield inner
        if "\\" in inner:
            yield _unescaped(inner)
        return
    bare = _COMMENT.sub("", value)
    yield bare
    named = _NAMED.match(bare)
    if named is not None:
        yield named[1]
    if ":" in bare and "://" not in bare:  # user:password, and .pgpass
        yield bare.rpartition(":")[2]


def _unescaped(text: str) -> str:
    try:
        return codecs.decode(text.encode("latin-1", "backslashreplace"), "unicode_escape")
    except UnicodeDecodeError:
        return text


def _structured(name: str, text: str) -> Iterator[str]:
    """The leaves of a document, where it is one."""
    low = name.lower()
    try:
        if low.endswith(".toml") or low.rpartition("/")[2] in ("credentials", "config"):
            yield from _leaves(tomllib.loads(text))
        elif text.lstrip()[:1] in ("{", "["):
            yield from _leaves(json.loads(text))
    except (ValueError, RecursionError):  # no such document: its lines count
        return


def _leaves(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEPTH:
        return
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth + 1)
    elif isinstance(value, str):
        yield value
        yield from (line.strip() for line in value.splitlines())
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= LONG_NUMBER:
        yield str(value)
