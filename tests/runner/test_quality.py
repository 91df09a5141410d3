"""Consistency, permitted actions and perplexity, as records of a run say them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from spak.records import Record
from spak.runner.views.quality import Quality, score
from spak.runner.views.report import lines


def checked(*oks: bool, status: str = "checked", name: str = "axiom") -> Record:
    checks = [{"name": f"{name}.{n}", "ok": ok, "code": "" if ok else "x"} for n, ok in enumerate(oks, 1)]
    return Record("act", "proposal", {"of": "1", "status": status, "checks": checks})


def permit(allow: Any, act: str = "tool") -> Record:
    return Record("permit", "commit", {"act": act, "allow": allow, "args": {}})


def answered(**side: Any) -> Record:
    return Record("plan", "proposal", {"of": "1", "candidates": []}, side=side)


def test_consistency_counts_axioms_of_artifacts_alone() -> None:
    found = Quality.of(
        [checked(True, True, False), checked(True), checked(True, name="rows"), permit(True), permit(False)]
    )
    assert (found.held, found.axioms, found.consistency) == (3, 4, 0.75)
    assert (found.permitted, found.denied, found.permission) == (1, 1, 0.5)


def test_questions_and_the_kernels_own_checks_are_no_actions() -> None:
    found = Quality.of([permit(True, "ask"), permit(True, "check"), permit("ask"), permit(True, "validate")])
    assert (found.permitted, found.denied) == (1, 0)


@pytest.mark.parametrize(
    "odd",
    [
        Record("act", "proposal", {"status": "checked", "checks": "none"}),
        Record("act", "proposal", {"status": "checked", "checks": [1, {"name": 7}]}),
        Record("act", "host", {"status": "checked", "checks": [{"name": "axiom.1", "ok": True}]}),
        answered(logprobs="not available"),
        answered(logprobs={"$blob": "x"}),
        answered(logprobs={"$blob": "x", "tokens": True, "micronats": 3}),
        answered(logprobs={"$blob": "x", "tokens": 0, "micronats": 3}),
        answered(logprobs={"$blob": "x", "tokens": 3, "micronats": -3}),
    ],
)
def test_what_says_nothing_counts_nothing(odd: Record) -> None:
    found = Quality.of([odd])
    assert found == Quality() and found.perplexity is None and found.consistency is None


def test_perplexity_is_over_all_tokens_that_were_reported() -> None:
    one, two = score([math.log(0.5)] * 3), score([math.log(0.25)])
    found = Quality.of([answered(logprobs={"$blob": "x", **one}), answered(logprobs={"$blob": "y", **two})])
    assert found.scored == 4 and found.perplexity == pytest.approx(2 ** (5 / 4), rel=1e-6)


@pytest.mark.parametrize("listed", [[], [float("nan")], [-math.inf], [-1e300] * 9, [0.5, 0.5]])
def test_odd_log_probabilities_are_not_summed(listed: list[float]) -> None:
    assert score(listed) == {}


def test_a_mean_beyond_measure_is_no_perplexity() -> None:
    assert Quality(scored=1, micronats=10**9).perplexity is None


def test_the_figures_in_words() -> None:
    assert lines(Quality(200, 199, 3, 1, 1200, 600_000_000, 5, 4, 1)) == {
        "consistency": "99.5 % (199 of 200 checked axioms held)",
        "permitted": "75 % (3 of 4 actions)",
        "self-correction": "80 % (4 of 5 failures)",
        "perplexity": "1.65 over 1,200 tokens",
    }
    assert list(lines(Quality()).values()) == [
        "no axiom was checked",
        "no action was asked for",
        "nothing failed",
        "not reported",
    ]


def routed(signal: str, to: str, **more: Any) -> Record:
    return Record("route", "commit", {"signal": signal, "to": to, **more}, task="t", step="s")


HINT = Record("inject", "commit", {"text": "Look again."}, task="t", step="s")
PERSON = Record("plan", "proposal", {"of": "1"}, side={"by": "alice"}, task="t", step="s")
RIGHT = Record("end", "commit", {"state": "succeeded"}, task="t", step="s")


@pytest.mark.parametrize(
    ("records", "failures", "healed", "guided"),
    [
        ([routed("fail", "t/"), routed("success", "u/")], 1, 1, 0),
        ([routed("fail", "t/"), HINT, routed("timeout", "t/"), RIGHT], 2, 2, 2),
        ([routed("fail", "t/"), PERSON, RIGHT], 1, 0, 0),
        ([PERSON, routed("fail", "t/"), RIGHT], 1, 1, 0),
        ([routed("fail", "later"), RIGHT], 0, 0, 0),
        ([routed("fail", "t/", code="validator.void"), routed("fail", "t/", poll=1)], 0, 0, 0),
        ([routed("fail", "")], 1, 0, 0),
    ],
)
def test_failures_that_came_right_without_a_person_are_corrected(
    records: list[Record], failures: int, healed: int, guided: int
) -> None:
    found = Quality.of(records)
    said = {"failures": failures, "resolved": healed, "by_heuristics": guided}
    assert {**found.to_json()["self_correction"], **said} == found.to_json()["self_correction"]
    assert lines(found)["self-correction"].startswith(
        "nothing failed" if not failures else f"{100 * healed // failures} % ({healed} of {failures}"
    )
