"""Signs of a text that nobody sees: control characters, marks that turn the direction of what follows, and
signs of no width. Who approves a text must see that they are there: it is not read in the order that it has,
or holds more than is read.

`SIGNS` finds them; a line feed, a tab and a carriage return are none. `written_out` gives a text for a
terminal, `in_json` a JSON text that says the same. Source: Unicode 15, Default_Ignorable_Code_Point and
Bidi_Control; CVE-2021-42574.
"""

from __future__ import annotations

import re

SIGNS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<=[!-~])[\u200c\u200d\ufe00-\ufe0f]|[\u200c\u200d](?=[!-~])"
)
"""Those that join letters or choose a picture are part of scripts and pictures; beside ASCII they hide in a
word."""


def written_out(text: str) -> str:
    """The text with each of them as an escape, a carriage return too: a terminal obeys it."""
    return SIGNS.sub(lambda found: _escape(found[0]), text).replace("\r", "\\x0d")


def in_json(text: str) -> str:
    """A JSON text that means the same, with each of them as an escape."""
    return SIGNS.sub(lambda found: _units(found[0]), text)


def _escape(sign: str) -> str:
    code = ord(sign)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _units(sign: str) -> str:
    """In UTF-16, as JSON has it."""
    data = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[at : at + 4]}" for at in range(0, len(data), 4))
