"""Experiments: every case of a suite under every spec, n times, within a budget; and what they show."""

from spak.outer.experiments.model import Budget, Cell, Done, Plan, Used, cells, seed_of
from spak.outer.experiments.run import Experiment, More
from spak.outer.experiments.summary import Report, summarise

__all__ = [
    "Budget",
    "Cell",
    "Done",
    "Experiment",
    "More",
    "Plan",
    "Report",
    "Used",
    "cells",
    "seed_of",
    "summarise",
]
