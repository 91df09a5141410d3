"""Findings in ledgers: what runs of a spec wasted or never used, and the edit that mends it."""

from spak.outer.analyze.detect import analyze, transitions
from spak.outer.analyze.model import CODES, Analysis, Finding
from spak.outer.analyze.trace import Deed, Trace, Visit, prompts_of, read

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
