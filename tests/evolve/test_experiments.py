"""Experiments without runs: order and seeds of cells, ledger and resume, and what a report says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spak.errors import OuterError
from spak.evolve.experiments import (
    Budget,
    Cell,
    Done,
    Experiment,
    Plan,
    Report,
    cells,
    render,
    seed_of,
    summarise,
)
from spak.evolve.experiments.run import estimate

CASES = {f"c{number:02}": f"h{number}" for number in range(12)}
PLAN = Plan("suite", "hash of it", CASES, {"base": "B", "new": "N"}, {"base": "b", "new": "n"})
Passes = Callable[[Cell], bool]


def done(cell: Cell, passes: bool, **more: object) -> Done:
    return replace(
        Done(f"run-{cell.key}", "pass" if passes else "fail", ran=PLAN.specs[cell.spec], ms=5), **more
    )  # type: ignore[arg-type]


def all_of(plan: Plan, passes: Passes) -> dict[Cell, Done]:
    return {cell: done(cell, passes(cell)) for cell in cells(plan)}


def worker(passes: Passes, most: int = 1_000) -> Callable[..., Iterator[tuple[Cell, Done | None]]]:
    """Work that makes no runs, and is stopped after `most` cells."""

    def work(
        todo: Iterable[tuple[Cell, str]], begun: Callable[[Cell, str], None], more: Callable[[], bool]
    ) -> Iterator[tuple[Cell, Done | None]]:
        for number, (cell, known) in enumerate(todo):
            if not more():
                return
            if not known:
                begun(cell, f"run-{cell.key}")
            if number == most:
                yield cell, None
                return
            yield cell, done(cell, passes(cell), tokens=10)

    return work


def test_cells_leave_pairs_and_seeds_are_the_same_for_both_specs() -> None:
    plan = replace(PLAN, n=2)
    found = cells(plan)
    assert len(found) == len(set(found)) == 48
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert (first.case, first.k) == (second.case, second.k)
    assert {cell.spec for cell in found[::2]} == {"base", "new"}, "the order within a pair is drawn"
    assert seed_of("h", 7, 0) == 7
    assert len({seed_of("h", 7, k) for k in range(50)} | {seed_of("g", 7, 1)}) == 51


def test_an_experiment_stops_goes_on_and_gives_what_an_unbroken_one_gives(tmp_path: Path) -> None:
    whole = Experiment.create(tmp_path, "whole", PLAN)
    assert whole.advance(tmp_path, worker(lambda cell: True), lambda *seen: None) == ""
    broken = Experiment.create(tmp_path, "broken", PLAN)
    assert broken.advance(tmp_path, worker(lambda cell: True, 5), lambda *seen: None) == "interrupted"
    again = Experiment.read(tmp_path, "broken")
    assert (len(again.done), len(again.begun), again.stopped) == (5, 1, "interrupted")
    shown: list[Cell] = []
    assert again.advance(tmp_path, worker(lambda cell: True), lambda cell, item: shown.append(cell)) == ""
    assert len(shown) == 19
    read = Experiment.read(tmp_path, "broken")
    assert (read.done, read.stopped, read.begun) == (whole.done, "", {})
    assert Experiment.read(tmp_path, "whole").plan == PLAN


def test_a_budget_stops_between_cells_and_what_is_missing_is_left_out(tmp_path: Path) -> None:
    for budget, ran in ((Budget(runs=3), 3), (Budget(tokens=45), 5), (Budget(seconds=0.02), 4)):
        plan = replace(PLAN, budget=budget)
        found = Experiment.create(tmp_path, f"e{ran}", plan)
        why = found.advance(tmp_path, worker(lambda cell: True), lambda *seen: None)
        assert (len(found.done), why in ("runs", "tokens", "time")) == (ran, True)
        report = summarise("e", "h", plan, found.done, why)
        assert report.comparison is not None
        assert report.comparison.verdict == "no_difference"
        assert (report.comparison.losses, report.comparison.ties) == (0, ran // 2)
        assert len(report.comparison.unpaired) == 24 - ran
        assert not report.ok
        assert "missing" in render.text(report)


def test_an_experiment_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OuterError) as found:
        Experiment.read(tmp_path, "none")
    assert found.value.code == "outer.experiment"


def test_equal_specs_show_no_difference_and_better_ones_do() -> None:
    equal = summarise("e", "h", PLAN, all_of(PLAN, lambda cell: cell.case < "c06")).comparison
    assert equal is not None
    assert (equal.verdict, equal.ties, equal.needed_n) == ("no_difference", 12, None)
    better = summarise("e", "h", PLAN, all_of(PLAN, lambda cell: cell.spec == "new" or cell.case < "c04"))
    assert better.comparison is not None
    assert (better.comparison.verdict, better.comparison.wins, better.comparison.p) == ("better", 8, 2 / 256)
    worse = summarise("e", "h", PLAN, all_of(PLAN, lambda cell: cell.spec == "base" or cell.case < "c04"))
    assert worse.comparison is not None
    assert worse.comparison.verdict == "worse"
    few = summarise("e", "h", PLAN, all_of(PLAN, lambda cell: cell.spec == "new" or cell.case < "c10"))
    assert few.comparison is not None
    assert (few.comparison.verdict, few.comparison.wins) == ("no_difference", 2)
    assert few.comparison.needed_n is not None
    assert "would show a difference" in render.text(few)


def test_many_runs_of_one_case_are_one_observation() -> None:
    plan = replace(PLAN, n=50, cases={"only": "h"})
    found = summarise("e", "h", plan, all_of(plan, lambda cell: cell.spec == "new")).comparison
    assert found is not None
    assert (found.verdict, found.wins) == ("no_difference", 1)


def test_a_void_cell_passes_for_nobody_and_helps_no_candidate() -> None:
    cell = Cell("c03", "base", 0)
    found = all_of(PLAN, lambda item: item.spec == "new")
    report = summarise("e", "h", PLAN, {**found, cell: Done("r", "void", "no sandbox", ran="B")})
    assert report.specs[0].void == ("c03/base/0: no sandbox",)
    assert report.comparison is not None
    assert (report.comparison.wins, report.comparison.ties) == (11, 1), "the base's void is no win"
    assert report.comparison.against == ("c03/base/0",)


@pytest.mark.findings("E2")
def test_there_is_no_verdict_where_neither_side_has_a_result() -> None:
    found = all_of(PLAN, lambda item: True)
    away = {cell: Done("r", "void", "nobody answers") for cell in found if cell.case < "c06"}
    report = summarise("e", "h", PLAN, {**found, **away})
    assert report.comparison is not None
    assert (report.comparison.verdict, report.comparison.losses, report.comparison.ties) == (
        "no_difference",
        0,
        6,
    )
    assert len(report.comparison.unpaired) == 12 and not report.ok
    void = summarise("e", "h", PLAN, {cell: Done("r", "void", "nobody answers") for cell in found})
    assert void.comparison is not None
    assert (void.comparison.verdict, void.comparison.interval) == ("no_result", None)
    assert "new against base: nothing to compare" in render.text(void)
    nothing = summarise("e", "h", PLAN, {})
    assert nothing.comparison is not None and nothing.comparison.verdict == "no_result"
    assert "no run has a result" in render.text(nothing)


@pytest.mark.findings("E1", "E2")
def test_a_candidate_loses_by_a_void_run_only_where_it_is_to_blame() -> None:
    found = all_of(PLAN, lambda item: True)
    cell = Cell("c03", "new", 0)
    own = summarise("e", "h", PLAN, {**found, cell: Done("r", "void", "it took longer than --timeout")})
    assert own.comparison is not None
    assert (own.comparison.losses, own.comparison.against) == (1, ("c03/new/0",))
    ended = summarise("e", "h", PLAN, {**found, cell: Done("r", "void", "it was cancelled", of_host=True)})
    assert ended.comparison is not None
    assert (ended.comparison.losses, ended.comparison.unpaired) == (0, ("c03/new/0",))
    assert (ended.specs[1].passed, ended.specs[1].n) == (11, 11), "a rate of those that ran"
    assert not ended.ok


@pytest.mark.findings("B11")
def test_each_candidate_has_a_verdict_and_the_chance_of_an_error_is_shared() -> None:
    specs = {"base": "B", "one": "N", "two": "T"}
    plan = replace(PLAN, specs=specs, files=specs)
    runs = {
        cell: replace(done(Cell(cell.case, "base", 0), cell.spec == "one"), ran=specs[cell.spec])
        for cell in cells(plan)
        if cell.case < "c06"
    }
    report = summarise("e", "h", plan, runs)
    assert report.comparison is None
    assert [(item.candidate, item.wins, item.alpha) for item in report.comparisons] == [
        ("one", 6, 0.025),
        ("two", 0, 0.025),
    ]
    assert [item.verdict for item in report.comparisons] == ["no_difference"] * 2, "p is 0.031"
    assert len(report.to_json()["comparisons"]) == 2
    for page in (render.text(report), render.html(report, str)):
        assert "one against base" in page and "two against base" in page and "97.5 % from" in page


@pytest.mark.findings("B23")
@pytest.mark.parametrize("count", [2, 3])
def test_each_spec_comes_as_often_first_as_last(count: int) -> None:
    plan = replace(PLAN, specs={f"s{number}": "h" for number in range(count)}, n=2)
    found = cells(plan)
    for k in range(2):
        rounds = [cell for cell in found if cell.k == k]
        for place in range(count):
            names = [cell.spec for cell in rounds[place::count]]
            assert [names.count(spec) for spec in plan.specs] == [12 // count] * count


@pytest.mark.findings("B23")
def test_no_interval_is_given_for_a_difference_of_time() -> None:
    found = all_of(PLAN, lambda item: True)
    slow = {cell: replace(item, ms=9 + len(cell.case), tokens=number)
            for number, (cell, item) in enumerate(found.items()) if cell.spec == "new"}  # fmt: skip
    report = summarise("e", "h", PLAN, {**found, **slow})
    assert report.comparison is not None
    assert report.comparison.figures["ms"]["interval"] is None
    assert report.comparison.figures["tokens"]["interval"] is not None
    assert "not tested, other work on the machine changes it" in render.text(report)


def test_a_cell_that_ran_another_spec_is_void() -> None:
    cell = Cell("c03", "new", 0)
    found = all_of(PLAN, lambda item: True)
    report = summarise("e", "h", PLAN, {**found, cell: replace(found[cell], ran="B")})
    assert report.specs[1].passed == 11
    assert "another spec ran" in report.specs[1].void[0]


def test_non_inferiority_is_not_had_for_nothing() -> None:
    plan = replace(PLAN, non_inferior=0.02)
    found = summarise("e", "h", plan, all_of(plan, lambda cell: True))
    assert found.comparison is not None
    assert found.comparison.non_inferior is not None
    assert found.comparison.non_inferior["holds"] is False, "twelve equal cases say nothing about two points"
    assert not found.ok
    many = replace(plan, cases={f"c{number}": "h" for number in range(300)})
    held = summarise("e", "h", many, all_of(many, lambda cell: True))
    assert held.ok
    lost = summarise(
        "e", "h", many, all_of(many, lambda cell: cell.spec == "base" or int(cell.case[1:]) % 5 > 0)
    )
    assert not lost.ok


def test_flaky_cases_and_pass_power_are_named() -> None:
    plan = replace(PLAN, n=4, specs={"base": "B"}, files={"base": "b"})
    report = summarise("e", "h", plan, all_of(plan, lambda cell: cell.case != "c01" or cell.k % 2 == 0))
    assert report.specs[0].flaky == ("c01",)
    assert report.specs[0].power[0] == pytest.approx(46 / 48)
    assert report.specs[0].power[3] == pytest.approx(11 / 12)


def test_junit_and_html_are_well_formed_whatever_runs_wrote() -> None:
    found = all_of(PLAN, lambda cell: cell.spec == "new")
    cell = Cell("c03", "base", 0)
    bad = {**found, cell: replace(found[cell], why='<script>&"\x00\x1b[31m\udcff\nx')}
    del bad[Cell("c04", "new", 0)]
    report = summarise("e", "h", PLAN, bad)
    root = ElementTree.fromstring(render.junit(report))
    assert [(suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in root] == [
        ("12", "0", "0"),
        ("13", "1", "0"),
    ]
    assert [
        found.text
        for found in root.iterfind("./testsuite/testcase/system-out")
        if "<script>" in (found.text or "")
    ]
    page = render.html(report, lambda run: f"runs/{run}")
    assert '<a href="runs/run-c03/base/0">' in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.findings("B10")
@pytest.mark.parametrize(
    "passes, margin, red",
    [
        (lambda cell: cell.spec == "new", None, []),
        (lambda cell: cell.spec == "base", None, [("new", "verdict")]),
        (lambda cell: False, None, []),
        (lambda cell: True, 0.5, []),
        (lambda cell: cell.spec == "base", 0.5, [("new", "verdict")]),
    ],
    ids=["better", "worse", "equal", "non-inferior", "inferior"],
)
def test_junit_of_a_comparison_is_red_where_its_verdict_is(
    passes: Passes, margin: float | None, red: list[tuple[str, str]]
) -> None:
    plan = replace(PLAN, non_inferior=margin)
    report = summarise("e", "h", plan, all_of(plan, passes))
    assert (reds(report), report.ok) == (red, not red)


@pytest.mark.findings("B10")
def test_junit_of_one_spec_is_red_where_a_run_has_not_passed() -> None:
    plan = replace(PLAN, specs={"base": "B"}, files={"base": "b"})
    found = all_of(plan, lambda cell: cell.case != "c01")
    del found[Cell("c02", "base", 0)]
    assert reds(summarise("e", "h", plan, found)) == [("base", "c01#1"), ("base", "c02#1")]
    assert not reds(summarise("e", "h", plan, all_of(plan, lambda cell: True)))


def test_what_stopped_in_the_middle_is_red_and_says_why() -> None:
    plan = replace(PLAN, non_inferior=0.5)
    found = all_of(plan, lambda cell: True)
    assert summarise("e", "h", plan, found).ok
    part = {cell: one for cell, one in found.items() if cell.case != "c07"}
    report = summarise("e", "h", plan, part, "llm.unreachable: no server")
    assert (report.comparison is not None) and report.comparison.non_inferior["holds"]  # type: ignore[index]
    assert (report.ok, reds(report)) == (False, [("new", "verdict"), ("e", "stopped")])
    assert 'message="llm.unreachable: no server"' in render.junit(report)
    spent = summarise("e", "h", plan, part, "runs")
    assert "stopped: the budget of runs is used up\n" in render.text(spent)
    assert 'message="the budget of runs is used up"' in render.junit(spent)
    assert not summarise("e", "h", plan, part).ok, "pairs that are still to come decide too"
    cell = Cell("c07", "new", 0)  # a run without a result, whose second try the host could not make
    again = {**found, cell: replace(found[cell], outcome="void")}
    assert reds(summarise("e", "h", plan, again, "workspace.full: no room")) == [("e", "stopped")]
    assert summarise("e", "h", plan, found, "stopped").ok, "every result is there"


def reds(report: Report) -> list[tuple[str | None, str | None]]:
    """The tests of the JUnit report with a failure or an error."""
    tests = ElementTree.fromstring(render.junit(report)).iter("testcase")
    return [
        (test.get("classname"), test.get("name"))
        for test in tests
        if {child.tag for child in test} & {"failure", "error"}
    ]


def test_an_estimate_names_what_it_does_not_know() -> None:
    plan = replace(PLAN, n=2)
    found = estimate(plan, {"c00": {"tokens": 10, "cost_nanousd": 5, "ms": 100}})
    assert found == {"runs": 48, "tokens": 40, "cost_nanousd": 20, "ms": 400, "unknown": 44}
