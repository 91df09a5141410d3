"""The strategies of Kernel Tuner on a space that was measured: evaluations until a point is good enough.

    .venv-strategies/bin/python bench/strategies_theirs.py < JOB > ANSWER

Runs in an environment of its own (requirements-strategies.lock) and imports nothing of ours. JOB is JSON: the
parameters with their values, the valid points with a time or null, the time that is good enough, the budget,
the seeds and the names of strategies. Each strategy is called as `tune_kernel` calls it, with its defaults
and `max_fevals` as the budget; what it asks for is looked up. ANSWER is one line of JSON for each strategy
and seed: evaluations of distinct points until a good one, or null within the budget.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
import warnings
from typing import Any

import numpy as np
from constraint import FunctionConstraint
from kernel_tuner import util
from kernel_tuner.interface import Options, strategy_map
from kernel_tuner.runners.runner import Runner
from kernel_tuner.searchspace import Searchspace

NOT_RUN = {"brute_force": "no search", "nsga2": "for several objectives", "nsga3": "for several objectives"}


class Good(util.StopCriterionReached):
    """A good enough point was evaluated."""


class Looked(Runner):
    """Gives the recorded time of a point instead of compiling and timing it."""

    def __init__(self, times: dict[tuple[Any, ...], float | None], good: float) -> None:
        super().__init__()
        self.dev = Options(max_threads=1 << 30)
        self.times, self.good = times, good
        self.seen: dict[tuple[Any, ...], None] = {}
        self.reached = 0

    def get_device_info(self) -> Any:
        return self.dev

    def get_environment(self, tuning_options: Any) -> dict[str, Any]:
        return {}

    def run(self, parameter_space: Any, tuning_options: Any) -> list[Any]:
        results: list[Any] = []
        for element in parameter_space:
            if tuning_options.budget.is_done():
                results.append(None)
                continue
            point = tuple(item.item() if hasattr(item, "item") else item for item in element)
            if point not in self.seen:
                self.seen[point] = None
                tuning_options.budget.add_evaluations(1)
            found = self.times[point]
            if found is not None and found <= self.good and not self.reached:
                self.reached = len(self.seen)
                tuning_options.budget.max_fevals = len(self.seen)  # nothing more is asked
            result = dict(zip(tuning_options.tune_params, point, strict=True))
            result["time"] = found if found is not None else util.RuntimeFailedConfig()
            if found is None:
                result["__error__"] = util.RuntimeFailedConfig()
            results.append(result)
        return results


def search(
    name: str, seed: int, space: Searchspace, parameters: dict[str, Any], times: Any, good: float, budget: int
) -> int | None:
    """Evaluations until a good point; None where the budget did not suffice."""
    random.seed(seed)
    np.random.seed(seed)
    runner = Looked(times, good)
    options = Options(
        tune_params=parameters,
        strategy=name,
        strategy_options=Options(max_fevals=budget),
        max_fevals=budget,
        objective=["time"],
        objective_higher_is_better=[False],
        verbose=False,
        metrics=None,
        cache={},
        cachefile=None,
        restrictions=space._modified_restrictions,
        restrictions_unmodified=None,
        simulation_mode=True,
        budget=util.TuningBudget(None, budget),
    )
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        try:
            strategy_map[name].tune(space, runner, options)
        except util.StopCriterionReached:
            pass
        except Exception as error:  # a strategy that fails once its budget is over has had its say
            if not runner.reached and len(runner.seen) < budget:
                print(f"{name}, seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
    return runner.reached or None


def main() -> None:
    job = json.load(sys.stdin)
    parameters = {name: list(values) for name, values in job["parameters"].items()}
    times = {tuple(point): found for point, found in job["points"]}

    def valid(*point: Any) -> bool:
        return point in times

    for name in job["strategies"]:
        space = Searchspace(dict(parameters), [FunctionConstraint(valid)], 1 << 30)
        assert space.size == len(times), (space.size, len(times))
        for seed in job["seeds"]:
            began = time.process_time()
            found = search(name, seed, space, parameters, times, job["good"], job["budget"])
            spent = time.process_time() - began
            said = {"strategy": name, "seed": seed, "evaluations": found, "cpu_s": round(spent, 3)}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
