"""Evolution: what comes out is free of privilege, within the budget, and better on the scripted job."""

from __future__ import annotations

from random import Random

import pytest

from bench.heuristics_job import USEFUL, USELESS, base, evolved, passes, played
from bench.planted import work
from spak import config
from spak.evolve.gate import form, privileged
from spak.evolve.propose import Scored, evolve
from spak.evolve.propose.evolve import Individual, fronted, merged, varied
from spak.lang.edit import read as edits

CATALOG = config.catalog()


def test_the_front_has_whoever_is_best_in_some_case() -> None:
    def one(*scores: tuple[bool, float]) -> Individual:
        runs = {f"c{number}": [Scored(*score)] for number, score in enumerate(scores)}
        return Individual((), str(scores), runs=runs)

    people = [
        one((True, 9), (False, 1)),
        one((False, 1), (True, 5)),
        one((False, 2), (True, 4)),
        one((False, 2), (False, 2)),
    ]
    found = fronted(people, ["c0", "c1"])
    assert [(people.index(item), won) for item, won in found] == [(0, 1), (2, 1)]


def test_numbered_edits_of_one_text_are_merged_from_the_last_to_the_first() -> None:
    first, second = edits(["remove-heuristic 1"]), edits(["remove-heuristic 3"])
    assert [op.number for op in merged(first, second, first)] == [3, 1]  # type: ignore[attr-defined]


def test_settings_vary_within_what_is_free() -> None:
    text = work(6).replace(
        "RETRIES 6", 'PROPOSER tuner { tool: "write_file", strategy: "random" } SPACE { N: [1, 2] } RETRIES 6'
    )
    seen = set()
    for number in range(60):
        made = varied(text, CATALOG, Random(number))
        seen.add((made[0].key, made[0].value))  # type: ignore[attr-defined]
    assert ("RETRIES", 3) in seen
    strategies = {value for key, value in seen if key == "PROPOSER.strategy"}
    assert "climb" in strategies
    assert "random" not in strategies
    assert all(value < 6 for key, value in seen if key == "RETRIES")


def test_useless_heuristics_go_and_useful_ones_stay() -> None:
    made, spent = evolved(base(), budget=90, seed=4)
    assert 30 < spent <= 90
    assert made
    for candidate in made:
        stage, text = form(base(), candidate, CATALOG)
        assert (stage.verdict, privileged(base(), text, CATALOG).verdict) == ("pass", "pass")
        assert "training runs passed" in candidate.rationale
    best = made[0].text(base())
    assert all(item in best for item in USEFUL)
    assert any(item not in best for item in USELESS)


def test_the_same_draw_gives_the_same_candidates() -> None:
    one, other = (evolved(base(), budget=50, seed=2)[0] for _ in range(2))
    assert [item.hash for item in one] == [item.hash for item in other]


def test_a_spec_that_cannot_be_bettered_ends_early() -> None:
    calls = [0]

    def run(case: str, text: str, k: int) -> Scored:
        calls[0] += 1
        return Scored(True, 1.0)

    assert (
        evolve('task A { step one: tool.list_files { path: "." } }', ["a"], run, CATALOG, Random(1), 1_000)
        == []
    )
    assert calls[0] < 50


@pytest.mark.parametrize("seed", [1])
def test_a_run_of_the_job_is_judged_by_its_end(seed: int) -> None:
    assert isinstance(passes(played(base(), seed)), bool)
