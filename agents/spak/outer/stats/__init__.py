"""Pure statistics: intervals and tests for paired outcomes. No clock, no randomness but a given seed."""

from spak.outer.stats.betting import Betting, Within, mean_above, spent
from spak.outer.stats.bootstrap import interval_of_mean
from spak.outer.stats.proportions import pass_power, wilson
from spak.outer.stats.signs import needed, sign_test

__all__ = [
    "Betting",
    "Within",
    "interval_of_mean",
    "mean_above",
    "needed",
    "pass_power",
    "sign_test",
    "spent",
    "wilson",
]
