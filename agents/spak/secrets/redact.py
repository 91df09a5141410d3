"""Secrets taken out of texts before anything is hashed, stored or shown.

Takes the secrets that are configured and knows the shapes of well-known tokens and PEM blocks; gives the same
text or JSON value with `[redacted:WHAT]` in their place. A secret is found unchanged, percent-encoded, with
the escapes of JSON, in hex and in base64; what a program makes of it in another way is not found. The same
value gives the same result each time, and the result again itself.
It fails closed: what cannot be walked, or still holds a configured secret afterwards, raises `llm.redaction`,
and the caller stores nothing. A password without a known shape is found if it is configured, or is in a
file of secrets whose values were given (`knowing`).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import re2

from spak.errors import RunError
from spak.secrets.contents import SHAPES
from spak.secrets.secret import Secret

_ROUNDS = 4
_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
"""What every encoder leaves unchanged."""
_LEFT_BY_ENCODERS = ("", "/", "!'()*", "!'()*/:@&=+$,;?#", "!'()*/:@&=+$,;?#[]%")
"""Signs that encoders of addresses leave: of a part, of a path, encodeURIComponent, encodeURI, of a whole."""
_ESCAPES = re.compile(r"%[0-9A-F]{2}")
_GROUP, _GROUP_SIZE = 100, 8000
"""Forms, and characters of them, that one automaton looks for without growing beyond its memory."""

MIN_SECRET = 6
"""Configured secrets shorter than this cannot be told from ordinary words and are refused."""

MOST_FOUND = 500
"""Values of files that are kept in mind; of more, the first."""
_COMMON_WORDS = (
    "admin@example.com changeme console critical default deflate developer development disabled enabled "
    "example example.com failure filesystem info@example.com letsencrypt localhost localhost:3000 "
    "localhost:5432 localhost:6379 localhost:8000 localhost:8080 memory mongodb password postgres "
    "postgresql production project rabbitmq redis:// secret secrets session sqlite3 staging starttls "
    "success testing username utf-8-sig warning 127.0.0.1 0.0.0.0 http://localhost https://example.com "
    "http://localhost:3000 http://localhost:8000 http://localhost:8080 us-east-1 us-west-2 eu-west-1 eu- "
    "central-1 application america/new_york europe/berlin europe/london "
)
_COMMON = frozenset(_COMMON_WORDS.split())
"""Values of configuration that keep nothing secret; without them no text of a project could be read."""

MOST_HELD = 16_384
"""Characters of a text as it comes that are held back at most."""

_SPACE = re.compile(r"[ \n\t\r]")
_LINE_END = re.compile(r"[\n\r]")
_PEM_END = re.compile(r"-----END [^-\n]{0,60}-----")
_HEAD = re.compile(r"authorization\s*:?\s*(?:bearer|basic)?\s*\Z", re.I)
"""What the shape `bearer` begins with."""

_BEGINNINGS = (
    "sk-", "AIza", "ya29.", "gh", "github_pat_", "glpat-", "AKIA", "ASIA", "xox", "rk_", "sk_", "npm_",
    "pypi-", "hf_", "eyJ",
)  # fmt: skip
_BEGUN = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, _BEGINNINGS))})|://")
"""What begins a shape that has no white space in it."""


def _part_of(word: str) -> str:
    pattern = ""
    for letter in reversed(word):
        pattern = f"{re.escape(letter)}(?:{pattern})?" if pattern else re.escape(letter)
    return pattern


_PARTS = re.compile(
    rf"(?:(?<![A-Za-z0-9_])(?:{'|'.join(_part_of(word) for word in (*_BEGINNINGS, 'authorization'))})"
    rf"|{_part_of('://')}|{_part_of('-----BEGIN ')})\Z",
    re.I,
)
_UNDER_WAY = re.compile(
    r"\bauthorization\s*(?::\s*(?:[a-z]{1,6}|(?:bearer|basic)\s+\S*)?)?\Z"
    r"|-----BEGIN [A-Z0-9 ]{0,60}-{0,4}\Z",
    re.I,
)
"""The end of a text that may go on as a shape with white space in it."""

_WORD = r"(?:\b|\x1b\[[0-9;]{0,40}m)"
"""Where a word begins: after a colour too, whose last letter would be one of the word's."""

_SHAPES = re2.compile(
    "|".join(
        f"(?P<{name}>{shape})"
        for name, shape in ((name, pattern.replace(r"\b", _WORD, 1)) for name, pattern in SHAPES.items())
    )
)


class Redactor:
    """Replaces secrets in texts and JSON values."""

    __slots__ = ("_forms", "_found", "_groups", "_plain", "_spaced")

    def __init__(self, secrets: Iterable[Secret] = (), found: Iterable[str] = ()) -> None:
        """`found` are values of files: what is too short or too common among them is left in texts.

        Raises: RunError `llm.redaction` for a secret that is too short to be found safely.
        """
        self._plain = tuple(
            sorted({secret.reveal() for secret in secrets}, key=lambda item: (-len(item), item))
        )
        if any(len(item) < MIN_SECRET for item in self._plain):
            raise RunError(
                "llm.redaction",
                f"a configured secret is shorter than {MIN_SECRET} characters",
                "what is this short cannot be kept out of records; use a longer one",
            )
        self._found = tuple(dict.fromkeys(filter(is_distinctive, found)))[:MOST_FOUND]
        forms = {form for item in (*self._plain, *self._found) for form in _forms(item)}
        self._forms = tuple(sorted(forms, key=lambda item: (-len(item), item)))
        self._groups = tuple(_groups(self._forms))
        self._spaced = max((len(form) for form in forms if _SPACE.search(form)), default=0)

    def __repr__(self) -> str:
        return f"Redactor({len(self._plain)} configured)"

    def knowing(self, found: Collection[str]) -> Redactor:
        """The same, which takes out these values of files in the place of those that it knew."""
        return Redactor(map(Secret, self._plain), found)

    def also(self, key: str) -> Redactor:
        """The same, which also takes out this key; not one that is too short to be a secret, as servers of
        one's own take."""
        if len(key) < MIN_SECRET:
            return self
        return Redactor(map(Secret, (*self._plain, key)), self._found)

    def text(self, text: str) -> str:
        """The text without secrets. Raises: RunError `llm.redaction`."""
        try:
            for _ in range(_ROUNDS):  # what is left on both sides of one may be another
                before = text
                known = self._known(text)
                if known is not None:
                    text = known.sub(_KNOWN, text)
                text = _SHAPES.sub(_stand_in, text)
                if text == before:
                    return text
            if self._known(text) is None:
                return text
        except (
            AttributeError,
            TypeError,
            ValueError,
            RecursionError,
            MemoryError,
            re.error,
            re2.error,
        ) as error:
            raise _failed(type(error).__name__) from None
        raise _failed("a secret is still there")

    def _known(self, text: str) -> re.Pattern[str] | None:
        """What finds the forms in the text; None where there are none, nearly always and fast."""
        if not self._groups:
            return None
        data = text.encode("utf-8", "surrogatepass")
        hit = (forms for finder, forms in self._groups if finder.search(data))
        there = tuple(form for forms in hit for form in forms if form in text)
        return _any_of(there) if there else None

    def holds(self, data: bytes) -> bool:
        """Whether bytes of any kind hold a known secret, in one of the ways that it may be written."""
        return any(finder.search(data) for finder, _ in self._groups)

    def value(self, value: Any) -> Any:
        """The JSON value with every text in it, member names too, without secrets.

        Raises: RunError `llm.redaction`, also for what is no JSON value.
        """
        try:
            return self._walk(value)
        except RecursionError:
            raise _failed("nested too deep") from None

    def stream(self, put: Callable[[str], None]) -> Callable[[str], None]:
        """A `put` for the pieces of a text as they come, which hands on whole words without secrets.

        What has no end yet is held back: the last word, the length of the longest configured secret that has
        spaces in it, an `Authorization:` and a PEM block. White space lets the last word go. An empty piece,
        which announces that the text begins again, forgets what is held; where it is too much, no more is
        handed on until then.
        """
        held, lost = "", False

        def take(piece: str) -> None:
            nonlocal held, lost
            if not piece:
                held, lost = "", False
                put("")
                return
            held += piece
            lost = lost or len(held) > MOST_HELD + len(piece)
            if lost:
                held = ""
            end = self._whole(held) if _SPACE.search(piece) else 0
            if end:
                put(self.text(held[:end]))
                held = held[end:]

        return take

    def whole(self, text: str) -> int:
        """How much of the beginning of a text has the same secrets in it, however the text goes on. It may be
        cut in the middle of a word."""
        size, spans = len(text), []
        ends = [size - _common(text, form) for form in self._forms]
        known = self._known(text)
        if known is not None:  # shapes are looked for in what is left
            spans = [match.span() for match in known.finditer(text)]
            text = known.sub(lambda match: "\0" * len(match[0]), text)
        for found in (
            _BEGUN.search(text, _after_space(text, size)),
            _PARTS.search(text, max(0, size - 16)),
            _UNDER_WAY.search(text),
        ):
            if found is not None:
                ends.append(found.start())
        shapes = [match.span() for match in _SHAPES.finditer(text)]
        ends += [start for start, stop in shapes if stop == size]
        spans += shapes
        end = min(ends, default=size)
        while starts := [start for start, stop in spans if start < end < stop]:
            end = min(starts)
        return end

    def rest(self, text: str, after: int = 0) -> int:
        """How much of the beginning of a text may be the rest of a secret, when what came before it is lost,
        but for `after` characters: up to the end of a line. Of a PEM block it knows nothing."""
        found = _LINE_END.search(text, max(0, self._spaced - after))
        return found.end() if found is not None else len(text)

    def _whole(self, held: str) -> int:
        """How much of the beginning of a text has the same secrets in it, however the text goes on."""
        spans = []
        known = self._known(held) if self._spaced else None
        if known is not None:
            spans = [match.span() for match in known.finditer(held)]
        end = _after_space(held, len(held) - self._spaced)
        while end:
            starts = [start for start, stop in spans if start < end < stop]
            open_at = held.rfind("-----BEGIN ", 0, end)
            if open_at >= 0 and not _PEM_END.search(held, open_at, end):
                starts.append(open_at)
            head = _HEAD.search(held, 0, end)
            if head is not None:
                starts.append(head.start())
            if not starts:
                break
            end = _after_space(held, min(starts))
        return end

    def _walk(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            found = {self.text(name): self._walk(item) for name, item in value.items()}
            if len(found) != len(value):
                raise _failed("two member names become one")
            return found
        if isinstance(value, (list, tuple)):
            return [self._walk(item) for item in value]
        raise _failed(f"{type(value).__name__} is not JSON value")


def _groups(forms: Sequence[str]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The forms in groups that one pass can look for, each with what finds any of them."""
    group: list[str] = []
    for at, form in enumerate(forms, 1):
        group.append(form)
        if len(group) == _GROUP or sum(map(len, group)) > _GROUP_SIZE or at == len(forms):
            pattern = "|".join(map(re2.escape, group)).encode("utf-8", "surrogatepass")
            yield re2.compile(pattern), tuple(group)
            group = []


@lru_cache(maxsize=64)
def _any_of(forms: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, forms)))


def is_distinctive(value: str) -> bool:
    """Whether a value of a file can be told from ordinary words, and from what takes its place."""
    return (
        len(value) >= MIN_SECRET
        and len(set(value)) > 2
        and value.casefold() not in _COMMON
        and not any(value in label for label in _LABELS)
    )


def _common(text: str, form: str) -> int:
    """How much of the end of a text is the beginning of a form, and not all of it."""
    last, most = text[-1:], min(len(form) - 1, len(text))
    return next((n for n in range(most, 0, -1) if form[n - 1] == last and text.endswith(form[:n])), 0)


def _after_space(text: str, limit: int) -> int:
    """The end of the last white space in the first `limit` characters."""
    return max(text.rfind(space, 0, max(limit, 0)) for space in " \n\t\r") + 1


def _stand_in(match: Any) -> str:
    kind = match.lastgroup
    return _label(str(kind))


def _label(kind: str) -> str:
    return f"://[redacted:{kind}]@" if kind == "url_password" else f"[redacted:{kind}]"


_KNOWN = _label("key")
_LABELS = (_KNOWN, *map(_label, SHAPES))


def _forms(secret: str) -> Iterable[str]:
    """How a secret may be written: unchanged, with its signs percent-encoded or escaped, in hex, base64."""
    data = secret.encode()
    yield secret
    if not _UNRESERVED.fullmatch(secret):
        yield from _escaped(secret)
    yield data.hex()
    yield data.hex().upper()
    if len(data) >= 8:
        for offset in range(3):
            # What of the base64 text depends only on the secret, wherever it starts in the encoded bytes.
            encoded = b64encode(bytes(offset) + data).decode().rstrip("=")
            whole = encoded[(0, 2, 3)[offset] : None if (offset + len(data)) % 3 == 0 else -1]
            yield whole
            yield whole.replace("+", "-").replace("/", "_")


def _escaped(secret: str) -> Iterator[str]:
    """What programs make of signs and of letters beyond ASCII in addresses and in JSON."""
    for safe in _LEFT_BY_ENCODERS:
        encoded = quote(secret, safe=safe)
        for form in (encoded, encoded.replace("%20", "+")):
            yield form
            yield _ESCAPES.sub(lambda match: match[0].lower(), form)
    for form in (json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(secret)[1:-1]):
        yield from (form, form.replace("/", "\\/"))


def _failed(reason: str) -> RunError:
    return RunError(
        "llm.redaction",
        f"secrets could not be taken out of a value: {reason}",
        "nothing of it was stored; `spak resume` continues the run",
    )
