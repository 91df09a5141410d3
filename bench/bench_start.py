"""How fast the command starts: `spak --version` and `spak check` of a small spec, beside bare Python.

Wall milliseconds, the least of several starts (the others measure the neighbours). The floor is
`python -c pass` in the same environment, taken in turns with ours.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STARTS = 15
ROOT = Path(__file__).resolve().parents[1]


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    spak = str(Path(sys.executable).with_name("spak"))
    example = str(ROOT / "specs" / "examples" / "hello.spak")
    commands = {
        "floor": [sys.executable, "-c", "pass"],
        "spak --version": [spak, "--version"],
        "spak check hello.spak": [spak, "check", example],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(STARTS):
        for name, argv in commands.items():
            best[name] = min(best[name], _wall_ms(argv))
    floor = best.pop("floor")
    aims = {"spak --version": "<= 300", "spak check hello.spak": ""}
    return [
        {
            "name": name,
            "ours": round(value, 1),
            "floor": round(floor, 1),
            "unit": "ms wall",
            "aim": aims[name],
        }
        for name, value in best.items()
    ]


def _wall_ms(argv: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    return 1000 * (time.perf_counter() - started)
