"""Counts the points at which tests killed, stopped, cut or filled something: `make faults` prints how many.

A test takes the fixture `fault_points` and adds one for each point whose checks have passed, by its kind. The
numbers travel with the reports of pytest, from each process that runs tests, and stand below its summary. A
test with a failed check counts as a violation, whatever it had counted before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

PROPERTY = "fault points"
FaultPoints = Counter[str]


@pytest.fixture
def fault_points(request: pytest.FixtureRequest) -> Iterator[FaultPoints]:
    """Points of this test by kind: killed, stopped, cut, frozen, disk full."""
    points: FaultPoints = Counter()
    yield points
    request.node.user_properties.append((PROPERTY, dict(points)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line, where a test has counted."""
    if text := summary([found for group in terminalreporter.stats.values() for found in group]):
        terminalreporter.write_line(text)


def summary(reports: list[object]) -> str:
    """The line for these reports; empty where no test has counted."""
    kept = [report for report in reports if isinstance(report, pytest.TestReport)]
    counted = {
        report.nodeid: dict(report.user_properties)[PROPERTY]
        for report in kept
        if report.when == "teardown" and PROPERTY in dict(report.user_properties)
    }
    if not counted:
        return ""
    failed = {report.nodeid for report in kept if report.failed} & set(counted)
    points: FaultPoints = Counter()
    for found in counted.values():
        points.update(found)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in points.most_common())
    return (
        f"fault points: {points.total():,} ({kinds}) in {len(counted)} tests, "
        f"{len(failed)} of them with a violation"
    )
