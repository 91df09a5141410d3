"""Budgets of experiments on the platform: the estimate, the end when one is used up, what is missing then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spak.evolve.experiments import Budget
from spakweb.ground.audit.models import Event
from spakweb.store.runs.models import Run, State
from spakweb.store.suites.models import Experiment, Suite
from spakweb.work.suites import actions, budget, report
from spakweb.work.worker import execute

Ran = Callable[..., Run]
GOOD = """
task Write {
  step one: tool.write_file { path: "a.txt" content: "good" }
  success: file_contains("a.txt", "good")
}
"""


@pytest.fixture
def kept(cast: Any, ran: Ran) -> tuple[Suite, Run]:
    run = ran(GOOD)
    costs(run)
    suite = actions.make(cast["bob"], cast.team, "Nightly")
    actions.keep(cast["bob"], run, suite, "first")
    return suite, run


def costs(run: Run) -> None:
    """As if it had asked a model."""
    run.refresh_from_db()
    run.summary = {**(run.summary or {}), "tokens": {"used": 100}, "cost": 2_000_000, "elapsed_ms": 1_500}
    run.save(update_fields=["summary"])


def begun(cast: Any, kept: tuple[Suite, Run], **limits: Any) -> Experiment:
    suite, run = kept
    return actions.begin(
        cast["bob"], suite, [run.version], 4, [suite.cases.get().split], budget=Budget(**limits)
    )


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        ({"runs": 2}, "runs"),
        ({"tokens": 150}, "tokens"),
        ({"cost_nanousd": 4_000_000}, "money"),
        ({"seconds": 3.0}, "time"),
    ],
    ids=str,
)
def test_what_has_not_begun_is_missing_when_a_budget_is_used_up(
    cast: Any, kept: tuple[Suite, Run], limits: dict[str, Any], word: str
) -> None:
    made = begun(cast, kept, **limits)
    keys = list(made.cells.order_by("pk").values_list("run__key", flat=True))
    execute.advance(keys[0])
    costs(Run.objects.get(key=keys[0]))
    assert budget.enforce() == 0
    assert report.of(made).open == 3
    execute.advance(keys[1])
    costs(Run.objects.get(key=keys[1]))
    assert (budget.enforce(), budget.enforce()) == (2, 0)
    made.refresh_from_db()
    assert made.ran_out == word
    shown = report.of(made)
    (row,) = shown.report.specs
    assert (shown.open, row.passed, len(row.missing), row.void, shown.report.stopped) == (0, 2, 2, (), word)
    event = Event.objects.get(action="experiment.ran_out")
    assert event.detail == {"budget": word, "cancelled": 2}
    page = cast.client("vera").get(
        reverse("spak-experiment", args=[cast.team.slug, made.suite.slug, made.number])
    )
    assert f"Budget of {word} used up" in page.content.decode()
    assert "every 3s" not in page.content.decode()


def test_a_run_under_way_ends_by_itself(cast: Any, kept: tuple[Suite, Run]) -> None:
    made = begun(cast, kept, runs=1)
    first, second, *_ = made.cells.order_by("pk").values_list("run__key", flat=True)
    execute.advance(first)
    Run.objects.filter(key=second).update(state=State.RUNNING, count=1)
    assert budget.enforce() == 2
    made.refresh_from_db()
    assert Run.objects.get(key=second).state == State.RUNNING
    assert report.of(made).open == 1
    page = cast.client("vera").get(
        reverse("spak-experiment", args=[cast.team.slug, made.suite.slug, made.number])
    )
    assert "every 3s" in page.content.decode()


def test_without_a_budget_nothing_is_cancelled(cast: Any, kept: tuple[Suite, Run]) -> None:
    made = begun(cast, kept)
    execute.advance(made.cells.first().run.key)
    assert budget.enforce() == 0
    assert report.of(made).open == 3


def test_the_form_shows_an_estimate_and_takes_a_budget(cast: Any, kept: tuple[Suite, Run]) -> None:
    suite, run = kept
    split = suite.cases.get().split
    page = cast.client("bob").get(reverse("spak-suite", args=[cast.team.slug, suite.slug])).content.decode()
    assert f"One run of each {split} case under one version: 100 tokens, $0.0020, 1.5 s" in page
    where = reverse("spak-experiment-begin", args=[cast.team.slug, suite.slug])
    form = {"base": run.version.pk, "n": 2, "split": split, "most_tokens": "5000", "most_usd": "0.25"}
    assert cast.client("bob").post(where, form).status_code == 302
    made = Experiment.objects.get()
    assert made.plan["budget"] == {"runs": 0, "tokens": 5000, "cost_nanousd": 250_000_000, "seconds": 0.0}
    shown = cast.client("bob").get(reverse("spak-experiment", args=[cast.team.slug, suite.slug, made.number]))
    assert "tokens: 0 of 5,000" in shown.content.decode()


@pytest.mark.parametrize(
    "wrong", [{"most_usd": "1e9"}, {"most_usd": "-1"}, {"most_usd": "."}, {"most_tokens": "many"}], ids=str
)
def test_a_budget_that_is_none_begins_nothing(
    cast: Any, kept: tuple[Suite, Run], wrong: dict[str, str]
) -> None:
    suite, run = kept
    where = reverse("spak-experiment-begin", args=[cast.team.slug, suite.slug])
    form = {"base": run.version.pk, "n": 1, "split": suite.cases.get().split, **wrong}
    answer = cast.client("bob").post(where, form)
    assert answer.status_code == 400
    assert "web.experiment" in answer.content.decode()
    assert not Experiment.objects.exists()
