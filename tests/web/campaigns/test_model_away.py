"""A model that goes away and comes back: campaigns and experiments pause, and no candidate pays for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

import platform_campaigns as kit
from jobs_kit import at_once, swept, worked
from llm_stub import MODEL, Stub
from spak.evolve.campaigns import verify
from spakweb.ground import clock, rights
from spakweb.ground.errors import Refused
from spakweb.store.campaigns.models import Campaign, State
from spakweb.store.runs.models import Run
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Experiment, Suite
from spakweb.work.campaigns import actions, ledger, queue, steps
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import save_version
from spakweb.work.suites import actions as suites
from spakweb.work.suites import report
from spakweb.work.teams import tokens
from spakweb.work.worker import execute
from token_kit import program

World = tuple[Spec, Suite]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        stub.script = ["say yes"]
        (tmp_path / "spak.toml").write_text(
            f'[llm]\nmode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\nretries = 0\n'
            "connect_s = 300\n"  # a busy machine is not a model that is away
        )
        yield stub


@pytest.fixture
def asking(cast: Any, world: World, model: Stub) -> World:
    """A spec that asks its model, with a run of it."""
    spec, suite = world
    save_version(cast["alice"], spec, kit.ASKS, 1, "it asks")
    spec.refresh_from_db()
    run = start(cast["alice"], spec, mode="full_auto", backend="openai_compatible")
    execute.advance(run.key, kit.SLICE_S)
    run.refresh_from_db()
    assert run.state == "succeeded", run.reason  # proposers learn from it
    return spec, suite


def away(stub: Stub) -> None:
    stub.script = ["503"]


def back(stub: Stub) -> None:
    stub.script = ["say yes"]


def rest(minutes: int) -> None:
    """All that rests goes on resting for so long, however slow this machine is; below 0 its pause is over."""
    Run.objects.exclude(due=None).update(due=clock.now() + timedelta(minutes=minutes))


def states(rows: Any) -> set[str]:
    return set(rows.values_list("run__state", flat=True))


@pytest.mark.findings("E1")
@pytest.mark.parametrize("click", [False, True], ids=["by itself", "by a click"])
def test_a_campaign_waits_for_its_model(cast: Any, asking: World, model: Stub, click: bool) -> None:
    spec, suite = asking
    made = kit.begun(cast["bob"], spec, suite, backend="openai_compatible")
    for _ in range(2):
        assert kit.advance(made.pk) == "waiting"
        kit.run_all(made)
    kit.advance(made.pk)
    away(model)
    before = len(ledger.read(made).tested[0].pairs)
    assert before and states(made.asked.all()) == {"succeeded", "queued"}
    kit.run_all(made)
    assert states(made.asked.all()) == {"succeeded", "queued"}, "none failed, and none waits for a person"
    rest(5)

    page = cast.client("vera").get(reverse("spak-campaign", args=[cast.team.slug, made.number]))
    text = page.content.decode()
    assert "Paused" in text and "llm.server" in text and "It goes on by itself" in text
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])
    api = f"/api/v1/teams/{cast.team.slug}/campaigns/"
    shown = bob.get(f"{api}{made.number}/").json()
    assert shown["state"] == "paused" and shown["why"].startswith("llm.server: ")
    for state, count in (("paused", 1), ("running", 0)):
        assert len(bob.get(api, {"state": state}).json()["campaigns"]) == count
    kit.advance(made.pk)
    assert len(ledger.read(made).tested[0].pairs) == before, "no pair is lost meanwhile"

    back(model)
    if click:
        answer = cast.client("bob").post(
            reverse("spak-campaign-control", args=[cast.team.slug, made.number]), {"do": "resume"}
        )
        assert answer.status_code == 302
        assert not Run.objects.exclude(due=None).exists()
    else:
        rest(-1)
    assert queue.standing(made) == ("running", "")
    assert kit.finish(made) == "proposals"
    told = ledger.read(made)
    assert (told.tested[0].verdict, made.state) == ("fit", State.ENDED)
    assert {pair.outcome for pair in told.tested[0].pairs} == {0}
    undisturbed = kit.begun(cast["bob"], spec, suite, backend="openai_compatible")
    assert kit.finish(undisturbed) == "proposals"
    assert [(one.verdict, one.why) for one in ledger.read(undisturbed).tested] == [
        (one.verdict, one.why) for one in told.tested
    ]


@pytest.mark.findings("E1")
def test_runs_that_cannot_begin_wait_too_and_few_ask(cast: Any, asking: World, model: Stub) -> None:
    """Where the model is away before a run has a record; the others of the experiment rest with it."""
    spec, suite = asking
    made = suites.begin(cast["bob"], suite, [spec.head], 5, ["gate"], "ollama")  # none is installed here
    first, *others = [cell.run for cell in made.cells.select_related("run")]
    execute.advance(first.key)
    assert states(made.cells.all()) == {"queued"}
    for run in (first, *others):
        run.refresh_from_db()
        assert run.due is not None and run.reason.startswith("llm."), run.reason
        assert run.count == 0
    shown = report.of(made)
    assert (shown.open, shown.report.specs[0].void) == (5, ())


@pytest.mark.findings("E1")
def test_an_experiment_waits_and_goes_on(cast: Any, asking: World, model: Stub) -> None:
    spec, suite = asking
    versions = [spec.head, spec.versions.get(number=1)]
    undisturbed = suites.begin(cast["bob"], suite, versions, 2, ["gate"], "openai_compatible")
    run_cells(undisturbed)
    made = suites.begin(cast["bob"], suite, versions, 2, ["gate"], "openai_compatible")
    away(model)
    run_cells(made)
    rest(5)
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])
    here = f"/api/v1/teams/{cast.team.slug}/suites/{suite.slug}/experiments/{made.number}/"
    shown = bob.get(here).json()
    assert (shown["state"], shown["open"]) == ("paused", 2), "the version that asks no model has ended"
    assert shown["why"].startswith("llm.server: ")
    page = reverse("spak-experiment", args=[cast.team.slug, suite.slug, made.number])
    text = cast.client("bob").get(page).content.decode()
    assert "Paused" in text and "Try now" in text and "llm.server" in text
    back(model)
    assert bob.post(f"{here}resume/").json()["state"] == "running"
    run_cells(made)
    found, wanted = report.of(made).report, report.of(undisturbed).report
    assert (bob.get(here).json()["state"], [row.passed for row in found.specs]) == ("ended", [2, 2])
    assert [(one.verdict, one.p, one.unpaired, one.against) for one in found.comparisons] == [
        (one.verdict, one.p, one.unpaired, one.against) for one in wanted.comparisons
    ]


@pytest.mark.findings("E1")
def test_a_backend_that_is_not_there_is_refused_at_once(cast: Any, world: World) -> None:
    """It would be waited for without end."""
    spec, suite = world
    team, bob = cast.team.slug, cast.client("bob")
    token = program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])
    api = f"/api/v1/teams/{team}"
    versions = [{"spec": spec.slug, "version": 1}]
    for path, body in (
        (f"{api}/suites/{suite.slug}/experiments/", {"versions": versions, "splits": ["gate"]}),
        (f"{api}/specs/{spec.slug}/campaigns/", {"suite": suite.slug}),
    ):
        answer = token.post(path, {**body, "backend": "olama"}, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (400, "web.run_backend"), answer.json()
        assert "ollama" in answer.json()["hint"]
    form = {"base": spec.head.pk, "n": "1", "split": "gate", "backend": "olama"}
    answer = bob.post(reverse("spak-experiment-begin", args=[team, suite.slug]), form)
    assert answer.status_code == 400 and "web.run_backend" in answer.content.decode()
    with pytest.raises(Refused) as caught:
        kit.begun(cast["bob"], spec, suite, backend="olama")
    assert caught.value.code == "web.run_backend"
    assert not Experiment.objects.exists() and not Campaign.objects.exists()


@pytest.mark.findings("E1")
def test_cells_without_a_result_are_run_again(cast: Any, world: World) -> None:
    spec, suite = world
    made = suites.begin(cast["bob"], suite, [spec.head], 2, ["gate"])
    lost = made.cells.first()
    Run.objects.filter(pk=lost.run_id).update(state="cancelled", reason="run.cancelled", ended_at=clock.now())
    run_cells(made)
    assert [len(row.void) for row in report.of(made).report.specs] == [1]
    page = reverse("spak-experiment", args=[cast.team.slug, suite.slug, made.number])
    assert "Run again what gave no result" in cast.client("bob").get(page).content.decode()
    assert cast.client("vera").post(f"{page}resume/").status_code == 403
    assert cast.client("bob").post(f"{page}resume/").status_code == 302
    assert suites.resume(cast["bob"], made) == 0, "it is under way"
    assert report.of(made).open == 1
    run_cells(made)
    assert [(row.passed, row.void) for row in report.of(made).report.specs] == [(2, ())]
    assert made.cells.count() == 3


@pytest.mark.findings("E1")
def test_pairs_without_a_result_are_run_again(cast: Any, world: World) -> None:
    made = kit.begun(cast["bob"], *world)
    assert kit.advance(made.pk) == "waiting"
    keys = set(made.asked.values_list("run__key", flat=True))
    asked = Run.objects.filter(key__in=keys)
    asked.update(state="cancelled", reason="run.cancelled", ended_at=clock.now())
    assert kit.advance(made.pk) == "paused"
    assert swept(queue.STEP) == [], "a person looks why first"
    actions.resume(cast["bob"], made)
    assert kit.finish(made) == "proposals"
    told = ledger.read(made)
    assert (told.tested[0].verdict, verify(told, catalog())) == ("fit", [])
    assert not keys & {run for pair in told.tested[0].pairs for run in pair.runs}


@pytest.mark.findings("E1")
def test_a_proposer_that_is_away_is_asked_again(
    cast: Any, world: World, model: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "AWAY_S", 3600)
    made = kit.begun(cast["bob"], *world, proposer="model", asks="openai_compatible")
    away(model)
    assert kit.advance(made.pk).startswith("llm.server: ")
    made.refresh_from_db()
    assert queue.standing(made)[0] == "paused" and made.why.startswith("llm.server: ")
    assert made.state == State.RUNNING and worked(queue.STEP) == [], "not at once"
    assert at_once(queue.STEP) == [str(made.pk)]
    actions.resume(cast["bob"], made)
    model.script = ['say {"grammar_patch": "", "dsl_patch": [], "rationale": "x"}']
    assert kit.advance(made.pk) in ("paused", "proposals")
    made.refresh_from_db()
    assert not made.why.startswith("llm.")


def run_cells(experiment: Experiment) -> None:
    for cell in experiment.cells.exclude(run__state__in=("succeeded", "cancelled")).select_related("run"):
        execute.advance(cell.run.key, kit.SLICE_S)
