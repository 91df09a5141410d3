"""Pages of campaigns: the team's list, those of a spec with the form that begins one, and one campaign."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from spak.evolve.campaigns import Campaign as Recorded
from spak.evolve.campaigns import Plan, Tested, points
from spakweb.face.runs.findings import as_line
from spakweb.face.specs.views import around, find_spec
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_nanousd, as_number
from spakweb.store.campaigns.models import Campaign, State
from spakweb.store.reviews.models import Patch
from spakweb.store.runs.models import Run
from spakweb.store.suites.models import Suite, counted
from spakweb.work.campaigns import actions, ledger, queue
from spakweb.work.campaigns.pairs import over
from spakweb.work.reviews.campaigns import VERDICTS, evidence

PAGE, OPEN = 50, 40
PILLS = {
    "fit": "succeeded",
    "privileged": "waiting",
    "rejected": "failed",
    "not_shown": "cancelled",
    State.RUNNING: "running",
    State.PAUSED: "paused",
    State.STOPPED: "cancelled",
    State.ENDED: "succeeded",
}
RULES = (
    "Rules read recorded runs of the base and propose what they show: a file that is read again, a result "
    "that nothing uses, a heuristic that never helps, an edge that is missing or never taken, text that a "
    "model gets again and again, too few retries. They write no new step; a model can."
)
WHY = {
    "candidates": "Its budget of candidates is used up.",
    "proposals": "Its proposer has no more to propose.",
    "runs": "Its budget of runs is used up.",
    "tokens": "Its budget of tokens is used up.",
    "money": "Its budget of money is used up.",
}


def find_campaign(request: HttpRequest, team: str, number: int, action: str = "campaign.view") -> Campaign:
    """The campaign, or 404 for whom it does not exist."""
    rows = Campaign.objects.select_related("team", "spec", "version__spec", "suite", "made_by")
    return access.find(request.user, action, rows, team__slug=team, number=number)


@require_safe
def campaign_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's campaigns, the newest first."""
    found = access.find(request.user, "campaign.view", Team, slug=team)
    rows = found.campaigns.select_related("spec", "version__spec", "suite", "made_by")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {"team": found, "section": "suites", "page": page, "rows": [_row(one) for one in page]}
    return render(request, "campaigns/list.html", context)


@require_safe
def of_spec(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Campaigns over a spec, and the form that begins one."""
    found = find_spec(request, team, spec)
    rows = found.campaigns.select_related("team", "spec", "version__spec", "suite", "made_by")[:PAGE]
    gate = counted("gate")
    context = around(request, found, "campaigns") | {
        "rows": [_row(one) for one in rows],
        "may_begin": access.can(request.user, "campaign.edit", found),
        "suites": Suite.objects.filter(team=found.team).annotate(gate=gate),
        "versions": found.versions.defer("text")[:PAGE],
        "proposers": actions.PROPOSERS,
        "rules": RULES,
        "backends": actions.MODELS,
        "most": {
            "candidates": actions.MOST_CANDIDATES, "pairs": actions.MOST_PAIRS,
            "runs": actions.MOST_RUNS, "margin": actions.MOST_MARGIN,
        },
    }  # fmt: skip
    return render(request, "campaigns/spec.html", context)


@require_POST
def begin(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Begin a campaign with what the form says."""
    found, given = find_spec(request, team, spec), request.POST
    access.require(request.user, "campaign.edit", found)
    version = found.versions.filter(number=as_number(given.get("version", ""))).first()
    suite = Suite.objects.filter(team=found.team, slug=given.get("suite", "")).first()
    if version is None or suite is None:
        raise Refused("web.campaign_plan", "There is no such suite or version.", "Choose from the list.")
    typed = {
        name: as_number(given.get(name, ""))
        for name in ("candidates", "pairs", "budget_runs", "margin", "evolve_runs")
    }
    typed["budget_tokens"] = as_number(given.get("budget_tokens", "") or "0")
    typed["budget_nanousd"] = as_nanousd(given.get("budget_usd", ""))
    numbers = {name: -1 if number is None else number for name, number in typed.items()}
    proposer = given.get("proposer", "rules")
    if proposer != "evolution":
        numbers["evolve_runs"] = 0
    made = actions.begin(
        request.user, version, suite, proposer, asks=given.get("asks", ""),
        backend=given.get("backend", "").strip(), **numbers,
    )  # fmt: skip
    return redirect("spak-campaign", team=team, number=made.number)


@require_safe
def campaign_page(request: HttpRequest, team: str, number: int) -> HttpResponse:
    """What was tried with the verdict of each stage, the budget, the runs that are under way."""
    found = find_campaign(request, team, number)
    recorded = ledger.read(found)
    plan, front = recorded.plan, points(recorded)
    state, why = queue.standing(found)
    counts = recorded.counts()
    going = found.asked.exclude(run__ended_at__isnull=False).select_related("run", "case").order_by("-pk")
    context: dict[str, Any] = {
        "team": found.team,
        "section": "suites",
        "campaign": found,
        "plan": plan,
        "pill": PILLS[state],
        "state": State(state).label,
        "held_up": state != found.state,
        "why": WHY.get(why, why),
        "counts": counts,
        "left": {
            "candidates": max(plan.candidates - len(recorded.tested), 0),
            "runs": max(plan.runs - recorded.runs, 0),
            "tokens": max(plan.tokens - recorded.tokens, 0),
            "cost": max(plan.cost_nanousd - recorded.cost_nanousd, 0),
        },
        "asked": found.asked.count(),
        "margin": round(100 * Fraction(plan.margin)),
        "tested": [_tested(found, recorded, item) for item in reversed(recorded.tested)],
        "going": [one for one in going[:OPEN] if not over(one.run)],
        "points": front if len(front) > 1 else [],
        "violations": recorded.violations,
        "missing": _missing(found, plan) if not counts.get("fit") else [],
        "rules": RULES if found.proposer == "rules" else "",
        "may_edit": access.can(request.user, "campaign.edit", found),
        "live": found.state == State.RUNNING,
    }
    return render(request, "campaigns/_campaign.html" if request.htmx else "campaigns/campaign.html", context)


@require_POST
def control(request: HttpRequest, team: str, number: int) -> HttpResponse:
    """Pause, resume or stop it."""
    found = find_campaign(request, team, number, "campaign.edit")
    do = {"pause": actions.pause, "resume": actions.resume, "stop": actions.stop}.get(
        request.POST.get("do", "")
    )
    if do is None:
        raise Http404
    do(request.user, found)
    return redirect("spak-campaign", team=team, number=number)


@require_safe
def ledger_file(request: HttpRequest, team: str, number: int) -> HttpResponse:
    """Its ledger as `spak outer campaign --verify` reads one: the trace.jsonl of a campaign."""
    found = find_campaign(request, team, number)
    lines = found.records.order_by("seq").values_list("line", flat=True)
    answer = HttpResponse(b"".join(bytes(line) for line in lines), content_type="application/x-ndjson")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{found.number}.trace.jsonl"'
    return answer


def _row(campaign: Campaign) -> dict[str, Any]:
    state, _ = queue.standing(campaign)
    return {
        "campaign": campaign,
        "pill": PILLS[state],
        "state": State(state).label,
        "counts": campaign.shown.get("counts", {"tried": 0}),
        "runs": campaign.shown.get("runs", 0),
    }


def _missing(campaign: Campaign, plan: Plan) -> list[str]:
    """What keeps a campaign from showing something, in sentences."""
    found = []
    if not plan.golden and campaign.proposer != "evolution":
        found.append(
            "No gate case was golden, so a change that only saves steps cannot win: where both pass, pairs "
            "come out equal. Mark a case as golden on the page of the suite, and start a campaign again."
        )
    if campaign.proposer == "rules" and not Run.objects.filter(version=campaign.version, trial="").exists():
        found.append(f"No run of {campaign.version} was recorded that rules could read. Run it first.")
    return found


def _tested(campaign: Campaign, recorded: Recorded, tested: Tested) -> dict[str, Any]:
    """A candidate with its stages, its evidence, its runs and its patch."""
    shown = evidence(recorded, tested)
    team = campaign.team.slug
    for pair, mine in zip(shown["pairs"], tested.pairs, strict=True):
        pair["why"] = mine.why
        pair["runs"] = [(run, reverse("spak-run", args=[team, run])) for run in mine.runs if run]
    whole = f"{campaign.patches_name} candidate {tested.number}"
    patch = Patch.objects.filter(spec=campaign.spec, campaign=whole).first()
    return {
        "item": tested,
        "pill": PILLS.get(tested.verdict, "running"),
        "word": VERDICTS.get(tested.verdict, "Being judged"),
        "edits": [as_line(op) for op in tested.candidate.edits],
        "evidence": shown,
        "patch": patch,
        "records": [
            (run, [(seq, reverse("spak-run-record", args=[team, run, seq])) for seq in numbers])
            for run, numbers in shown["records"].items()
        ],
    }
