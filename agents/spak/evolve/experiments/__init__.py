"""Experiments: every case of a suite under every spec, n times, within a budget; and what they show."""

from spak.evolve.experiments.model import Budget, Cell, Done, Plan, Used, cells, seed_of
from spak.evolve.experiments.run import Experiment, More
from spak.evolve.experiments.summary import Report, summarise

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
