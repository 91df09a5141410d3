"""Every write that people make to campaigns: begin, pause, resume, stop. Rights are asked here.

A pause and a stop take the campaign from the worker that holds its job: its next write fails.
Both are records of the campaign's ledger. Runs that were requested continue through a pause and are cancelled
by a stop.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from spak.evolve.campaigns import Plan
from spak.lang.diagnostics import Severity
from spak.llm import BACKENDS
from spak.records import Authority, Kind, Record
from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.database.lock_wait import short_lock_wait
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.campaigns.models import Campaign, State
from spakweb.store.runs.models import ENDED
from spakweb.store.specs.models import SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.store.suites.models import Suite
from spakweb.work.campaigns import ledger, queue
from spakweb.work.campaigns.pairs import hash_of, run_again
from spakweb.work.jobs import queue as jobs
from spakweb.work.runs import actions as runs
from spakweb.work.suites import case_runs

MODELS = tuple(name for name in BACKENDS if name not in ("manual", "recorded"))
"""Backends that may propose."""
PROPOSERS = ("rules", "model", "evolution")
MOST_CANDIDATES, MOST_PAIRS, MOST_RUNS, MOST_MARGIN = 100, 400, 5_000, 50
MOST_TOKENS, MOST_NANOUSD = 10**9, 10**15
MOST_RUNNING = 5
"""Campaigns of a team that run at the same time."""
GOING = (State.RUNNING, State.PAUSED)


def begin(
    user: Any,
    version: SpecVersion,
    suite: Suite,
    proposer: str = "rules",
    *,
    candidates: int = 10,
    pairs: int = 100,
    budget_runs: int = 400,
    budget_tokens: int = 0,
    budget_nanousd: int = 0,
    margin: int = 0,
    evolve_runs: int = 0,
    asks: str = "",
    backend: str = "",
) -> Campaign:
    """A campaign over a version, queued. `margin` is in points of the pass rate (docs/outer-loop.md); 0
    tokens or billionths of a US dollar is no limit.

    Raises: Refused `web.campaign_plan`, `web.campaigns`, `web.case_checks`, `web.run_backend`,
    `web.trial_asks`.
    """
    access.require(user, "campaign.edit", version.spec)
    access.require(user, "suite.view", suite)
    asked = {
        "candidates": ("candidates", candidates, 1, MOST_CANDIDATES),
        "pairs": ("fresh pairs", pairs, 0, MOST_PAIRS),
        "runs": ("runs", budget_runs, 2, MOST_RUNS),
        "tokens": ("tokens", budget_tokens, 0, MOST_TOKENS),
        "cost_nanousd": ("billionths of a dollar", budget_nanousd, 0, MOST_NANOUSD),
        "margin": ("points of the margin", margin, 0, MOST_MARGIN),
        "evolve_runs": ("runs of evolution", evolve_runs, 3 if proposer == "evolution" else 0, MOST_RUNS),
    }
    for name, (what, number, least, most) in asked.items():
        if not least <= number <= most:
            raise _plan(f"{number} {what}: at least {least} and at most {most}.", f"`{name}` sets it.")
    cases = _cases(suite, version, proposer)
    if proposer == "model" and asks not in MODELS:
        why = f"There is no backend {asks[:40]!r}" if asks else "A model that proposes needs a backend"
        raise _plan(f"{why}: `asks` names it.", f"One of: {', '.join(MODELS)}.")
    case_runs.require_vetted(cases)
    case_runs.require_unattended(cases, [version], backend)
    golden = tuple(case.name for case in cases if case.is_golden)
    plan = Plan(
        str(version), _base(version), suite.slug, hash_of(cases), golden, tuple(case.name for case in cases),
        candidates=candidates, pairs=pairs, runs=budget_runs, proposer=proposer,
        margin=str(Fraction(margin, 100)), tokens=budget_tokens, cost_nanousd=budget_nanousd,
    )  # fmt: skip
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=version.spec.team_id)
        if team.campaigns.filter(state=State.RUNNING).count() >= MOST_RUNNING:
            hint = "Wait for one, or pause it."
            raise Refused("web.campaigns", f"{MOST_RUNNING} campaigns of the team run already.", hint, 409)
        number = (team.campaigns.aggregate(most=Max("number"))["most"] or 0) + 1
        made = Campaign.objects.create(
            team=team, number=number, spec=version.spec, version=version, suite=suite, proposer=proposer,
            evolve_runs=evolve_runs, asks=asks if proposer == "model" else "", backend=backend[:40],
            made_by=user,
        )  # fmt: skip
        genesis = Record(Kind.GENESIS, Authority.HOST, plan.to_json(), at=_now())
        ledger.write(made, [genesis], Q())
        details = {"spec": version.spec.slug, "suite": suite.slug, "proposer": proposer, "runs": budget_runs}
        record(user, "campaign.begun", str(made), team, after=version.content_hash, **details)
        queue.want(made)
    return made


def pause(user: Any, campaign: Campaign) -> None:
    """Pause a running campaign; idempotent."""
    _halt(user, campaign, "campaign.paused", "paused", (State.RUNNING,), state=State.PAUSED, why="")


def stop(user: Any, campaign: Campaign) -> None:
    """End the campaign and cancel its runs; idempotent."""
    ended = {"state": State.STOPPED, "ended_at": clock.now(), "why": ""}
    if _halt(user, campaign, "campaign.stopped", "stopped", GOING, **ended):
        for asked in campaign.asked.exclude(run__state__in=ENDED).select_related("run__team"):
            runs.request_control(user, asked.run, "cancel")


def resume(user: Any, campaign: Campaign) -> None:
    """Continue a paused campaign; one that is held up tries at once. Raises: Refused `web.campaigns`."""
    access.require(user, "campaign.edit", campaign)
    with short_lock_wait():
        team = Team.objects.select_for_update(no_key=True).get(pk=campaign.team_id)
        if Campaign.objects.filter(pk=campaign.pk, state=State.RUNNING).exists():
            case_runs.try_now(campaign.asked)
            queue.want(campaign)
            return
        if team.campaigns.filter(state=State.RUNNING).count() >= MOST_RUNNING:
            hint = "Wait for one, or pause it."
            raise Refused("web.campaigns", f"{MOST_RUNNING} campaigns of the team run already.", hint, 409)
        paused = Campaign.objects.filter(pk=campaign.pk, state=State.PAUSED)
        if paused.update(state=State.RUNNING, why=""):
            run_again(campaign, ledger.read(campaign))
            record(user, "campaign.resumed", str(campaign), campaign.team)
            queue.want(campaign)


def _halt(
    user: Any, campaign: Campaign, event: str, word: str, states: tuple[str, ...], **columns: Any
) -> bool:
    """Take it from its worker, with a record that says why; False where there was nothing to halt."""
    access.require(user, "campaign.edit", campaign)
    with short_lock_wait():
        row = Campaign.objects.select_for_update().get(pk=campaign.pk)
        if row.state not in states:
            return False
        stopped = Record("stop", Authority.HOST, {"why": word}, at=_now())
        ledger.write(row, [stopped], Q(), **columns)
        jobs.call_off(queue.STEP, row.pk)
        record(user, event, str(campaign), campaign.team)
    return True


def _cases(suite: Suite, version: SpecVersion, proposer: str) -> list[Any]:
    """The cases that judge. Raises: Refused `web.campaign_plan`."""
    if suite.team_id != version.spec.team_id or version.spec.archived_at is not None:
        raise _plan("There is no such suite or spec.", "Choose from the list.")
    if proposer not in PROPOSERS:
        raise _plan(f"There is no proposer {proposer[:40]!r}.", f"One of: {', '.join(PROPOSERS)}.")
    cases = list(suite.current.select_related("vetting"))
    gate = [case for case in cases if case.split == "gate"]
    if not gate:
        raise _plan(f"{suite.name} has no case in the split gate.", "Keep more runs as cases.")
    if proposer == "evolution" and not any(case.split == "train" for case in cases):
        raise _plan(f"{suite.name} has no case in the split train.", "Keep more runs as cases.")
    return gate


def _base(version: SpecVersion) -> str:
    """The text with its imports put in. Raises: Refused `web.campaign_plan`."""
    whole = TeamFiles.of(version.spec).whole(version.text)
    if any(item.severity == Severity.ERROR for item in whole.parsed.diagnostics):
        raise _plan(f"{version} has errors: it could not run.", "Fix it first.")
    return whole.parsed.text


def _plan(why: str, hint: str = "") -> Refused:
    return Refused("web.campaign_plan", why, hint)


def _now() -> int:
    return int(clock.now().timestamp() * 1000)
