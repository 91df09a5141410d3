"""Pages of suites and experiments, and the forms in them. Figures come from report.py."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from spak.evolve.experiments import Budget
from spak.evolve.experiments import Cell as Place
from spak.evolve.experiments import render as words
from spak.evolve.suites.book import SPLITS
from spakweb.face.runs.views import find_run
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_nanousd, as_number
from spakweb.store.runs.words import figure, money, took
from spakweb.store.specs.models import SpecVersion
from spakweb.store.suites.models import Experiment, Suite, counted
from spakweb.work.suites import actions, bringing, case_runs, report, sealing
from spakweb.work.suites import budget as budgets

VERSIONS, EXPERIMENTS = 100, 50
"""Versions that the form offers, newest first, and experiments that a suite's page lists."""
MARKS = {"pass": "succeeded", "fail": "failed", "void": "refused"}


def find_suite(request: HttpRequest, team: str, suite: str, action: str = "suite.view") -> Suite:
    """The suite, or 404 for whom it does not exist."""
    return access.find(
        request.user, action, Suite.objects.select_related("team"), team__slug=team, slug=suite
    )


def find_experiment(
    request: HttpRequest, team: str, suite: str, number: int, action: str = "suite.view"
) -> Experiment:
    """The experiment, or 404 for whom it does not exist."""
    rows = Experiment.objects.select_related("suite__team", "made_by")
    lookup = {"suite__team__slug": team, "suite__slug": suite, "number": number}
    return access.find(request.user, action, rows, **lookup)


@require_safe
def suite_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's suites with the number of their cases by split."""
    found = access.find(request.user, "suite.view", Team, slug=team)
    counts = {split: counted(split) for split in SPLITS}
    rows = Suite.objects.filter(team=found).annotate(**counts, tried=Count("experiments", distinct=True))
    context = {"team": found, "section": "suites", "suites": rows, "may_edit": _may(request, found)}
    return render(request, "suites/list.html", context)


@require_POST
def new(request: HttpRequest, team: str) -> HttpResponse:
    """Create an empty suite."""
    found = access.find(request.user, "suite.edit", Team, slug=team)
    made = actions.make(request.user, found, request.POST.get("name", ""))
    return redirect("spak-suite", team=team, suite=made.slug)


@require_POST
def bring(request: HttpRequest, team: str) -> HttpResponse:
    """Make a suite of a zip of its folder."""
    found = access.find(request.user, "suite.edit", Team, slug=team)
    file = request.FILES.get("zip")
    if file is None:
        raise Refused("web.suite_zip", "No zip was chosen.", "Choose the zip of a suite's folder.")
    made = bringing.bring(request.user, found, request.POST.get("name", ""), file, file.size or 0)
    return redirect("spak-suite", team=team, suite=made.slug)


@require_POST
def change(request: HttpRequest, team: str, suite: str) -> HttpResponse:
    """Rename a suite, or remove it while it is empty."""
    found = find_suite(request, team, suite, "suite.edit")
    if request.POST.get("do") == "remove":
        actions.remove(request.user, found)
        messages.success(request, f"{found.name} is removed.")
        return redirect("spak-suite-list", team=team)
    actions.rename(request.user, found, request.POST.get("name", ""))
    return redirect("spak-suite", team=team, suite=suite)


@require_safe
def suite_page(request: HttpRequest, team: str, suite: str) -> HttpResponse:
    """Cases with their splits, experiments, and the form that begins one."""
    found = find_suite(request, team, suite)
    experiments = list(found.experiments.select_related("made_by")[:EXPERIMENTS])
    versions = SpecVersion.objects.filter(spec__team=found.team, spec__archived_at=None)
    cases = list(found.current.select_related("files", "vetting", "replaces"))
    kept = {case.pk for case in cases}
    rows = found.cases.filter(replaces__in=kept).select_related("vetting", "replaces")
    trying = [case for case in rows if case.pk not in kept]
    context = {
        "team": found.team,
        "section": "suites",
        "suite": found,
        "cases": cases,
        "trying": trying,
        "open": [case for case in cases if not case.checked],
        "splits": list(budgets.estimates(cases).items()),
        "looks": sum(1 for one in found.experiments.all() if one.sealed),
        "experiments": [(one, list(dict(one.plan["specs"]))) for one in experiments],
        "versions": versions.select_related("spec").defer("text").order_by("-pk")[:VERSIONS],
        "chosen": actions.CANDIDATE,
        "may_edit": _may(request, found.team),
    }
    return render(request, "suites/suite.html", context)


@require_POST
def seal(request: HttpRequest, team: str, suite: str) -> HttpResponse:
    """Give a case sealed checks."""
    found, given = find_suite(request, team, suite, "suite.edit"), request.POST
    case = get_object_or_404(found.cases.select_related("suite__team", "files"), name=given.get("case", ""))
    file = request.FILES.get("zip")
    checks = _checks(given.get("checks", ""), given.get("outputs", ""))
    size = (file.size or 0) if file else 0
    made = sealing.seal(request.user, case, checks, given.get("reason", ""), file, size)
    messages.success(request, f"{made.name} takes the place of {case.name} once its checks were tried.")
    return redirect("spak-suite", team=team, suite=suite)


@require_POST
def golden(request: HttpRequest, team: str, suite: str) -> HttpResponse:
    """Mark a case as golden, or no longer."""
    found = find_suite(request, team, suite, "suite.edit")
    case = get_object_or_404(found.cases.select_related("suite__team"), name=request.POST.get("case", ""))
    actions.mark_golden(request.user, case, request.POST.get("golden") == "1")
    return redirect("spak-suite", team=team, suite=suite)


@require_POST
def begin(request: HttpRequest, team: str, suite: str) -> HttpResponse:
    """Start an experiment with the versions of the form, the base first."""
    found, given = find_suite(request, team, suite, "suite.edit"), request.POST
    keys = [as_number(key) for key in (given.get("base", ""), *given.getlist("version")) if key]
    rows = {
        version.pk: version
        for version in SpecVersion.objects.filter(
            pk__in=[key for key in keys if key], spec__team=found.team
        ).select_related("spec__team")
    }
    versions = [rows[key] for key in keys if key in rows]
    times = as_number(given.get("n", "")) or 0
    backend = given.get("backend", "").strip()
    budget = _budget(given)
    made = actions.begin(request.user, found, versions, times, given.getlist("split"), backend, budget)
    return redirect("spak-experiment", team=team, suite=suite, number=made.number)


@require_safe
def experiment_page(request: HttpRequest, team: str, suite: str, number: int) -> HttpResponse:
    """The matrix and the figures; the page asks for itself again while runs are open."""
    found = find_experiment(request, team, suite, number)
    shown = report.of(found)
    plan = shown.report.plan
    context: dict[str, Any] = {
        "team": found.suite.team,
        "section": "suites",
        "suite": found.suite,
        "experiment": found,
        "plan": plan,
        "shown": shown,
        "report": shown.report,
        "rows": [
            (
                case,
                [(spec, _cells(found, shown, case, spec)) for spec in plan.specs],
                _parted(found, shown, case),
            )
            for case in plan.cases
        ],
        "specs": [(row, words.rate(row), _amounts(row.figures)) for row in shown.report.specs],
        "limits": _limits(shown),
        "held_up": case_runs.held_up(found.cells),
        "void": any(row.void for row in shown.report.specs),
        "verdicts": [words.verdict(one) for one in shown.report.comparisons],
        "may_edit": _may(request, found.suite.team),
    }
    return render(request, "suites/_experiment.html" if request.htmx else "suites/experiment.html", context)


@require_POST
def stop(request: HttpRequest, team: str, suite: str, number: int) -> HttpResponse:
    """Stop an experiment: cancel its open runs."""
    found = find_experiment(request, team, suite, number, "suite.edit")
    actions.stop(request.user, found)
    return redirect("spak-experiment", team=team, suite=suite, number=number)


@require_POST
def resume(request: HttpRequest, team: str, suite: str, number: int) -> HttpResponse:
    """Try at once what is held up, and run again what gave no result."""
    actions.resume(request.user, find_experiment(request, team, suite, number, "suite.edit"))
    return redirect("spak-experiment", team=team, suite=suite, number=number)


@require_POST
def keep(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Keep a run as a case of the suite that is named, or of a new one."""
    found = find_run(request, team, run)
    if not access.can(request.user, "suite.edit", found.team):
        raise PermissionDenied
    given = request.POST
    slug, name = given.get("suite", ""), given.get("new", "").strip()
    suite = Suite.objects.filter(team=found.team, slug=slug).first() if slug else None
    if suite is None and not name:
        raise Http404
    suite = suite or actions.make(request.user, found.team, name)
    case = actions.keep(request.user, found, suite, given.get("name", ""))
    messages.success(request, f"Case {case.name} is in the split {case.split} of {suite.name}.")
    return redirect("spak-suite", team=team, suite=suite.slug)


def _checks(commands: str, outputs: str) -> list[tuple[str, str]]:
    """The checks of the form: a command on each line, and on the same line of `outputs` what it prints.
    Raises: Refused `web.case`."""
    lines = [line.strip() for line in commands.splitlines() if line.strip()]
    prints = [line.strip() for line in outputs.splitlines()]
    if len(prints) > len(lines):
        raise Refused("web.case", "There are more outputs than commands.", "One on each line.")
    return list(zip_longest(lines, prints, fillvalue=""))


def _budget(given: Any) -> Budget:
    """That of the form. Raises: Refused `web.experiment`."""
    runs, tokens, seconds = (
        as_number(given.get(name, "") or "0") for name in ("most_runs", "most_tokens", "most_seconds")
    )
    nanousd = as_nanousd(given.get("most_usd", ""))
    if runs is None or tokens is None or seconds is None or nanousd is None:
        why = "A budget is a whole number, or dollars with at most nine decimals."
        raise Refused("web.experiment", why, "Leave it empty for no limit.")
    return Budget(runs, tokens, nanousd, float(seconds))


def _limits(shown: report.Shown) -> list[tuple[str, str, str]]:
    """What is used of the experiment's budget: its name, how much, of how much."""
    budget, used = shown.report.plan.budget, shown.used
    rows = [
        ("runs", figure(used.runs), figure(budget.runs), budget.runs),
        ("tokens", figure(used.tokens), figure(budget.tokens), budget.tokens),
        ("cost", money(used.cost_nanousd), money(budget.cost_nanousd), budget.cost_nanousd),
        ("time of runs", took(used.ms), took(budget.seconds * 1000), budget.seconds),
    ]
    return [(name, now, most) for name, now, most, limit in rows if limit]


def _may(request: HttpRequest, team: Team) -> bool:
    return access.can(request.user, "suite.edit", team)


def _cells(found: Experiment, shown: report.Shown, case: str, spec: str) -> list[dict[str, str]]:
    """Each run of a case under a spec: its mark, its words, its address."""
    made = []
    for k in range(shown.report.plan.n):
        place = Place(case, spec, k)
        run, done = shown.runs.get(place), shown.report.done.get(place)
        over = found.stopped_at and (run is None or run.ended)
        outcome = done.outcome if done else "missing" if over else "open"
        made.append(
            {
                "outcome": outcome,
                "pill": MARKS.get(outcome, str(run.state) if run else "queued"),
                "why": done.why if done else "",
                "url": reverse("spak-run", args=[found.suite.team.slug, run.key]) if run else "",
            }
        )
    return made


def _parted(found: Experiment, shown: report.Shown, case: str) -> str:
    """Where the first two versions part in a case: the comparison of the first runs that differ in outcome,
    else of the first ones."""
    specs = list(shown.report.plan.specs)[:2]
    pairs = []
    for k in range(shown.report.plan.n):
        places = [Place(case, spec, k) for spec in specs]
        if len(specs) == 2 and all(place in shown.report.done for place in places):
            one, two = (shown.report.done[place].outcome for place in places)
            pairs.append((one == two, [shown.runs[place].key for place in places]))
    if not pairs:
        return ""
    one_key, two_key = min(pairs, key=lambda pair: pair[0])[1]
    return f"{reverse('spak-run-compare', args=[found.suite.team.slug])}?one={one_key}&two={two_key}"


def _amounts(figures: Any) -> list[str]:
    return [words.amount(name, figures[name]) for name in words.UNITS]
