"""What candidates use against the base: recorded with each pair, compared, placed on a front."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.planted import work
from spak import config
from spak.errors import OuterError
from spak.evolve.campaigns import (
    Campaign,
    Half,
    Judging,
    Pair,
    Plan,
    advance,
    campaign,
    points,
    settled,
    spending,
    verify,
)
from spak.evolve.experiments import Cell, Done, summarise
from spak.evolve.experiments import Plan as Experiment
from spak.evolve.gate import Candidate
from spak.lang.edit import read
from spak.ledger.files import FileLedgers
from spak.records import Authority, Record

BASE = work(6, 'SYSTEM_MODEL M { HEURISTIC "One." }')
PLAN = Plan("a.spak", BASE, "s", "hash", (), ("c0", "c1", "c2"))


def candidate(number: int, halves: Sequence[tuple[str, Half, Half]], verdict: str = "fit") -> campaign.Tested:
    pairs = [Pair(case, k, 0, used=(base, candidate)) for k, (case, base, candidate) in enumerate(halves)]
    return campaign.Tested(number, Candidate((), "test"), pairs=pairs, verdict=verdict)


def passed(tokens: int, ms: int = 0) -> Half:
    return Half("pass", tokens, tokens * 10, ms)


def failed(tokens: int) -> Half:
    return Half("fail", tokens)


def test_what_a_pair_used_is_in_its_record_and_comes_back(tmp_path: Path) -> None:
    def done(spec: str, outcome: str, tokens: int) -> Done:
        return Done(f"r-{spec}", outcome, tokens=tokens, cost_nanousd=7, ms=9, ran=spec)  # type: ignore[arg-type]

    def pair(case: str, k: int, text: str) -> Pair:
        return settled(case, k, done("b", "fail", 100), done("c", "pass", 60), "b", "c")

    made = Campaign.create(tmp_path, "c", PLAN)
    found = [Candidate(read(["add-heuristic 'Look twice.'"]), "rules")]
    advance(made, tmp_path, lambda current: found, Judging(config.catalog(), (), pair))
    again = Campaign.read(tmp_path, "c")
    assert again.tested[0].pairs == made.tested[0].pairs
    assert again.tested[0].pairs[0].used == (Half("fail", 100, 7, 9), Half("pass", 60, 7, 9))
    assert verify(again, config.catalog()) == []
    other = settled("c0", 1, done("b", "pass", 1), done("x", "pass", 1), "b", "c")
    assert other.used == (Half("pass", 1, 7, 9), Half("void", 1, 7, 9)), "another spec ran"
    again.tested[0].pairs[0] = Pair("c0", 1, 1, used=(passed(1), failed(1)))
    assert verify(again, config.catalog()) == ["candidate 1: the pair c0/1 is not what its runs came to"]


@pytest.mark.parametrize(
    "change", ['"tokens":-1', '"tokens":"60"', '"tokens":true', '"more":1', '"tokens":1.5']
)
def test_a_record_that_is_no_pair_is_no_campaign(tmp_path: Path, change: str) -> None:
    made = Campaign.create(tmp_path, "c", PLAN)
    with made.writing(tmp_path) as writer:
        candidate = Candidate(read(["add-heuristic 'Look twice.'"]), "rules")
        writer.put("candidate", {"number": 1, "candidate": candidate.to_json()})
    half = {"outcome": "pass", "tokens": 60, "cost_nanousd": 0, "ms": 0}
    name, value = change.split(":")
    wrong = {**half, name.strip('"'): json.loads(value)}
    body = {
        "number": 1,
        "case": "c0",
        "k": 1,
        "outcome": 1,
        "runs": ["b", "c"],
        "why": "",
        "used": [half, wrong],
    }
    with FileLedgers(tmp_path).open("c") as ledger:
        ledger.append([Record("pair", Authority.HOST, body, at=1)])
        ledger.flush()
    with pytest.raises(OuterError):
        Campaign.read(tmp_path, "c")


def test_spending_is_paired_by_case_as_spak_eval_reports_it() -> None:
    """The same runs as cells of an experiment give the same difference and the same interval."""
    amounts = {"c0": (100, 80), "c1": (50, 70), "c2": (30, 30), "c3": (90, 10)}
    mine = candidate(1, [(case, passed(base), passed(after)) for case, (base, after) in amounts.items()])
    found = spending(mine)
    plan = Experiment("s", "hash", dict.fromkeys(amounts, "h"), {"base": "b", "patch": "p"}, {})
    cells = {}
    for case, (base, after) in amounts.items():
        cells[Cell(case, "base", 0)] = Done("r", "pass", tokens=base, ran="b")
        cells[Cell(case, "patch", 0)] = Done("r", "pass", tokens=after, ran="p")
    compared = summarise("e", "", plan, cells).comparison
    assert compared is not None
    wanted = compared.figures["tokens"]
    assert {name: found["tokens"][name] for name in wanted} == wanted
    assert (found["tokens"]["base"], found["tokens"]["candidate"], found["tokens"]["mean"]) == (
        67.5,
        47.5,
        -20,
    )
    assert found["ms"]["mean"] == 0


def test_a_case_without_a_result_is_left_out_of_what_was_used() -> None:
    mine = candidate(1, [("c0", passed(10), passed(20)), ("c1", passed(10), Half("void", 9_999))])
    found = spending(mine)
    assert (found["tokens"]["cases"], found["tokens"]["mean"], found["tokens"]["interval"]) == (1, 10, None)
    nothing = spending(campaign.Tested(1, Candidate((), "test"), pairs=[Pair("c0", 1, 1)]))
    assert nothing["tokens"] == {"cases": 0, "mean": None, "interval": None, "base": None, "candidate": None}


def test_the_front_are_those_that_no_other_one_beats() -> None:
    made = Campaign("c", PLAN)
    made.tested = [
        candidate(
            1, [("c0", failed(100), passed(120)), ("c1", passed(100), passed(100))]
        ),  # passes more, for more
        candidate(
            2, [("c0", passed(100), passed(40)), ("c1", passed(100), failed(40))]
        ),  # passes less, for less
        candidate(3, [("c0", failed(100), passed(150)), ("c1", passed(100), passed(150))]),  # beaten by 1
        candidate(4, [("c0", passed(100), passed(100))]),  # as the base
        candidate(5, []),  # rejected before a run
        candidate(6, [("c0", passed(100), Half("void"))]),  # nothing known of what it uses
    ]
    found = {one["number"]: one for one in points(made)}
    assert sorted(found) == [0, 1, 2, 3, 4, 6]
    assert {number for number, one in found.items() if one["front"]} == {0, 1, 2, 4}
    assert (found[1]["gain"], found[1]["more"]["tokens"], found[1]["passed"]) == (0.5, 10, [0.5, 1.0])
    assert (found[2]["gain"], found[2]["more"]["tokens"]) == (-0.5, -60)
    assert (found[6]["gain"], found[6]["more"]["tokens"]) == (-1.0, None)
    assert {one["by"] for one in found.values()} == {"tokens"}


def test_without_a_model_the_front_goes_by_time() -> None:
    made = Campaign("c", PLAN)
    made.tested = [candidate(1, [("c0", Half("pass", ms=50), Half("pass", ms=20))])]
    base, one = points(made)
    assert (base["by"], base["front"], one["front"], one["more"]["ms"]) == ("ms", False, True, -30)
