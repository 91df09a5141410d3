"""Suites: cases with what counts as right, their splits, and the checks that run after a run has ended.

A suite is a folder. `Suite` reads and extends it, `sealed` runs a case's checks on what a run left, and
`judge` says whether a run passed. Nothing here starts a run.
"""

from spak.evolve.suites.book import SPLITS, Book
from spak.evolve.suites.folder import Problem, Suite
from spak.evolve.suites.judge import Verdict, judge
from spak.evolve.suites.model import Case, Check, Right

__all__ = ["SPLITS", "Book", "Case", "Check", "Problem", "Right", "Suite", "Verdict", "judge"]
