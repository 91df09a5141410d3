"""Values of files of secrets taken out of what a tool put out: CPU for 1 MiB that holds none, with 20 values
of 16 to 40 characters.

The floor looks for the shapes of known tokens alone, with no value.
"""

from __future__ import annotations

import random
import string
import time
from typing import Any

from spak.secrets.redact import Redactor

SIZE, VALUES, TIMES = 1 << 20, 20, 7


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    chance = random.Random(1)
    signs = string.ascii_letters + string.digits + "+/-_$!&"
    sizes = [chance.randint(16, 40) for _ in range(VALUES)]
    known = Redactor().knowing(["".join(chance.choices(signs, k=size)) for size in sizes])
    shapes = Redactor()
    text = _log(chance)
    return [
        {
            "name": f"redaction: 1 MiB of a log, {VALUES} values", "ours": _cpu_ms(known, text),
            "floor": _cpu_ms(shapes, text), "unit": "ms", "aim": "",
        }
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
