"""Pure statistics: intervals and tests for paired outcomes. No clock, no randomness."""

from spak.evolve.stats.betting import Betting, Within, mean_above, spent
from spak.evolve.stats.means import interval_of_mean
from spak.evolve.stats.proportions import exact, pass_power, wilson
from spak.evolve.stats.signs import needed, net_interval, sign_test

__all__ = [
    "Betting",
    "Within",
    "exact",
    "interval_of_mean",
    "mean_above",
    "needed",
    "net_interval",
    "pass_power",
    "sign_test",
    "spent",
    "wilson",
]
