"""Text that may become a version: `clean(data)` gives it as str with plain newlines, or says why not.

Bytes and text are taken. The platform keeps LF only, as browsers' editors do: otherwise opening a file with
CRLF and saving it would change every line. `one_line` is for names and
notes, `as_number` for what stands in addresses, `json_object` for bodies of requests, `digest` is the content
hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from spak import canon
from spak.lang.limits import MAX_BYTES
from spakweb.ground.errors import Refused


def clean(data: str | bytes, most: int = MAX_BYTES) -> str:
    """Raises: Refused `web.text` for what is no text, `web.text_size` for too much of it."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    if len(raw) > most:
        raise Refused(
            "web.text_size",
            f"The text has {len(raw):,} bytes; a spec has at most {most:,}.",
            "Move tasks into files of their own and IMPORT them.",
            413,
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(
            "web.text",
            f"The text is not UTF-8: byte {error.start + 1} begins no character.",
            "Save the file as UTF-8 and try again.",
        ) from error
    if "\0" in text:
        raise Refused("web.text", "The text holds a NUL character.", "A spec is plain text: take it out.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def json_object(
    data: bytes, code: str = "web.request", loads: Callable[[bytes], Any] = orjson.loads
) -> dict[str, Any]:
    """The JSON object of a request. No member comes twice: readers would differ in which of the two counts.

    Raises: Refused with this code.
    """
    try:
        value = loads(data)
        json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused(code, "The request is not JSON in UTF-8.", str(error)[:100]) from error
    except _Twice as error:
        raise Refused(
            code, f"The request has {str(error)[:60]!r} twice.", "Send each member once."
        ) from error
    if not isinstance(value, dict):
        raise Refused(code, "The request is JSON, but no object.", "Send an object.")
    return value


class _Twice(Exception):
    pass


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise _Twice(name)
        found[name] = value
    return found


def pairs(text: str, code: str, hint: str) -> dict[str, str]:
    """Values by name, from lines `name = value`.

    Raises: Refused with this code and hint for any other line, and for a name that comes twice.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, sign, value = (part.strip() for part in line.partition("="))
        if not sign or not name or name in found:
            raise Refused(code, f"No input: {line[:60]!r}.", hint, 422)
        found[name] = value
    return found


def one_line(text: str, most: int) -> str:
    """What may stand as a name or a note: printable characters and single blanks, at most `most`. Signs that
    turn the direction of what follows are taken out with the other invisible ones."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:most]


def as_number(text: str) -> int | None:
    """A whole number as an address or a form has it, of at most nine digits; None for all else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def as_nanousd(text: str) -> int | None:
    """An amount in US dollars as a form has it, `0.25`, in billionths; 0 for nothing, None for all else."""
    whole, _, part = text.strip().partition(".")
    digits = whole + part
    if not digits and not text.strip():
        return 0
    if not (digits.isascii() and digits.isdigit()) or len(whole) > 6 or len(part) > 9:
        return None
    return int(f"{whole or 0}{part:0<9}")


def digest(text: str) -> str:
    """The SHA-256 of a text, in base64url."""
    return canon.digest(text.encode())


def plural(count: int, word: str) -> str:
    """`3|plural:"task"` is "3 tasks"."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
