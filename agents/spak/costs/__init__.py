"""What a run costs: prices of models (`prices`, in `prices.toml`), and sums of answers (`run_cost`)."""

from spak.costs.run_cost import NOTHING, Cost, cost_of

__all__ = ["NOTHING", "Cost", "cost_of"]
