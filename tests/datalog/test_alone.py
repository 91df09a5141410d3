"""The language is usable by itself: its example runs, and it loads nothing that knows of agents."""

from __future__ import annotations

import doctest
import subprocess
import sys

from process_kit import WAIT_S
from spak import datalog


def test_the_example_of_the_package() -> None:
    done = doctest.testmod(datalog)
    assert done.attempted >= 4
    assert done.failed == 0


def test_importing_it_loads_no_other_part() -> None:
    code = "import sys, spak.datalog; print(*{n.split('.')[1] for n in sys.modules if n.startswith('spak.')})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert set(done.stdout.split()) <= {"datalog", "canon", "errors", "exclusive", "kept"}
