"""Findings in ledgers: what runs of a spec wasted or never used, and the edit that mends it."""

from spak.evolve.analyze.detect import analyze, transitions
from spak.evolve.analyze.model import CODES, Analysis, Finding
from spak.evolve.analyze.trace import Deed, Trace, Visit, prompts_of, read

__all__ = [
    "CODES",
    "Analysis",
    "Deed",
    "Finding",
    "Trace",
    "Visit",
    "analyze",
    "prompts_of",
    "read",
    "transitions",
]
