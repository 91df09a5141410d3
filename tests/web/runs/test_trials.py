"""Runs of experiments and campaigns: apart from the runs of people, and answered by no person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.runs import dashboards
from spakweb.ground.access import can
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team, User
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import SpecVersion
from spakweb.store.suites.models import Experiment, Suite
from spakweb.work.operate import demo
from spakweb.work.runs import actions as acts
from spakweb.work.specs.actions import create_spec, save_version
from spakweb.work.suites import actions, case_runs, report
from spakweb.work.teams import tokens
from spakweb.work.worker import execute
from token_kit import program

Ran = Callable[..., Run]
ALL = ("train", "gate", "sealed")
BAD = 'task Look { step read: tool.read_file { path: "missing.txt" } }'


HELLO = 'task Hello { step greet: tool.write_file { path: "hello.txt" content: "Hello" } }'
ASKING = """
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
}
"""


def asking(cast: Any) -> SpecVersion:
    head: SpecVersion = create_spec(cast["alice"], cast.team, "asking", ASKING).head
    return head


def suite_of(cast: Any, run: Run) -> Suite:
    suite = actions.make(cast["bob"], cast.team, "Nightly")
    actions.keep(cast["bob"], run, suite, "first")
    return suite


def begun(cast: Any, run: Run, **more: Any) -> Experiment:
    return actions.begin(cast["bob"], suite_of(cast, run), [run.version], 1, ALL, **more)


def only_run(experiment: Experiment) -> Run:
    run: Run = experiment.cells.get().run
    execute.advance(run.key)
    run.refresh_from_db()
    return run


@pytest.mark.findings("B12")
def test_runs_of_experiments_are_apart_unless_they_are_asked_for(cast: Any, ran: Ran) -> None:
    mine = ran(BAD)
    trial = only_run(begun(cast, mine))
    assert (mine.trial, trial.trial, trial.state) == ("", "experiment", "failed")
    vera, team = cast.client("vera"), cast.team.slug

    def page(name: str, query: str = "") -> str:
        text: str = vera.get(reverse(name, args=[team]) + query).content.decode()
        return text

    listed = page("spak-run-list")
    assert mine.key in listed and trial.key not in listed
    asked = page("spak-run-list", "?trials=1")
    assert mine.key not in asked and trial.key in asked
    assert "label=experiment%20nightly%201&amp;trials=1" in asked
    choice = page("spak-run-compare")
    assert mine.key in choice and trial.key not in choice
    assert [(run.key, alike) for run, alike in dashboards.home(cast.team)["went_wrong"]] == [(mine.key, 1)]
    assert [one.count for one in dashboards.health(cast.team)] == [1]
    assert trial.key not in str(vera.get(reverse("spak-api-places"), {"team": team}).json())


@pytest.mark.findings("B12")
def test_programs_get_all_runs_unless_they_say_which(cast: Any, ran: Ran) -> None:
    mine = ran(BAD)
    trial = only_run(begun(cast, mine))
    path = reverse("spak-api-runs", args=[cast.team.slug])
    alice = program(tokens.make(cast["alice"], "ci", 7, cast.team, ["look"])[1])
    for query, keys in (
        ({}, [trial.key, mine.key]),
        ({"trials": "0"}, [mine.key]),
        ({"trials": "1"}, [trial.key]),
    ):
        found = alice.get(path, query).json()["runs"]
        assert [one["key"] for one in found] == keys
    assert [one["trial"] for one in found] == ["experiment"]
    assert alice.get(path, {"trials": "2"}).status_code == 400


@pytest.mark.findings("B2")
def test_a_run_that_asks_a_person_is_void(cast: Any, ran: Ran) -> None:
    made = begun(cast, ran(BAD))
    other = actions.begin(cast["bob"], made.suite, [asking(cast)], 1, ALL)
    run = only_run(other)
    assert (run.state, run.reason) == ("cancelled", "web.trial_asks: task Talk asks a person")
    shown = report.of(other)
    assert (shown.open, [row.passed for row in shown.report.specs]) == (0, [0])
    assert "web.trial_asks" in shown.report.specs[0].void[0]
    assert run.key not in str(dashboards.home(cast.team))


@pytest.mark.findings("B2")
@pytest.mark.parametrize("backend", ["", "manual"])
def test_an_experiment_that_is_known_to_ask_a_person_is_refused(cast: Any, ran: Ran, backend: str) -> None:
    run = ran(ASKING)
    acts.ask(cast["alice"], run, "answer", run.summary["waiting"]["id"], text="yes")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == "succeeded"
    suite = suite_of(cast, run)
    case, runs = suite.cases.get(), Run.objects.count()
    for begin in (
        lambda: actions.begin(cast["bob"], suite, [run.version], 1, ALL, backend),
        lambda: case_runs.require_unattended([case], [run.version], backend),
    ):
        with pytest.raises(Refused, match="asks a person, who answered the run of case first") as caught:
            begin()
        assert (caught.value.code, caught.value.hint) == (
            "web.trial_asks",
            "Choose a backend, or cases with a recording.",
        )
    assert Run.objects.count() == runs
    assert actions.begin(cast["bob"], suite, [run.version], 1, ALL, "ollama").cells.count() == 1
    silent = create_spec(cast["alice"], cast.team, "silent", BAD).head
    assert actions.begin(cast["bob"], suite, [silent], 1, ALL, backend).cells.count() == 1


@pytest.mark.findings("B2")
@pytest.mark.parametrize("kind", ["answer", "call", "approve", "deny"])
def test_no_person_answers_a_run_of_an_experiment(cast: Any, ran: Ran, kind: str) -> None:
    """Neither one that waits since an older version of the platform."""
    run = ran(ASKING)
    Run.objects.filter(pk=run.pk).update(trial="experiment")
    run.refresh_from_db()
    of = run.summary["waiting"]["id"]
    with pytest.raises(Refused) as caught:
        acts.ask(cast["alice"], run, kind, of)
    assert (caught.value.code, caught.value.status) == ("web.trial_answer", 409)
    page = "answer" if kind in ("answer", "call") else "decide"
    address = reverse(f"spak-run-{page}", args=[cast.team.slug, run.key])
    given = {"of": of, "text": "x", "decision": kind, **({"call": "1"} if kind == "call" else {})}
    answered = cast.client("alice").post(address, given)
    assert answered.status_code == 409 and "No person answers" in answered.content.decode()
    if page == "answer":
        alice = program(tokens.make(cast["alice"], "ci", 7, cast.team, ["answer"])[1])
        path = f"/api/v1/teams/{cast.team.slug}/runs/{run.key}/{kind}/"
        body = {"of": of, **({"text": "x"} if kind == "answer" else {})}
        answer = alice.post(path, body, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (409, "web.trial_answer")
    assert not run.commands.exists()
    assert run.key not in cast.client("alice").get(f"/t/{cast.team.slug}/").content.decode()


@pytest.mark.findings("B11")
def test_a_version_that_is_named_twice_is_refused(cast: Any, ran: Ran) -> None:
    """By the form and by the API: it would run once, and be compared with nothing."""
    run = ran(BAD)
    suite = suite_of(cast, run)
    form = {"base": run.version.pk, "version": [run.version.pk], "n": "1", "split": ALL}
    address = reverse("spak-experiment-begin", args=[cast.team.slug, suite.slug])
    answer = cast.client("bob").post(address, form)
    assert answer.status_code == 400 and "is named twice" in answer.content.decode()
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, ["start"])[1])
    twice = [{"spec": run.version.spec.slug, "version": 1}] * 2
    body = {"versions": twice, "splits": list(ALL)}
    path = f"/api/v1/teams/{cast.team.slug}/suites/{suite.slug}/experiments/"
    answer = bob.post(path, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "web.experiment")
    assert not Experiment.objects.exists()


@pytest.mark.findings("E11")
def test_somebody_of_the_demo_team_can_approve_what_alice_proposes(db: None) -> None:
    demo.seed()
    bob = User.objects.get(username="bob")
    assert can(bob, "spec.review", Team.objects.get(slug=demo.SLUG))


@pytest.mark.findings("B11")
def test_each_candidate_has_its_verdict(cast: Any, ran: Ran) -> None:
    run = ran(BAD)
    spec = run.version.spec
    for number in (1, 2):
        save_version(cast["alice"], spec, f"{BAD} // {number}", number, "again")
    suite = suite_of(cast, run)
    made = actions.begin(cast["bob"], suite, list(spec.versions.order_by("number")), 1, ALL)
    for cell in made.cells.select_related("run"):
        execute.advance(cell.run.key)
    page = reverse("spak-experiment", args=[cast.team.slug, suite.slug, made.number])
    text = cast.client("vera").get(page).content.decode()
    for number in (2, 3):
        assert f"{spec.slug} v{number} against {spec.slug} v1: no difference shown" in text


@pytest.mark.findings("B10")
def test_the_junit_report_of_an_experiment_has_the_addresses_of_its_runs(cast: Any, ran: Ran) -> None:
    made = actions.begin(cast["bob"], suite_of(cast, ran(HELLO)), [ran(BAD).version], 1, ALL)
    run = only_run(made)
    vera = program(tokens.make(cast["vera"], "ci", 7, cast.team, ["look"])[1])
    path = f"/api/v1/teams/{cast.team.slug}/suites/{made.suite.slug}/experiments/1/junit.xml"
    text = vera.get(path).content.decode()
    assert f"run http://testserver/t/{cast.team.slug}/runs/{run.key}/\nit ended as failed" in text
