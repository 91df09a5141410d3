"""The table of candidates: the figure that decided, and nothing where nothing was measured."""

from __future__ import annotations

from typing import Any

import pytest

from spak.cli.progress import candidate_line, trend
from spak.kernel.metric.decision import decide
from spak.program import MetricRule
from spak.records import Record
from spak.runner.history import Attempted, History
from spak.runner.views.report import interval, since_best
from spak.runner.views.run_json import _ends

RULE = MetricRule("time_ns")
NUMBERS = {"margin_num": 99, "margin_den": 100, "evidence": 20, "max_pairs": 80}


def pairs(*values: tuple[int, int], rival: str = "incumbent") -> list[dict[str, Any]]:
    return [{"rival": rival, "candidate": [mine, mine + 5], "incumbent": [other]} for mine, other in values]


def tried(*values: tuple[int, int], code: str = "") -> Attempted:
    found = Attempted("tune", 1, "instantiate", {}, {}, outcome="fail" if code else "measured", code=code)
    if values:
        found.pairs, found.ratio = len(values), values[0][0] / values[0][1]
        found.wins = sum(100 * mine < 99 * other for mine, other in values)
    return found


def test_why_a_search_ended_on_a_plateau() -> None:
    best = tried((90, 100))
    best.outcome = "improved"
    after = [
        tried((130, 100)),
        *[tried(*[(100, 100)] * 8)] * 2,
        tried(*[(98, 100), (100, 100)] * 40),
        tried(code="incorrect"),
    ]
    assert since_best([tried((100, 100)), best, *after]) == (
        "5 candidates since the best: 1 worse by more than a tenth, 2 not better by the rule, 1 undecided, "
        "1 failed; the closest took 0.980 of its time or value"
    )
    assert since_best([best]) == since_best([]) == ""


def test_the_interval_of_a_speed_up() -> None:
    metrics = {"baseline_ns": 2000, "time_ns": 100, "time_low_ns": 95, "time_high_ns": 110, "rounds": 3}
    assert "speedup_low" not in _ends(metrics, 2000, 100) and interval(_ends(metrics, 2000, 100)) == ""
    metrics |= {"baseline_low_ns": 1980, "baseline_high_ns": 2090}
    assert interval(metrics | _ends(metrics, 2000, 100)) == "18.0 to 22.0, the quietest of 3 rounds"


def row(body: dict[str, Any], rule: MetricRule | None = RULE, **route: Any) -> Attempted:
    history = History(rules={} if rule is None else {"tune": rule})
    plan = {"candidates": [{"tool": "instantiate", "args": {"params": {"TILE": 8}}}]}
    for kind, authority, given in (
        ("plan", "proposal", plan),
        ("select", "commit", {"i": 0, "n": 1}),
        ("act", "proposal", {"status": "measured", **body}),
        ("route", "commit", {"signal": "metric_improved", "to": "tune/", "best": 1, **route}),
    ):
        history.feed(Record(kind, authority, given, task="tune", step="p"))
    (found,) = history.rows
    return found


def test_an_improvement_shows_the_paired_ratio_that_decided() -> None:
    """Measured later and slower in itself, but faster than the best in each pair of the same minutes."""
    taken = pairs(*[(2_005_000, 2_500_000)] * 8)
    found = row({"metrics": {"time_ns": 2_005_000}, "pairs": [*taken, *pairs((9, 1), rival="baseline")]})
    assert decide(taken, NUMBERS).outcome == "improved" and decide(taken, NUMBERS).wins == found.wins
    assert candidate_line(found) == (
        "  1 ● improved         0.80 of best, won  8 of  8 pairs     2.005 ms  TILE=8"
    )


@pytest.mark.parametrize(
    ("body", "route", "rule", "line"),
    [
        (
            {"status": "checked", "checks": [{"name": "axiom.1", "ok": False, "code": "forbidden"}]},
            {"signal": "fail", "code": "forbidden"},
            None,
            "  1 × forbidden       TILE=8",
        ),
        ({"metrics": {"time_ns": 1_500_000}}, {}, RULE, "  1 ● improved           1.500 ms  TILE=8"),
        (
            {"metrics": {"time_ns": 1_500_000, "bound_ns": 570_000}},
            {},
            RULE,
            "  1 ● improved           1.500 ms  38 % of roof  TILE=8",
        ),
        (
            {"metrics": {"time_ns": 5}, "pairs": pairs((100, 100), (98, 100))},
            {"signal": "success", "best": None},
            RULE,
            "  1 ● improved         0.99 of best, won  1 of  2 pairs     0.000 ms  TILE=8",
        ),
    ],
)
def test_what_was_not_measured_has_no_number(
    body: dict[str, Any], route: dict[str, Any], rule: MetricRule | None, line: str
) -> None:
    assert candidate_line(row(body, rule, **route)) == line


def test_a_candidate_that_failed_as_the_last_of_its_loop_is_a_failure() -> None:
    """The evaluations were used up with it, so its signal is `plateau`; the code says that it failed."""
    body = {"status": "checked", "checks": [{"name": "ran", "ok": False, "code": "exit_mismatch"}]}
    found = row(body, RULE, signal="plateau", code="exit_mismatch", best=None)
    assert (found.outcome, found.code) == ("fail", "exit_mismatch")
    slow = row({"metrics": {"time_ns": 5}}, RULE, signal="plateau")
    assert slow.outcome == "improved"


def test_where_higher_is_better_the_ratio_and_the_wins_turn_round() -> None:
    rule = MetricRule("throughput", better="higher")
    found = row({"metrics": {"throughput": 7}, "pairs": pairs((100, 50), (101, 50), (50, 90))}, rule)
    assert (found.wins, found.pairs, round(found.ratio or 0, 2)) == (2, 3, 2.1)


@pytest.mark.parametrize(
    ("signal", "line"),
    [("success", "  1 ✓ done            read_file"), ("fail", "  1 × x               read_file")],
)
def test_a_plan_that_nothing_measures_is_done_and_not_measured(signal: str, line: str) -> None:
    history = History()
    for kind, given in (
        ("plan", {"candidates": [{"tool": "read_file", "args": {"path": "a"}}]}),
        ("select", {"i": 0, "n": 1}),
        ("act", {"outcome": "exited", "exit": 0}),
        ("route", {"signal": signal, "to": "read/", "code": "x" if signal == "fail" else ""}),
    ):
        history.feed(Record(kind, "proposal", given, task="read", step="p"))
    (found,) = history.rows
    assert candidate_line(found) == line
    assert found.trial().outcome == ("measured" if signal == "success" else "fail")


@pytest.mark.parametrize(
    ("values", "bars"),
    [([], ""), ([3.0], ""), ([3.0, 3.0], ""), ([9.0, 5.0, 2.0], "█▄▁"), ([-1.0, 1.0], "▁█"),
     (list(map(float, range(40))), "▁▂▂▃▄▄▅▅▆▇▇█")],
)  # fmt: skip
def test_the_course_of_the_best_is_a_row_of_bars(values: list[float], bars: str) -> None:
    assert trend(values) == bars
