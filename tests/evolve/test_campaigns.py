"""Campaigns through the real loop: A/A, regressions, gains; stopped, resumed, verified; hostile ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from bench.planted import planted, work
from spak import config
from spak.errors import LedgerError, OuterError
from spak.evolve.campaigns import Campaign, Half, Judging, Pair, Plan, advance, certain, verify
from spak.evolve.campaigns.judge import counterfactual
from spak.evolve.gate import Candidate, rehearse
from spak.evolve.propose import Training
from spak.lang.edit import read

CATALOG = config.catalog()
BASE = work(6, 'SYSTEM_MODEL M { HEURISTIC "One." }')
CASES = tuple(f"c{number}" for number in range(6))
TWO = work(6, 'SYSTEM_MODEL M { HEURISTIC "One." HEURISTIC "Two." }')


def plan(base: str = BASE, **more: object) -> Plan:
    return Plan("a.spak", base, "s", "hash", (), CASES, **more)  # type: ignore[arg-type]


def candidates(many: int = 1) -> list[Candidate]:
    return [Candidate(read([f"add-heuristic 'Hint {number}.'"]), "test") for number in range(many)]


def coin(draw: Random, better: float = 0.5, ties: float = 0.3) -> Callable[[str, int, str], Pair]:
    """Pairs as two versions would have them: some equal, the others won with chance `better`."""

    def pair(case: str, k: int, text: str) -> Pair:
        outcome = 0 if draw.random() < ties else 1 if draw.random() < better else -1
        return Pair(case, k, outcome, (f"b{k}", f"c{k}"))

    return pair


def judging(pair: Callable[[str, int, str], Pair | None], **more: object) -> Judging:
    return Judging(CATALOG, (), pair, **more)  # type: ignore[arg-type]


def run(
    root: Path, name: str, made: Plan, pair: Callable[[str, int, str], Pair | None], many: int = 1
) -> Campaign:
    found = Campaign.create(root, name, made)
    advance(found, root, lambda current: candidates(many), judging(pair))
    return found


def test_equal_versions_are_accepted_in_at_most_alpha_of_campaigns(tmp_path: Path) -> None:
    """The short form: thirty campaigns of two candidates; the long one is in `make bench ARGS=outer`."""
    fit = 0
    for number in range(30):
        found = run(tmp_path, f"aa{number}", plan(candidates=2, pairs=40), coin(Random(number)), 2)
        fit += found.counts().get("fit", 0) > 0
        assert [len(item.pairs) > 5 for item in found.tested] == [True, True]
    assert fit <= 3


def test_a_gain_is_accepted_and_a_regression_is_not(tmp_path: Path) -> None:
    better = run(tmp_path, "better", plan(), coin(Random(1), better=0.9))
    assert better.tested[0].verdict == "fit"
    assert len(better.tested[0].pairs) < 100, "it stops as soon as it is shown"
    worse = run(tmp_path, "worse", plan(), coin(Random(2), better=0.4))
    assert worse.tested[0].verdict == "not_shown"
    assert verify(better, CATALOG) == verify(worse, CATALOG) == []


def test_alpha_is_spent_over_the_candidates_that_come_to_the_test(tmp_path: Path) -> None:
    found = run(tmp_path, "c", plan(candidates=3, pairs=2), coin(Random(3)), 3)
    assert [found.alpha(item) for item in found.tested] == [
        Fraction(1, 40),
        Fraction(1, 120),
        Fraction(1, 240),
    ]


def test_a_lost_golden_case_rejects(tmp_path: Path) -> None:
    made = Plan("a.spak", BASE, "s", "hash", ("c0", "c1"), CASES)
    found = run(tmp_path, "c", made, lambda case, k, text: Pair(case, k, -1 if case == "c1" else 1))
    assert (found.tested[0].verdict, found.tested[0].why) == ("rejected", "golden: lost: c1")
    assert len(found.tested[0].pairs) == 2


@pytest.mark.findings("B24")
def test_no_golden_case_is_not_told_as_passed(tmp_path: Path) -> None:
    said: list[str] = []
    judge = judging(coin(Random(1)), shown=lambda tested, text: said.append(text))
    found = Campaign.create(tmp_path, "c", plan())
    advance(found, tmp_path, lambda current: candidates(), judge)
    assert "golden: nothing to judge: there is no golden case" in said
    assert not [line for line in said if line.startswith("golden: pass")]


def test_golden_wins_are_no_evidence(tmp_path: Path) -> None:
    golden = tuple(f"g{number}" for number in range(12))
    made = Plan("a.spak", BASE, "s", "hash", golden, CASES, pairs=3)
    found = run(tmp_path, "c", made, lambda case, k, text: Pair(case, k, 1 if case in golden else 0))
    assert found.tested[0].verdict == "not_shown"


def test_recorded_runs_can_show_a_saving_without_a_fresh_pair(tmp_path: Path) -> None:
    runs = planted("redundant_call", 1)[0]
    base = runs[0][0].body["rules"]["spec"]
    made = Plan("a.spak", base, "s", "hash", ("c0",), ("c0",))
    found = Campaign.create(tmp_path, "c", made)
    judge = Judging(CATALOG, [rehearse("r", runs[0])], lambda case, k, text: Pair(case, k, 0))
    advance(found, tmp_path, lambda current: [Candidate(read(["remove-step look s3"]), "rules")], judge)
    assert found.tested[0].verdict == "fit"
    assert len(found.tested[0].pairs) == 1, "the golden case"
    assert verify(found, CATALOG) == []


def test_a_campaign_that_is_stopped_goes_on_and_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    whole = run(tmp_path, "whole", plan(candidates=2, pairs=20), scripted(), 2)
    for most in (0, 1, 7, 25):
        name = f"broken{most}"
        broken = Campaign.create(tmp_path, name, plan(candidates=2, pairs=20))
        why = advance(broken, tmp_path, lambda current: candidates(2), judging(scripted(most)))
        assert why == "interrupted"
        again = Campaign.read(tmp_path, name)
        advance(again, tmp_path, lambda current: candidates(2), judging(scripted()))
        read_back = Campaign.read(tmp_path, name)
        assert [(item.verdict, item.pairs) for item in read_back.tested] == [
            (item.verdict, item.pairs) for item in whole.tested
        ]


@pytest.mark.parametrize("limit", ["tokens", "cost_nanousd"])
def test_a_budget_of_tokens_or_money_stops_it_and_more_of_it_goes_on(tmp_path: Path, limit: str) -> None:
    def pair(case: str, k: int, text: str) -> Pair:
        return Pair(case, k, 0, ("b", "c"), used=(Half("pass", 30, 30), Half("pass", 20, 20)))

    found = Campaign.create(tmp_path, "c", plan(**{limit: 120}))
    why = advance(found, tmp_path, lambda current: candidates(1), judging(pair))
    assert why == {"cost_nanousd": "money"}.get(limit, limit)
    again = Campaign.read(tmp_path, "c")
    assert (again.tokens, again.cost_nanousd, len(again.tested[0].pairs)) == (150, 150, 3)
    assert advance(again, tmp_path, lambda current: candidates(1), judging(pair)) == why
    assert verify(again, CATALOG) == []


def scripted(most: int = 1_000) -> Callable[[str, int, str], Pair | None]:
    """Pairs that follow from case and number alone; None after `most`."""
    seen = [0]

    def pair(case: str, k: int, text: str) -> Pair | None:
        seen[0] += 1
        if seen[0] > most:
            return None
        return Pair(case, k, Random(f"{case}/{k}").choice((1, 0, -1)), ("b", "c"))

    return pair


def test_the_budget_of_runs_stops_a_campaign(tmp_path: Path) -> None:
    found = Campaign.create(tmp_path, "c", plan(runs=10))
    why = advance(found, tmp_path, lambda current: candidates(1), judging(coin(Random(1), ties=1.0)))
    assert (why, found.runs, found.tested[0].verdict) == ("runs", 10, "")


def test_a_record_that_is_deleted_or_changed_is_found(tmp_path: Path) -> None:
    found = run(tmp_path, "c", plan(), coin(Random(1), better=0.9))
    path = tmp_path / "c/trace.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for changed in (
        lines[:4] + lines[5:],
        [*lines[:4], lines[4].replace(b'"outcome":-1', b'"outcome":1'), *lines[5:]],
    ):
        path.write_bytes(b"".join(changed))
        if b"".join(changed) != b"".join(lines):
            with pytest.raises(LedgerError) as caught:
                Campaign.read(tmp_path, "c")
            assert caught.value.code == "ledger.tampered"
    path.write_bytes(b"".join(lines))
    again = Campaign.read(tmp_path, "c")
    assert again.head == found.head
    again.tested[0].pairs = again.tested[0].pairs[:2]
    assert "the pairs give not_shown, not fit" in verify(again, CATALOG)[0]


def test_a_ledger_that_was_made_up_does_not_verify(tmp_path: Path) -> None:
    """Whole chains with other contents: losses or a stage left out, one case taken often, too few pairs."""
    real = run(tmp_path, "real", plan(pairs=60), coin(Random(4), better=0.5)).tested[0]
    assert real.verdict == "not_shown"
    won = [pair for pair in real.pairs if pair.outcome >= 0]
    often = [next(pair for pair in real.pairs if pair.outcome == 1)] * 12
    forged = {
        "losses": (tuple(real.stages), won, "fit", "its pairs are not those of the plan, in their order"),
        "often": (tuple(real.stages), often, "fit", "its pairs are not those of the plan, in their order"),
        "stage": (
            ("form", "counterfactual", "golden", "fresh"),
            real.pairs,
            "not_shown",
            "without the stage",
        ),
        "few": (tuple(real.stages), real.pairs[:9], "not_shown", "so few pairs give none, not not_shown"),
        "word": (tuple(real.stages), real.pairs, "rejected", "the pairs give not_shown, not rejected"),
    }
    for name, (stages, pairs, word, wanted) in forged.items():
        made = Campaign.create(tmp_path, name, plan(pairs=60))
        with made.writing(tmp_path) as writer:
            writer.put("candidate", {"number": 1, "candidate": real.candidate.to_json()})
            for stage in stages:
                writer.put("stage", real.stages[stage])
            for pair in pairs:
                writer.put("pair", {"number": 1, **pair.to_json()})
            writer.put("verdict", {"number": 1, "verdict": word, "why": ""})
        assert any(wanted in item for item in verify(Campaign.read(tmp_path, name), CATALOG)), name


def test_a_suite_that_is_edited_while_a_campaign_runs_stops_it(tmp_path: Path) -> None:
    calls = [0]

    def unchanged() -> None:
        calls[0] += 1
        if calls[0] > 1:
            raise OuterError("outer.changed", "s was changed", "")

    found = Campaign.create(tmp_path, "c", plan())
    with pytest.raises(OuterError) as caught:
        advance(found, tmp_path, lambda current: candidates(2), judging(coin(Random(1)), unchanged=unchanged))
    assert caught.value.code == "outer.changed"
    assert not any(item.verdict == "fit" for item in found.tested)


def test_an_outcome_that_is_no_number_of_a_pair_stops_it(tmp_path: Path) -> None:
    for outcome in (float("nan"), 2, float("inf")):
        found = Campaign.create(tmp_path, f"c{outcome}".replace("inf", "i"), plan())
        with pytest.raises(ValueError, match="not an outcome"):
            advance(
                found, tmp_path, lambda current: candidates(1),
                judging(lambda case, k, text, outcome=outcome: Pair(case, k, outcome)),  # type: ignore[misc]
            )  # fmt: skip
        assert found.tested[0].verdict == ""


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (["clear write VALIDATOR"], "privileged"),
        (["set-retries write 90"], "privileged"),
        (["set-budget steps 99999"], "privileged"),
        (["retarget-edge write fail hand_over"], "privileged"),
        (["remove-task hand_over"], "rejected"),
    ],
)
def test_hostile_candidates_are_stopped_before_any_run(
    tmp_path: Path, lines: list[str], verdict: str
) -> None:
    ran: list[str] = []

    def pair(case: str, k: int, text: str) -> Pair:
        ran.append(case)
        return Pair(case, k, 1)

    found = Campaign.create(tmp_path, "c", plan())
    advance(found, tmp_path, lambda current: [Candidate(read(lines), "hostile")], judging(pair))
    assert (found.tested[0].verdict, ran) == (verdict, [])
    assert verify(found, CATALOG) == []


def test_the_same_candidate_is_not_tried_twice(tmp_path: Path) -> None:
    found = Campaign.create(tmp_path, "c", plan(pairs=2))
    why = advance(found, tmp_path, lambda current: candidates(1), judging(coin(Random(1))))
    assert (why, len(found.tested)) == ("proposals", 1)


def test_a_campaign_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OuterError) as caught:
        Campaign.read(tmp_path, "none")
    assert caught.value.code == "outer.campaign"


def test_what_a_proposer_asked_beyond_its_split_is_in_the_ledger(tmp_path: Path) -> None:
    records = planted("retry_cycle", 1)[0][0]
    host = {**records[0].body["host"], "labels": {"case": "sealed-case"}}
    run_of = [records[0]._replace(body={**records[0].body, "host": host}), *records[1:]]
    training = Training.of([("secret", run_of)], {"sealed-case": "sealed"})
    judge = judging(coin(Random(1)), violations=lambda: training.violations)

    def greedy(current: Campaign) -> list[Candidate]:
        training.records("secret")
        return candidates()

    found = Campaign.create(tmp_path, "c", plan())
    with pytest.raises(OuterError) as caught:
        advance(found, tmp_path, greedy, judge)
    assert caught.value.code == "outer.split"
    again = Campaign.read(tmp_path, "c")
    assert (again.violations, again.tested) == (["secret"], [])
    advance(again, tmp_path, lambda current: candidates(), judge)
    assert Campaign.read(tmp_path, "c").violations == ["secret"], "once"


@pytest.mark.parametrize("line", ["set POLICY 'other.mg'", "set IMPORT 'other.spak'"])
def test_a_candidate_that_names_another_file_is_never_run(tmp_path: Path, line: str) -> None:
    def pair(case: str, k: int, text: str) -> Pair:
        raise AssertionError("no run is made for it")

    found = Campaign.create(tmp_path, "c", plan())
    advance(found, tmp_path, lambda current: [Candidate(read([line]), "hostile")], judging(pair))
    assert found.tested[0].verdict in ("privileged", "rejected")


def removals(many: int = 1) -> list[Candidate]:
    return [Candidate(read([f"remove-heuristic {number + 1}"]), "test") for number in range(many)]


def test_with_a_margin_a_removal_has_to_be_no_worse_and_not_better(tmp_path: Path) -> None:
    """Pairs that are mostly equal: the same pairs show no gain, and do show that nothing is lost."""
    equal = coin(Random(4), ties=0.9)
    for name, margin, verdict in (("without", "0", "not_shown"), ("with", "1/10", "fit")):
        found = Campaign.create(tmp_path, name, plan(TWO, pairs=200, margin=margin))
        advance(found, tmp_path, lambda current: removals(), judging(equal))
        assert (found.tested[0].verdict, verify(Campaign.read(tmp_path, name), CATALOG)) == (verdict, [])
    assert found.tested[0].stages["fresh"]["evidence"]["margin"] == "1/10"
    assert "no worse by 1/10" in found.tested[0].why


def test_what_adds_something_has_to_be_better_in_any_case(tmp_path: Path) -> None:
    both = Candidate(read(["add-heuristic 'Hint.'", "remove-heuristic 1"]), "test")
    found = Campaign.create(tmp_path, "c", plan(TWO, pairs=200, candidates=2, margin="1/10"))
    advance(found, tmp_path, lambda current: [*candidates(), both], judging(coin(Random(4), ties=0.95)))
    assert [item.verdict for item in found.tested] == ["not_shown", "not_shown"]
    assert [item.stages["fresh"]["evidence"]["margin"] for item in found.tested] == ["0", "0"]


def test_a_removal_that_costs_the_margin_is_accepted_in_at_most_alpha(tmp_path: Path) -> None:
    """The null of the margin: a tenth of all pairs is lost, the others are equal or cancel out."""
    fit = 0
    for number in range(40):
        draw = Random(number)

        def pair(case: str, k: int, text: str, draw: Random = draw) -> Pair:
            return Pair(case, k, draw.choices((1, 0, -1), (5, 80, 15))[0])

        found = Campaign.create(tmp_path, f"n{number}", plan(TWO, pairs=60, margin="1/10"))
        advance(found, tmp_path, lambda current: removals(), judging(pair))
        fit += found.tested[0].verdict == "fit"
    assert fit <= 3


def test_the_pairs_that_are_needed_in_any_case_are_known_beforehand(tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []
    foreseen: list[list[tuple[str, int]]] = []
    draw = coin(Random(6), better=0.8)

    def pair(case: str, k: int, text: str) -> Pair:
        foreseen.append(certain(found, found.tested[-1]))
        asked.append((case, k))
        return draw(case, k, text) if k else Pair(case, k, 0)

    made = Plan("a.spak", BASE, "s", "hash", ("c0", "c1"), CASES, pairs=40, runs=60)
    found = Campaign.create(tmp_path, "c", made)
    advance(found, tmp_path, lambda current: candidates(), judging(pair))
    assert len(asked) > 10
    for place, ahead in enumerate(foreseen):
        assert ahead[0] == asked[place]
        assert asked[place : place + len(ahead)] == ahead, "none of them turned out to be needless"
    assert max(len(ahead) for ahead in foreseen) > 5


def test_a_campaign_that_ended_says_so_once_however_often_it_is_gone_on_with(tmp_path: Path) -> None:
    found = Campaign.create(tmp_path, "once", plan(pairs=2, candidates=1))
    for _ in range(3):
        advance(found, tmp_path, lambda campaign: candidates(), judging(scripted()))
        found = Campaign.read(tmp_path, "once")
    lines = (tmp_path / "once/trace.jsonl").read_bytes().splitlines()
    assert sum(b'"kind":"stop"' in line for line in lines) == 1
    assert found.stopped == "candidates"


def test_what_goes_on_after_a_stop_has_not_stopped(tmp_path: Path) -> None:
    found = Campaign.create(tmp_path, "on", plan(pairs=4, candidates=1))
    assert advance(found, tmp_path, lambda campaign: candidates(), judging(scripted(1))) == "interrupted"
    assert Campaign.read(tmp_path, "on").stopped == "interrupted"
    assert advance(found, tmp_path, lambda campaign: candidates(), judging(scripted(2))) == "interrupted"
    lines = (tmp_path / "on/trace.jsonl").read_bytes().splitlines()
    assert sum(b'"kind":"stop"' in line for line in lines) == 2, "with pairs in between"


@pytest.mark.findings("E12")
def test_what_the_retries_in_a_prompt_leave_unknown_is_told() -> None:
    runs = planted("retry_cycle", 1)[0]
    base = runs[0][0].body["rules"]["spec"]
    (retries,) = re.findall(r"RETRIES \d+", base)
    fewer = base.replace(retries, "RETRIES 3")
    told = counterfactual([rehearse("r", runs[0])], fewer)
    assert (told.verdict, told.evidence["unknown"] > 0) == ("open", True)
    assert "prompts name the RETRIES that are left" in told.why
    assert "RETRIES" not in counterfactual([rehearse("r", runs[0])], base).why


def test_a_grammar_patch_stays_in_the_ledger_and_is_run_nowhere(tmp_path: Path) -> None:
    def pair(case: str, k: int, text: str) -> Pair:
        raise AssertionError("no run is made for it")

    found = Campaign.create(tmp_path, "c", Plan("a.spak", work(), "s", "h", (), ("c0",)))
    made = Candidate(read(["set-retries work 1"]), "model", "shorter", grammar_patch="next: NEXT")
    advance(found, tmp_path, lambda current: [made], Judging(config.catalog(), (), pair))
    again = Campaign.read(tmp_path, "c")
    (tested,) = again.tested
    assert (tested.verdict, list(tested.stages)) == ("rejected", ["form"])
    assert "[outer.grammar]" in tested.why
    assert tested.candidate.grammar_patch == "next: NEXT"
    assert verify(again, config.catalog()) == []
