"""The tuner: a pure function of the request, whatever the strategy."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from spak import canon
from spak.errors import UsageError
from spak.ports import PlanRequest, Trial
from spak.proposers import PROPOSERS
from spak.proposers.strategies import STRATEGIES
from spak.proposers.tuner import Tuner, validate

SPACE: dict[str, Any] = {
    "X": {"range": [0, 5]},
    "Y": [1, 2, 3],
    "Z": ["a", "b"],
    "require": ["X != 5 or Y == 1"],
}
SIZE = 32


def request(
    history: tuple[Trial, ...] = (), turn: int | None = None, seed: int = 7, **options: Any
) -> PlanRequest:
    turn = len(history) if turn is None else turn
    return PlanRequest(
        "p1", "tune", "plan", turn, seed, {"tool": "instantiate", **options}, SPACE, {}, history
    )


def value(params: Mapping[str, Any]) -> float:
    return 1.0 + (int(params["X"]) - 3) ** 2 + int(params["Y"]) + (params["Z"] == "a")


def search(evaluations: int, seed: int = 7, **options: Any) -> list[Trial]:
    trials: list[Trial] = []
    for _ in range(evaluations):
        found = Tuner().propose(request(tuple(trials), seed=seed, **options))
        if not found:
            break
        params = found[0].params
        broken = params["X"] == 0
        trials.append(
            Trial(found[0].args, params, "fail")
            if broken
            else Trial(found[0].args, params, "measured", value(params))
        )
    return trials


def test_it_is_in_the_table() -> None:
    assert PROPOSERS["tuner"]().entry.name == "tuner"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_never_twice_and_then_nothing(strategy: str) -> None:
    trials = search(SIZE + 5, strategy=strategy, patience=5)
    assert len({canon.dumps(dict(trial.params)) for trial in trials}) == len(trials) == SIZE


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_request_same_answer(strategy: str) -> None:
    trials = tuple(search(14, strategy=strategy))
    one = Tuner().propose(request(trials, strategy=strategy))
    assert one == Tuner().propose(request(trials, strategy=strategy))
    # As it comes back from a ledger: members in another order, numbers as JSON has them.
    again = tuple(
        Trial({}, canon.loads(canon.dumps(dict(trial.params))), trial.outcome, trial.value)
        for trial in trials
    )
    assert one == Tuner().propose(request(again, strategy=strategy))
    answers = {
        canon.dumps(dict(Tuner().propose(request(turn=turn, seed=seed, strategy=strategy))[0].params))
        for turn in range(4)
        for seed in range(4)
    }
    assert len(answers) > 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_another_process_gives_the_same(strategy: str) -> None:
    trials = search(12, strategy=strategy)
    history = [[dict(trial.params), trial.outcome, trial.value] for trial in trials]
    code = (
        "import json, sys\n"
        "from spak.ports import PlanRequest, Trial\n"
        "from spak.proposers import PROPOSERS\n"
        "space, options, history = json.load(sys.stdin)\n"
        "trials = tuple(Trial({}, p, o, v) for p, o, v in history)\n"
        "request = PlanRequest('p1', 'tune', 'plan', len(trials), 7, options, space, {}, trials)\n"
        "print(json.dumps(PROPOSERS['tuner']().propose(request)[0].params, sort_keys=True))\n"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps([SPACE, {"tool": "instantiate", "strategy": strategy}, history]),
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        mine = Tuner().propose(request(tuple(trials), strategy=strategy))[0].params
        assert json.loads(done.stdout) == dict(mine)


def test_it_finds_the_best_of_a_small_space() -> None:
    for seed in range(10):
        best = min(trial.value for trial in search(16, seed=seed) if trial.value is not None)
        assert best <= 3.0


def test_higher_may_be_better() -> None:
    trials: list[Trial] = []
    for _ in range(16):
        params = Tuner().propose(request(tuple(trials), better="higher"))[0].params
        trials.append(Trial({}, params, "measured", 100 - value(params)))
    assert max(trial.value or 0.0 for trial in trials) >= 97.0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_odd_histories(strategy: str) -> None:
    """Only failures, values that are no measurements, points of another space, negative metrics."""
    params = [candidate.params for candidate in Tuner().propose(request(batch=20))]
    for history in (
        [Trial({}, point, "fail") for point in params],
        [Trial({}, point, "measured", math.nan) for point in params],
        [Trial({}, point, "measured", math.inf if k % 2 else 1.0) for k, point in enumerate(params)],
        [Trial({}, point, "improved", -1.0 * k) for k, point in enumerate(params)],
        [Trial({}, point, "measured", 5.0) for point in params],
        [Trial({}, {}, "measured", 5.0), Trial({}, {"X": 99}, "fail")] * 10,
    ):
        found = Tuner().propose(request(tuple(history), strategy=strategy))
        assert len(found) == 1
        assert found[0].params not in [trial.params for trial in history]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batch(strategy: str) -> None:
    trials = tuple(search(10, strategy=strategy))
    found = Tuner().propose(request(trials, strategy=strategy, batch=5))
    assert [candidate.score for candidate in found] == [5, 4, 3, 2, 1]
    points = [dict(candidate.params) for candidate in found] + [dict(trial.params) for trial in trials]
    assert all(points.count(point) == 1 for point in points)
    assert found[0].params == Tuner().propose(request(trials, strategy=strategy))[0].params
    assert len(Tuner().propose(request(tuple(search(SIZE - 2)), strategy=strategy, batch=5))) == 2


def test_arguments() -> None:
    args = {"template": "t.c", "path": "k.c"}
    found = Tuner().propose(request(args=args))[0]
    assert found.tool == "instantiate"
    assert found.args == {**args, "params": dict(found.params)}
    assert set(found.params) == {"X", "Y", "Z"}
    assert Tuner().propose(request(args=args, params_key="point"))[0].args["point"] == found.params
    assert Tuner().propose(request(args=args, params_key=""))[0].args == {**args, **found.params}
    canon.dumps(dict(found.args))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "tool"),
        ({"tool": ""}, "tool"),
        ({"tool": "t", "strategy": "magic"}, "bayes, climb, random"),
        ({"tool": "t", "strategy": ["climb"]}, "strategy"),
        ({"tool": "t", "batch": 0}, "at least 1"),
        ({"tool": "t", "batch": 65}, "at most 64"),
        ({"tool": "t", "batch": True}, "integer"),
        ({"tool": "t", "starts": 1.5}, "integer"),
        ({"tool": "t", "args": [1]}, "object"),
        ({"tool": "t", "args": {"params": 1}}, "already"),
        ({"tool": "t", "temperature": 3}, "unknown option"),
    ],
)
def test_bad_options(options: dict[str, Any], word: str) -> None:
    problems = validate(options, SPACE)
    assert len(problems) == 1 and word in problems[0]
    with pytest.raises(UsageError) as error:
        Tuner().propose(PlanRequest("p1", "t", "s", 0, 1, options, SPACE, {}))
    assert error.value.code == "tuner.options" and error.value.hint


def test_validate_names_both_and_passes_what_is_right() -> None:
    assert len(validate({}, {})) == 2
    assert validate({"tool": "t", "strategy": "climb", "batch": 3, "starts": 4}, SPACE) == []


def test_proposers_load_no_heavy_package_and_stay_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys, spak.proposers; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    search(12)
    assert capfd.readouterr() == ("", "")
