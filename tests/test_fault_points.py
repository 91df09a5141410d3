"""The line that `make faults` prints: what tests have counted, over processes, and what has failed."""

from __future__ import annotations

from pytest import TestReport

from fault_points import PROPERTY, summary


def report(name: str, when: str, outcome: str = "passed", **points: int) -> TestReport:
    found = [(PROPERTY, points)] if points else []
    return TestReport(name, ("", 0, name), {}, outcome, None, when, user_properties=found)  # type: ignore[arg-type]


def test_points_are_added_by_kind_and_a_failed_test_is_a_violation() -> None:
    reports = [
        report("a", "call"),
        report("a", "teardown", killed=1200, cut=3),
        report("b", "call", "failed"),
        report("b", "teardown", killed=2),
        report("without points", "call", "failed"),
    ]
    said = summary(reports)  # type: ignore[arg-type]
    assert said == "fault points: 1,205 (killed 1,202, cut 3) in 2 tests, 1 of them with a violation"


def test_where_nothing_was_counted_nothing_is_printed() -> None:
    assert summary([report("a", "call"), object()]) == ""
