"""What tasks of two runs differ by: visits, time, tokens, cost and the best value of a metric."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from spak.records import Authority, Kind, Record, decode, place
from spakweb.face.runs import compare, run_parts, timeline, times
from spakweb.store.ledger.projection import Projection, tokens_used
from spakweb.store.runs.models import Run, RunRecord

TOLD = list[tuple[str, int, dict[str, Any], dict[str, Any]]]
FIRST: TOLD = [
    ("a", 1000, {}, {"tokens": 100, "cost_nanousd": 2_000_000_000, "ms": 2_000}),
    ("a", 3000, {"best": 8.0}, {}),
    ("b", 3000, {}, {}),
    ("a", 4000, {}, {"tokens": 7, "cost_nanousd": "odd", "ms": 500}),
    ("a", 4500, {"best": 6.5}, {}),
]
SECOND: TOLD = [("a", 1000, {}, {"ms": 500}), ("a", 1500, {"best": 7}, {}), ("c", 1500, {}, {})]


@pytest.fixture
def recorded(cast: Any) -> Callable[[str, TOLD], Run]:
    def make(key: str, told: TOLD) -> Run:
        run: Run = Run.objects.create(team=cast.team, key=key, name=key, count=len(told), state="failed")
        before = ""
        for seq, (task, at, body, side) in enumerate(told):
            kind, authority = (Kind.ROUTE, Authority.COMMIT) if body else (Kind.ACT, Authority.PROPOSAL)
            placed, line = place(Record(kind, authority, body, task, at=at, side=side), seq, before)
            before = placed.hash
            RunRecord.objects.create(
                run=run, seq=seq, kind=kind, authority=authority, task=task, at=at, line=line
            )
        return run

    return make


def test_tasks_side_by_side(cast: Any, recorded: Callable[[str, TOLD], Run]) -> None:
    one, two = recorded("one", FIRST), recorded("two", SECOND)
    a, b, c = compare.tasks(one, two)
    assert [task["visits"] for task in (a, b, c)] == [[2, 1], [1, 0], [0, 1]]
    time, tokens, price, best = a["figures"]
    assert (time["one"], time["two"], time["delta"]) == ("2.5 s", "500 ms", "-2.0 s")
    assert (tokens["one"], tokens["two"], tokens["delta"]) == ("107", "0", "-107")
    assert (price["one"], price["delta"]) == ("$2.00", "-$2.00")
    assert (best["one"], best["two"], best["delta"]) == ("6.5", "7", "+0.5")
    assert [figure["said"] for figure in b["figures"]] == [False] * 4


def test_what_a_run_cost_is_the_same_on_every_page(cast: Any, recorded: Callable[[str, TOLD], Run]) -> None:
    """Of an engine that says no usage the tokens are those that the runner counted, as in a BUDGET."""
    sides: list[dict[str, Any]] = [
        {"tokens": 40, "cost_nanousd": 3_000},
        {"tokens": 12, "logprobs": "not available"},
        {"usage": {"input": 5}, "by": "alice"},
    ]
    run = recorded("one", [("a", at, {}, side) for at, side in enumerate(sides)])
    seen = Projection()
    for line in run.records.order_by("seq").values_list("line", flat=True):
        seen.feed(decode(bytes(line)))
    assert (tokens_used(seen.data), seen.data["cost"]) == (52, 3_000)
    assert (seen.data["answers"], seen.data["priced"]) == (2, 1)
    (task,) = compare.tasks(run, run)
    assert [figure["one"] for figure in task["figures"] if figure["label"] == "Tokens"] == ["52"]
    begun = Projection({"tokens": {"input": 30, "output": 10, "cached": 0}})
    assert tokens_used(begun.data) == 40, "a summary of before"
    begun.feed(decode(bytes(run.records.get(seq=1).line)))
    assert tokens_used(begun.data) == 52


def test_one_definition_of_time_holds_on_every_page(cast: Any, recorded: Callable[[str, TOLD], Run]) -> None:
    """Working time is that of the records, which BUDGET counts; with waiting it is named so."""
    made = recorded("one", FIRST)
    made.summary, made.ended_at = {"elapsed_ms": 2_500}, made.made_at + timedelta(minutes=6)
    made.started_at = made.made_at
    made.save()
    rows = {row["name"]: row["one"] for row in compare.totals(made, made)}
    assert (rows["working time"], rows["time with waiting"]) == ("2.5 s", "6 min")
    assert run_parts.head(made)["bars"][2]["used"] == "2.5 s"
    by_task = sum(spent.time for spent in compare._spent(made).values())
    assert by_task == times.working(made) == 2_500


def test_a_task_that_goes_on_to_itself_was_entered_each_time(
    cast: Any, recorded: Callable[[str, TOLD], Run]
) -> None:
    one, two = recorded("one", FIRST), recorded("two", SECOND)
    one.summary = {"nodes": {"a": {"visits": 48}}}
    assert compare.tasks(one, two)[0]["visits"] == [48, 1]


def test_the_newest_run_of_the_same_spec_is_offered(cast: Any) -> None:
    made = [
        Run.objects.create(team=cast.team, version=version, key=key, name=key, count=1)
        for key, version in (("old", cast.spec.head), ("like", cast.spec.head), ("none", None))
    ]
    address = reverse("spak-run-compare", args=[cast.team.slug])
    for one, two in ((made[0], "like"), (made[1], "old"), (made[2], None)):
        assert cast.client("vera").get(address, {"one": one.key}).context["two"] == two


def test_old_runs_stay_chosen(cast: Any, recorded: Callable[[str, TOLD], Run]) -> None:
    recorded("one", FIRST), recorded("two", SECOND)
    for number in range(compare.CHOICES):
        Run.objects.create(team=cast.team, key=f"later-{number}", name="later", count=1)
    address = reverse("spak-run-compare", args=[cast.team.slug])
    text = cast.client("vera").get(address, {"one": "one", "two": "two"}).content.decode()
    assert '<option value="one" selected>' in text and '<option value="two" selected>' in text


def test_what_passed_before_a_fork_is_no_work_of_its_task(
    cast: Any, recorded: Callable[[str, TOLD], Run]
) -> None:
    """The proposals that it took over keep their clocks."""
    made = recorded("made", [("a", 1000, {}, {}), ("a", 1200, {}, {})])
    made.parent = recorded("parent", FIRST)
    hour = int(made.made_at.timestamp() * 1000)
    for seq, kind, at in ((2, Kind.PERMIT, 1300), (3, Kind.ACT, hour + 400)):
        authority = Authority.COMMIT if kind == Kind.PERMIT else Authority.PROPOSAL
        body = {"act": "tool", "name": "run", "allow": True} if kind == Kind.PERMIT else {}
        _, line = place(Record(kind, authority, body, "a", "s", at=at), seq, "")
        RunRecord.objects.create(
            run=made, seq=seq, kind=kind, authority=authority, task="a", step="s", at=at, line=line
        )
    (bar,) = timeline.bars_of(made)
    assert bar.end - bar.start == 400
