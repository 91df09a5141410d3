"""A sealed check that reads the work of a run."""

from __future__ import annotations

from spak.evolve.suites import Check

CHECK = Check(("python", "check.py"), output="held")
READS = "import thing\nassert thing.double(4) == 8\nprint('held')\n"
