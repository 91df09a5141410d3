"""Figures of the house: how large and how entangled the sources are, printed by `make lint`.

Takes nothing; prints one figure a line. It judges nothing: tests/test_layout.py and tests/test_docstrings.py
hold the limits. Complexity is ruff's (C901), circles are groups of modules that reach each other by imports.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import grimp  # noqa: E402

from test_docstrings import counted  # noqa: E402

COMPLEX = 20


def modules() -> list[Path]:
    """The modules of the kernel's package."""
    return sorted((ROOT / "agents/spak").rglob("*.py"))


def complex_functions() -> int:
    """Functions above COMPLEX in both source roots."""
    ruff = (sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901", "--exit-zero")
    limit = ("--config", f"lint.mccabe.max-complexity={COMPLEX}", "--output-format", "concise")
    done = subprocess.run(
        [*ruff, *limit, "agents", "platform"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sum(" C901 " in line for line in done.stdout.splitlines())


def circles() -> int:
    """Groups of modules of `spak` in which each reaches the others."""
    graph = grimp.build_graph("spak", cache_dir=None)
    after = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    reached: dict[str, set[str]] = {}
    for name in after:
        queue, seen = [name], set[str]()
        while queue:
            queue += (new := after[queue.pop()] - seen)
            seen |= new
        reached[name] = seen
    return len({frozenset(b for b in seen if a in reached[b]) for a, seen in reached.items() if a in seen})


def main() -> None:
    """Print the figures."""
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in modules() if path.name != "__init__.py")
    del folders["agents/spak/cli"]  # one module for each verb
    largest, most = folders.most_common(1)[0]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules())
    known = [has for _, _, has in counted()]
    print(f"lines of agents/spak              {lines:,}")
    print(f"functions above complexity {COMPLEX}     {complex_functions()}")
    print(f"modules in the largest folder     {most} ({largest}; cli aside)")
    print(f"circles of imports in spak        {circles()}")
    print(f"public names with a docstring     {100 * sum(known) / len(known):.1f} %")


if __name__ == "__main__":
    main()
