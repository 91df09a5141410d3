"""Figures of the house: how large and how entangled the sources are, printed by `make lint`.

Takes nothing; prints one figure a line. It judges nothing: tests/test_layout.py and tests/test_docstrings.py
hold the limits. Complexity is ruff's (C901), circles are groups of modules or
folders of one folder that reach each other by imports.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from test_docstrings import counted  # noqa: E402
from test_layout import MODULES, WEB_MODULES, circles  # noqa: E402

COMPLEX = 20
LARGEST = 6
"""Folders that are named where an aim is missed."""


def lines_of(pattern: str, below: str, aim: int) -> str:
    """Lines of the files that git tracks, without migrations; above the aim also which folders have most."""
    names = subprocess.run(
        ["git", "ls-files", "-z", pattern], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    folders: Counter[str] = Counter()
    for name in names:
        if name and "/migrations/" not in name and (ROOT / name).is_file():
            folder = "/".join(Path(name).relative_to(below).parts[:1])
            folders[folder] += (ROOT / name).read_bytes().count(b"\n")
    total = folders.total()
    if total <= aim:
        return f"{total:,}"
    most = ", ".join(f"{folder} {lines:,}" for folder, lines in folders.most_common(LARGEST))
    return f"{total:,}, the aim of {aim:,} is missed (ADR 0114): {most}"


def complex_functions() -> int:
    """Functions above COMPLEX in both source roots."""
    ruff = (sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901", "--exit-zero")
    limit = ("--config", f"lint.mccabe.max-complexity={COMPLEX}", "--output-format", "concise")
    done = subprocess.run(
        [*ruff, *limit, "agents", "platform"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sum(" C901 " in line for line in done.stdout.splitlines())


def main() -> None:
    """Print the figures."""
    modules = [path for path in (*MODULES, *WEB_MODULES) if path.name != "__init__.py"]
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in modules)
    del folders["agents/spak/cli"]  # one module for each verb
    largest, most = folders.most_common(1)[0]
    known = [has for _, _, has in counted()]
    print(f"lines of agents/spak              {lines_of('agents/**.py', 'agents/spak', 80_000)}")
    print(f"lines of platform, no migrations  {lines_of('platform/**.py', 'platform/spakweb', 40_000)}")
    print(f"lines of all files below tests    {lines_of('tests', 'tests', 110_000)}")
    print(f"functions above complexity {COMPLEX}     {complex_functions()}")
    print(f"modules in the largest folder     {most} ({largest}; cli aside)")
    for package in ("spak", "spakweb"):
        print(f"{f'circles of rooms in {package}':33} {len(circles(package))}")
    print(f"public names with a docstring     {100 * sum(known) / len(known):.1f} %")


if __name__ == "__main__":
    main()
