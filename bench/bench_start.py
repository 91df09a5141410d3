"""How fast the command starts, and how long the first hour takes on a fresh clone.

`spak --version` and `spak check` of a small spec, beside bare Python: wall milliseconds, the least of several
starts (the others measure the neighbours). The floor is `python -c pass` in the same environment, taken in
turns with ours. Then `make run` on a fresh clone, with its packages, and the story of the first hour in a
browser (tests/e2e/runs/test_first_hour.py), once: seconds from the command to the end of the story, and the
megabytes of what it installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bench.sizes import QUICK, sized

STARTS = sized(15, 1)
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
    ] + ([] if QUICK else first_hour())


STORY = "tests/e2e/runs/test_first_hour.py::test_the_first_hour"


def first_hour(story: str = STORY) -> list[dict[str, Any]]:
    """The story on a fresh clone; no figures where there is no Chromium. Raises: RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = ["-q", "-n", "0", "-p", "no:cacheprovider", "--timeout", "900", "--fresh-clone"]
        words += ["--basetemp", f"{folder}/made", "--junitxml", str(report), story]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stdout[-4000:])
        found = {one.get("name"): one.get("value") for one in ElementTree.parse(report).iter("property")}
    names = {"seconds": ("make run on a fresh clone, to the end of the first hour", "s", "<= 600"),
             "setup_s": ("make run on a fresh clone, to its first page", "s", ""),
             "megabytes": ("packages of a user", "MB", "<= 350")}  # fmt: skip
    return [
        {
            "name": name,
            "ours": int(found[key] or 0) if key in found else None,
            "floor": None,
            "unit": unit,
            "aim": aim,
        }
        for key, (name, unit, aim) in names.items()
    ]


def _wall_ms(argv: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    return 1000 * (time.perf_counter() - started)
