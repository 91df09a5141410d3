"""Ways in which a program may print a value. It needs nothing but Python, so that a test may copy it into a
workspace and run it there: `python3 disguises_kit.py FILE` prints what is in the file, backwards, in each."""

from __future__ import annotations

import base64
import codecs
import html
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

How = Callable[[bytes], str]


def text(how: Callable[[str], str]) -> How:
    return lambda data: how(data.decode())


def rows(data: bytes, size: int = 16) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def shown(data: bytes) -> str:
    return "".join(chr(code) if 32 <= code < 127 else "." for code in data)


def words(kind: str, form: str, data: bytes) -> str:
    size = struct.calcsize(kind)
    padded = data.ljust(-(-len(data) // size) * size, b"\0")
    return " ".join(form.format(word) for (word,) in struct.iter_unpack(f"<{kind}", padded))


def in_rows(form: str, row: Callable[[bytes], str]) -> How:
    return lambda data: "\n".join(
        form.format(at=16 * number, row=row(part), text=shown(part)) for number, part in enumerate(rows(data))
    )


def hexed(data: bytes) -> str:
    return " ".join(map("{:02x}".format, data))


def escaped(form: str) -> How:
    return lambda data: "".join(map(form.format, data))


FORMS: dict[str, How] = {
    "plain": text(str),
    "backwards": text(lambda value: value[::-1]),
    "each line backwards": text(lambda value: "\n".join(line[::-1] for line in value.splitlines())),
    "rot13": text(lambda value: codecs.encode(value, "rot13")),
    "capitals": text(str.upper),
    "small letters": text(str.lower),
    "other case": text(str.swapcase),
    "backwards in capitals": text(lambda value: value[::-1].upper()),
    "folded": text(lambda value: "\n".join(value[at : at + 7] for at in range(0, len(value), 7))),
    "hex": bytes.hex,
    "HEX": lambda data: data.hex().upper(),
    "hex with colons": lambda data: data.hex(":"),
    "hex with dashes": lambda data: data.hex("-").upper(),
    "xxd -p": lambda data: "\n".join(part.hex() for part in rows(data, 30)),
    "xxd": in_rows("{at:08x}: {row:<39}  {text}", lambda part: part.hex(" ", -2)),
    "xxd -u -g1": in_rows("{at:08x}: {row:<47}  {text}", lambda part: part.hex(" ").upper()),
    "od -An -tx1": lambda data: "".join(f" {hexed(part)}\n" for part in rows(data)),
    "od -tx1z": in_rows("{at:07o} {row:<47}  >{text}<", hexed),
    "od -x": in_rows("{at:07o} {row}", lambda part: words("H", "{:04x}", part)),
    "od -tx4": in_rows("{at:07o} {row}", lambda part: words("I", "{:08x}", part)),
    "od": in_rows("{at:07o} {row}", lambda part: words("H", "{:06o}", part)),
    "od -b": in_rows("{at:07o} {row}", lambda part: " ".join(map("{:03o}".format, part))),
    "od -An -tu1": lambda data: "\n".join("".join(map("{:4d}".format, part)) for part in rows(data)),
    "hexdump": in_rows("{at:07x} {row}", lambda part: words("H", "{:04x}", part)),
    "hexdump -C": in_rows(
        "{at:08x}  {row:<49} |{text}|", lambda part: f"{hexed(part[:8])}  {hexed(part[8:])}"
    ),
    "a list of numbers": lambda data: str(list(data)),
    "an array of C": lambda data: ", ".join(map("0x{:02x}".format, data)),
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64 in lines": lambda data: base64.encodebytes(data).decode(),
    "base64 for addresses": lambda data: base64.urlsafe_b64encode(data).decode(),
    "base32": lambda data: base64.b32encode(data).decode(),
    "base32 in small letters": lambda data: base64.b32encode(data).decode().lower(),
    "percent": text(lambda value: quote(value, safe="")),
    "percent, form": text(quote_plus),
    "percent, all": escaped("%{:02x}"),
    "json": text(json.dumps),
    "json within json": text(lambda value: json.dumps(json.dumps(value))),
    "unicode, all": escaped("\\u{:04x}"),
    "unicode in braces": escaped("\\u{{{:x}}}"),
    "unicode, eight": escaped("\\U{:08X}"),
    "backslash x": escaped("\\x{:02x}"),
    "backslash and octal": escaped("\\{:03o}"),
    "repr": text(repr),
    "html": text(html.escape),
    "html, all": escaped("&#{};"),
    "html in hex, all": escaped("&#x{:X};"),
    "in colour": text(lambda value: f"{value[:6]}\x1b[01;31m\x1b[K{value[6:9]}\x1b[m\x1b[K{value[9:]}"),
    "UTF-16": text(lambda value: "".join(f"{letter}\0" for letter in value)),
}
"""What a program may make of what it prints. Each is given a value with other text around it."""

APART: dict[str, How] = {
    "sed 's/./& /g'": text(" ".join),
    "letter by letter": text("\n".join),
    "with dashes": text("-".join),
    "od -c": in_rows("{at:07o} {row}", lambda part: "".join(f"{letter:>4}" for letter in shown(part))),
}
"""What is found of values with both letters and digits, twelve of them."""


def core(found: str) -> str:
    """Its letters and digits."""
    return "".join(filter(str.isalnum, found)).lower()


if __name__ == "__main__":
    value = Path(sys.argv[1]).read_text()[::-1]
    for name, how in (FORMS | APART).items():
        print(f"{name}:\n{how(value.encode())}")
