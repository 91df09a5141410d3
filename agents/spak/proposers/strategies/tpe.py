"""`tpe`: optuna's tree-structured Parzen estimator over the same points.

The history is replayed into a study in memory for every answer, with a sampler seeded by run seed and turn,
so that nothing is kept between answers. A suggestion that breaks a requirement is taken to the nearest valid
point; one that was tried is asked for again, a few times, before an even draw takes its place.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

from spak.proposers.effects import PENALTY
from spak.proposers.strategies.search import Search

ASKS = 10


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left: what Optuna's TPE sampler asks for."""
    if len(search.seen) < search.starts or all(item.loss is None for item in search.seen):
        return search.anywhere()
    study, distributions = _study(search)
    tried = search.tried
    for _ in range(ASKS):
        point = study.ask(distributions).params
        number = search.space.nearest(point)
        if number not in tried:
            return number
    return search.anywhere()


def _study(search: Search) -> tuple[Any, dict[str, Any]]:
    import optuna

    distributions: dict[str, Any] = {
        name: optuna.distributions.CategoricalDistribution(choices)
        for name, choices in search.space.choices.items()
    }
    bad = max(item.loss for item in search.seen if item.loss is not None) + PENALTY
    seed = random.Random(f"{search.seed}/{search.turn}/{len(search.pending)}/tpe").getrandbits(32)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=1, multivariate=True)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        study.add_trials(
            [
                optuna.trial.create_trial(
                    params=search.space.point(item.number),
                    distributions=distributions,
                    value=bad if item.loss is None else item.loss,
                )
                for item in search.seen
            ]
        )
    finally:
        optuna.logging.set_verbosity(before)
    return study, distributions
