"""A campaign goes on in steps: queued runs, verdicts, patches; it survives workers that die, and people who
pause and stop it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

import platform_campaigns as kit
from jobs_kit import at_once, job, wanted
from spak.errors import LedgerError, RunError
from spak.evolve.campaigns import verify
from spak.evolve.experiments.model import seed_of
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Membership
from spakweb.store.campaigns.models import Campaign, CampaignRecord, State
from spakweb.store.jobs.models import Job
from spakweb.store.reviews.models import Patch
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Suite
from spakweb.work.campaigns import actions, ledger, queue, steps
from spakweb.work.jobs import work
from spakweb.work.worker import execute

World = tuple[Spec, Suite]


def events(team: Any) -> list[str]:
    rows = Event.objects.filter(team=team, action__startswith="campaign.").order_by("pk")
    return list(rows.values_list("action", flat=True))


def test_a_fit_candidate_arrives_as_a_patch(cast: Any, world: World) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)
    assert kit.finish(made) == "proposals"
    assert (made.state, made.shown["counts"]) == (State.ENDED, {"tried": 1, "fit": 1})
    recorded = ledger.read(made)
    assert verify(recorded, catalog()) == []
    assert recorded.tested[0].verdict == "fit"
    patch = Patch.objects.get()
    assert "step two" not in patch.latest.text
    assert patch.proposer == "campaign 1 (nightly) candidate 1"
    check = patch.latest.checks.get(name="campaign")
    assert (check.state, len(check.result["pairs"])) == ("passed", len(recorded.tested[0].pairs))
    kit.advance(made.pk)
    assert Patch.objects.count() == 1
    assert events(cast.team) == ["campaign.begun", "campaign.ended"]


def test_both_runs_of_a_pair_have_a_seed_and_run_what_the_pair_names(cast: Any, world: World) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)
    assert kit.advance(made.pk) == "waiting"
    asked = list(made.asked.select_related("run", "case"))
    assert len(asked) == 8, "four pairs are queued side by side"
    for one in asked:
        assert one.run.own.seed == seed_of(one.case.content_hash, 0, one.k)
        assert (one.run.version is None) == bool(one.run.own.text)
        assert one.run.labels == ["campaign 1"]
    kit.run_all(made)
    recorded = ledger.read(made)
    kit.advance(made.pk)
    recorded = ledger.read(made)
    assert len(recorded.tested[0].pairs) == 4
    assert {(pair.outcome, pair.why) for pair in recorded.tested[0].pairs} == {(0, "")}
    first = recorded.tested[0].pairs[0].runs
    texts = [b"step two" in bytes(RunRecord.objects.get(run__key=key, seq=0).line) for key in first]
    assert texts == [True, False], "the base, the candidate"


def test_what_a_worker_did_before_it_died_is_not_done_again(
    cast: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker dies at each of its writes in turn; the campaign ends as an unbroken one."""
    spec, suite = world
    whole = kit.begun(cast["bob"], spec, suite)
    kit.finish(whole)
    broken = kit.begun(cast["bob"], spec, suite)
    writes = ledger.write
    died = 0

    class Died(BaseException):
        pass

    def dying(row: Campaign, *given: Any, **more: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Died
        writes(row, *given, **more)
        if left == 1:
            left = 0
            raise Died

    monkeypatch.setattr(ledger, "write", dying)
    for turn in range(200):
        left = 1 + turn % 3
        try:
            why = kit.advance(broken.pk)
        except Died:
            died += 1
            lapse(broken)
            continue
        lapse(broken)
        if why != "waiting":
            break
        kit.run_all(broken)
    assert died > 3
    first, second = ledger.read(whole), ledger.read(Campaign.objects.get(pk=broken.pk))
    assert [(item.verdict, [pair.outcome for pair in item.pairs]) for item in second.tested] == [
        (item.verdict, [pair.outcome for pair in item.pairs]) for item in first.tested
    ]
    assert broken.asked.count() == whole.asked.count(), "no run was asked for twice"


def lapse(campaign: Campaign) -> None:
    """The lease of whoever had it is over, and nobody counts its faults."""
    past = clock.now() - timedelta(minutes=1)
    Job.objects.filter(kind=queue.STEP, key=str(campaign.pk)).update(lease_until=past, tries=0)


def test_only_one_worker_has_a_campaign_and_a_slow_one_writes_nothing(cast: Any, world: World) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)
    first, key = taken(made), str(made.pk)
    assert work.take(steps.KIND, key) is None
    lapse(made)
    second = taken(made)
    for do in (first.check, lambda: write(first)):
        with pytest.raises(LedgerError) as caught:
            do()
        assert caught.value.code == "ledger.lost_lease"
    assert first.hold and second.hold
    assert not first.hold.keep() and second.hold.keep()
    write(second)
    assert CampaignRecord.objects.filter(campaign=made).count() == 2


def taken(campaign: Campaign) -> ledger.Held:
    hold = work.take(steps.KIND, str(campaign.pk))
    assert hold is not None
    return ledger.Held(Campaign.objects.get(pk=campaign.pk), hold)


def write(held: ledger.Held) -> None:
    from spak.records import Authority, Record

    held.append([Record("violation", Authority.HOST, {"run": "x"})])
    held.flush()


def test_a_campaign_that_kills_its_workers_is_paused(
    cast: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)

    def broken(self: Any) -> str:
        raise RuntimeError("nobody expected it")

    monkeypatch.setattr(steps.Step, "go", broken)
    for _ in range(len(steps.KIND.waits) + 1):
        assert at_once(queue.STEP) == [str(made.pk)]
    assert at_once(queue.STEP) == []
    made.refresh_from_db()
    assert (made.state, made.why.partition(":")[0]) == (State.PAUSED, "web.worker")
    monkeypatch.undo()
    actions.resume(cast["bob"], made)
    assert kit.advance(made.pk) == "waiting"


def test_pause_stop_and_resume(cast: Any, world: World) -> None:
    spec, suite = world
    bob = cast["bob"]
    made = kit.begun(bob, spec, suite)
    held = taken(made)
    actions.pause(bob, made)
    with pytest.raises(LedgerError):
        held.check()
    assert at_once(queue.STEP) == [] and queue.due() == []
    actions.resume(bob, made)
    assert wanted(queue.STEP) == [str(made.pk)]
    kit.advance(made.pk)
    assert queue.due() == [], "its runs go on"
    kit.run_all(made)
    assert queue.due() == [(str(made.pk), cast.team.pk)]
    kit.advance(made.pk)
    open_runs = made.asked.filter(run__state="queued").count()
    assert open_runs > 0
    actions.stop(bob, made)
    made.refresh_from_db()
    assert made.state == State.STOPPED
    assert made.asked.filter(run__state="cancelled").count() == open_runs
    actions.resume(bob, made)
    actions.pause(bob, made)
    made.refresh_from_db()
    assert (made.state, queue.due()) == (State.STOPPED, [])
    assert ledger.read(made).stopped == "stopped"
    assert events(cast.team) == [
        "campaign.begun", "campaign.paused", "campaign.resumed", "campaign.stopped"
    ]  # fmt: skip


@pytest.mark.findings("E1")
def test_a_pair_of_which_no_run_has_a_result_pauses_it_and_says_why(cast: Any, world: World) -> None:
    from spakweb.work.runs.actions import request_control

    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)
    kit.advance(made.pk)
    for one in made.asked.select_related("run__team"):
        request_control(cast["bob"], one.run, "cancel")
    assert kit.advance(made.pk) == "paused"
    made.refresh_from_db()
    recorded = ledger.read(made)
    assert recorded.tested[0].pairs == []
    assert made.why == recorded.stopped
    assert made.why.startswith("unavailable.result: ") and "the run was cancelled" in made.why


def test_the_budget_of_runs_ends_it(cast: Any, world: World) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite, budget_runs=6)
    assert kit.finish(made) == "runs"
    assert (made.asked.count(), ledger.read(made).runs) == (6, 6)


@pytest.mark.parametrize("budget", ["tokens", "nanousd"])
def test_a_budget_of_tokens_or_money_ends_it(cast: Any, world: World, budget: str) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite, **{f"budget_{budget}": 300})
    kit.advance(made.pk)
    for one in made.asked.select_related("run"):  # as if each had asked a model
        execute.advance(one.run.key)
        run = Run.objects.get(pk=one.run.pk)
        run.summary = {**(run.summary or {}), "tokens": {"used": 100}, "cost": 100}
        run.save(update_fields=["summary"])
    word = kit.advance(made.pk)
    made.refresh_from_db()
    assert word == {"nanousd": "money"}.get(budget, budget), made.why
    recorded = ledger.read(made)
    assert (len(recorded.tested[0].pairs), recorded.tokens, recorded.cost_nanousd) == (2, 400, 400)
    made.refresh_from_db()
    assert made.state == State.ENDED
    page = cast.client("vera").get(reverse("spak-campaign", args=[cast.team.slug, made.number]))
    word = {"nanousd": "money"}.get(budget, budget)
    assert f"Its budget of {word} is used up." in page.content.decode()


def test_who_may_not_start_runs_any_more_pauses_it(cast: Any, world: World) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)
    Membership.objects.filter(team=cast.team, user=cast["bob"]).update(role="viewer")
    assert kit.advance(made.pk) == "paused"
    made.refresh_from_db()
    assert made.why.startswith("web.campaign_rights")
    with pytest.raises(PermissionDenied):
        actions.resume(cast["bob"], made)
    with pytest.raises(PermissionDenied):
        kit.begun(cast["vera"], spec, suite)


@pytest.mark.parametrize(
    "given",
    [
        {"candidates": 0}, {"pairs": 401}, {"budget_runs": 1}, {"budget_tokens": -1}, {"margin": 51},
        {"proposer": "luck"},         {"proposer": "evolution", "evolve_runs": 2}, {"proposer": "model"},
        {"proposer": "model", "asks": "manual"},
    ],
    ids=str,
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(cast: Any, world: World, given: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        kit.begun(cast["bob"], *world, **given)
    assert caught.value.code == "web.campaign_plan"
    assert not Campaign.objects.exists()


def test_a_suite_without_gate_cases_is_refused(cast: Any, world: World) -> None:
    from spakweb.work.suites import actions as suites

    spec, suite = world
    empty = suites.make(cast["bob"], cast.team, "Empty")
    with pytest.raises(Refused) as caught:
        kit.begun(cast["bob"], spec, empty)
    assert caught.value.code == "web.campaign_plan"
    with pytest.raises(Refused) as caught:
        kit.begun(cast["bob"], spec, suite, proposer="evolution", evolve_runs=5)
    assert "train" in caught.value.message


def test_a_team_has_so_many_campaigns_at_a_time(cast: Any, world: World) -> None:
    made = [kit.begun(cast["bob"], *world) for _ in range(actions.MOST_RUNNING)]
    with pytest.raises(Refused) as caught:
        kit.begun(cast["bob"], *world)
    assert (caught.value.code, caught.value.status) == ("web.campaigns", 409)
    actions.pause(cast["bob"], made[0])
    kit.begun(cast["bob"], *world)
    with pytest.raises(Refused):
        actions.resume(cast["bob"], made[0])


def test_a_proposer_reads_no_run_of_a_gate_case(cast: Any, world: World) -> None:
    spec, suite = world
    made = kit.begun(cast["bob"], spec, suite)
    origin = suite.cases.get().origin
    other = Run.objects.exclude(key=origin).get()
    recorded = steps.Step(ledger.Held(made)).recorded
    assert {key for key, _ in recorded} == {origin, other.key}
    assert steps.training(made, recorded).names() == [other.key]
    kit.advance(made.pk)
    kit.run_all(made)
    recorded = steps.Step(ledger.Held(made)).recorded
    assert len(recorded) == 6
    assert steps.training(made, recorded).names() == [other.key], "nor a run of a pair"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RunError("workspace.full", "the disk is full", "")]
)
def test_a_full_disk_pauses_no_campaign(
    cast: Any, world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    made = kit.begun(cast["bob"], *world)

    def full(step: steps.Step) -> str:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(steps.Step, "go", full)
        for _ in range(len(steps.KIND.waits) + 2):
            assert at_once(queue.STEP) == [str(made.pk)]
    made.refresh_from_db()
    assert (made.state, made.why, job(queue.STEP).tries) == ("running", "", 0)
    assert kit.advance(made.pk) == "waiting"
