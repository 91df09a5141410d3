"""Values of files of secrets taken out of what a tool put out: CPU for 1 MiB that holds none, with 20 values
of 16 to 40 characters.

The floor looks for the shapes of known tokens alone, with no value. `escapes` are lines of JSON with three
escapes each, `dump` is `hexdump -C`.
"""

from __future__ import annotations

import random
import string
import time
from typing import Any

from spak.llm.redact import Redactor

SIZE, VALUES, TIMES = 1 << 20, 20, 7


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    chance = random.Random(1)
    signs = string.ascii_letters + string.digits + "+/-_$!&"
    sizes = [chance.randint(16, 40) for _ in range(VALUES)]
    known = Redactor().knowing(["".join(chance.choices(signs, k=size)) for size in sizes])
    shapes = Redactor()
    return [
        {
            "name": f"redaction: 1 MiB of {name}, {VALUES} values", "ours": _cpu_ms(known, text),
            "floor": _cpu_ms(shapes, text), "unit": "ms", "aim": "",
        }
        for name, text in (("a log", _log(chance)), ("escapes", _escapes(chance)), ("a dump", _dump(chance)))
    ]  # fmt: skip


def _cpu_ms(redactor: Redactor, text: str) -> float:
    """The least of several times; what is left has to be the text."""
    found = []
    for _ in range(TIMES):
        began = time.process_time()
        same = redactor.text(text) == text
        found.append((time.process_time() - began) * 1000)
        assert same
    return round(min(found), 1)


def _words(chance: random.Random) -> str:
    sizes = [chance.randint(2, 10) for _ in range(10)]
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=size)) for size in sizes)


def _log(chance: random.Random) -> str:
    lines = [_words(chance) for _ in range(100)]
    return "\n".join(chance.choice(lines) for _ in range(SIZE // 60))[:SIZE]


def _escapes(chance: random.Random) -> str:
    form = '{"path": "src\\/%d.py"} \\u00e9 100%%25 &amp; %s'
    lines = [form % (number, _words(chance)) for number in range(100)]
    return "\n".join(chance.choice(lines) for _ in range(SIZE // 90))[:SIZE]


def _dump(chance: random.Random) -> str:
    lines = []
    for at in range(0, SIZE // 4, 16):
        row = chance.randbytes(16)
        shown = "".join(chr(code) if 32 <= code < 127 else "." for code in row)
        lines.append(f"{at:08x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  |{shown}|")
    return "\n".join(lines)[:SIZE]
