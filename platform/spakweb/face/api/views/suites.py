"""Suites with their cases, and experiments: list, begin, watch, report, stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, BinaryIO

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.request import Request

from spak.errors import RunError
from spak.evolve.experiments import Budget, render
from spak.evolve.suites.book import SPLITS
from spakweb.face.api.operations import TEAM, Query, get, post
from spakweb.face.api.reading import paged
from spakweb.face.api.shapes import suites as shapes
from spakweb.face.api.views.runs import Zip, files_named, find_run, taken
from spakweb.face.api.views.specs import find_spec
from spakweb.face.api.views.versions import version_named
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.ledger import export, uploads
from spakweb.store.specs.models import SpecVersion
from spakweb.store.suites.models import Case, Experiment, Suite, counted
from spakweb.work.suites import actions, bringing, report, sealing

SUITES = f"{TEAM}suites/"
SUITE = f"{SUITES}<slug:suite>/"
CASES, EXPERIMENTS = f"{SUITE}cases/", f"{SUITE}experiments/"
EXPERIMENT = f"{EXPERIMENTS}<int:number>/"
AFTER = Query("after", str, description="The name that the last page ended with.")
BEFORE = Query("before", int, description="Those with smaller numbers.")


def find_suite(request: Request, team: str, suite: str, action: str = "suite.view") -> Suite:
    """The suite. Raises: Http404, PermissionDenied."""
    rows = Suite.objects.select_related("team", "made_by")
    found: Suite = access.find(request.user, action, rows, team__slug=team, slug=suite)
    return found


def find_experiment(
    request: Request, team: str, suite: str, number: int, action: str = "suite.view"
) -> Experiment:
    """The experiment. Raises: Http404, PermissionDenied."""
    rows = Experiment.objects.select_related("suite__team", "made_by")
    here = {"suite__team__slug": team, "suite__slug": suite, "number": number}
    found: Experiment = access.find(request.user, action, rows, **here)
    return found


@get("spak-api-suites", SUITES, gives=shapes.Suites, query=(AFTER,))
def list_suites(request: Request, team: str, query: dict[str, Any]) -> Any:
    """The team's suites by slug, with the number of their cases by split."""
    rows = Suite.objects.filter(team=access.find(request.user, "suite.view", Team, slug=team))
    counts = {split: counted(split) for split in SPLITS}
    rows = rows.annotate(**counts, tried=Count("experiments", distinct=True))
    return paged(request, rows.select_related("team", "made_by"), query, "after", "slug")


@post("spak-api-suites", SUITES, takes=shapes.SuiteRequest, gives=shapes.SuiteShape, status=201)
def create_suite(request: Request, team: str, body: Any) -> Any:
    """Create a suite without cases. Needs the scope start."""
    found, given = access.find(request.user, "suite.edit", Team, slug=team), body()
    return lambda: actions.make(request.user, found, given["name"])


@post(
    "spak-api-suite-bring", f"{SUITES}bring/", parser_classes=(Zip,),
    takes={"application/zip": bytes}, gives=shapes.SuiteShape, status=201,
    parameters=[Query("name", str, required=True, description="What the suite is called.")],
)  # fmt: skip
def bring_suite(request: Request, team: str) -> Any:
    """A suite of the zip of its folder, with all its cases or not at all. Needs the scope start."""
    found = access.find(request.user, "suite.edit", Team, slug=team)
    with taken(request) as (archive, size):
        return bringing.bring(request.user, found, request.query_params.get("name", ""), archive, size)


@get("spak-api-suite", SUITE, gives=shapes.SuiteShape)
def get_suite(request: Request, team: str, suite: str) -> Any:
    """A suite, with the number of its cases by split."""
    return find_suite(request, team, suite)


@post("spak-api-suite-rename", f"{SUITE}rename/", takes=shapes.SuiteRequest, gives=shapes.SuiteShape)
def rename_suite(request: Request, team: str, suite: str, body: Any) -> Any:
    """Give it another name; its address stays. Needs the scope start."""
    found = find_suite(request, team, suite, "suite.edit")
    actions.rename(request.user, found, body()["name"])
    return found


@post("spak-api-suite-remove", f"{SUITE}remove/", status=204)
def remove_suite(request: Request, team: str, suite: str) -> None:
    """Remove a suite that has no case, experiment or campaign. Needs the scope start."""
    actions.remove(request.user, find_suite(request, team, suite, "suite.edit"))


@get(
    "spak-api-cases", CASES, gives=shapes.Cases,
    query=(AFTER, Query("split", str, enum=list(SPLITS))),
)  # fmt: skip
def list_cases(request: Request, team: str, suite: str, query: dict[str, Any]) -> Any:
    """The cases of a suite, by name."""
    rows = find_suite(request, team, suite).current
    if "split" in query:
        rows = rows.filter(split=query["split"])
    return paged(request, rows, query, "after", "name")


@post("spak-api-cases", CASES, takes=shapes.CaseRequest, gives=shapes.CaseShape, status=201)
def keep_case(request: Request, team: str, suite: str, body: Any) -> Any:
    """Keep a run that ended as a case; chance puts it into a split. Needs the scope start."""
    found, given = find_suite(request, team, suite, "suite.edit"), body()
    run = find_run(request, team, given["run"])
    return lambda: actions.keep(request.user, run, found, given.get("name", ""))


@post(
    "spak-api-case-golden", f"{CASES}<str:case>/golden/", takes=shapes.GoldenRequest, gives=shapes.CaseShape
)
def mark_golden(request: Request, team: str, suite: str, case: str, body: Any) -> Any:
    """Mark a case as golden, or no longer: no candidate of a campaign may lose one. Needs the scope
    start."""
    rows = find_suite(request, team, suite, "suite.edit").cases.select_related("suite__team")
    found = get_object_or_404(rows, name=case)
    actions.mark_golden(request.user, found, body()["golden"])
    found.suite.refresh_from_db(fields=["golden"])
    return found


@post(
    "spak-api-case-seal", f"{CASES}<str:case>/seal/",
    takes=shapes.SealRequest, gives=shapes.CaseShape, status=201,
)  # fmt: skip
def seal_case(request: Request, team: str, suite: str, case: str, body: Any) -> Any:
    """Give a kept case sealed checks: a case of its own, which takes its place once a worker found that
    the checks fail before a run. `files` were brought for any spec of the team. Needs the scope start."""
    rows = find_suite(request, team, suite, "suite.edit").cases.select_related("suite__team", "files")
    found, given = get_object_or_404(rows, name=case), body()
    checks = [(one["command"], one.get("output", "")) for one in given["checks"]]

    def work() -> Case:
        with ExitStack() as held:
            file, size = _sealed_files(found, given.get("files", ""), held)
            return sealing.seal(request.user, found, checks, given.get("reason", ""), file, size)

    return work


def _sealed_files(case: Case, root: str, held: ExitStack) -> tuple[BinaryIO | None, int]:
    """The zip that a hash names, and its size. Raises: Refused `web.run_files`."""
    if not root:
        return None, 0
    found = files_named(case.suite.team, root)
    try:
        file = held.enter_context(uploads.opened(found))
    except RunError as error:
        raise Refused("web.run_files", error.message, error.hint, 410) from error
    return file, found.size


@get("spak-api-experiments", EXPERIMENTS, gives=shapes.Experiments, query=(BEFORE,))
def list_experiments(request: Request, team: str, suite: str, query: dict[str, Any]) -> Any:
    """Experiments on a suite, the newest first."""
    rows = find_suite(request, team, suite).experiments.select_related("suite__team", "made_by")
    return paged(request, rows, query, "before", "number")


@post(
    "spak-api-experiments", EXPERIMENTS,
    takes=shapes.ExperimentRequest, gives=shapes.ExperimentShape, status=201,
)  # fmt: skip
def begin_experiment(request: Request, team: str, suite: str, body: Any) -> Any:
    """Run the cases of a suite under versions. Needs the scope start."""
    found, given = find_suite(request, team, suite, "suite.edit"), body()
    versions = [_version(request, team, one) for one in given["versions"]]
    splits = given.get("splits") or actions.CANDIDATE
    runs, tokens, nanousd, seconds = (
        given.get(f"most_{name}", 0) for name in ("runs", "tokens", "nanousd", "seconds")
    )
    budget = Budget(runs, tokens, nanousd, float(seconds))
    return lambda: actions.begin(
        request.user, found, versions, given.get("times", 1), splits, given.get("backend", ""), budget
    )


def _version(request: Request, team: str, given: dict[str, Any]) -> SpecVersion:
    """Raises: Http404, PermissionDenied, Refused `web.run_version`."""
    return version_named(find_spec(request, team, given["spec"], "run.start"), given)


@get("spak-api-experiment", EXPERIMENT, gives=shapes.ExperimentShape)
def get_experiment(request: Request, team: str, suite: str, number: int) -> Any:
    """An experiment, and how many of its runs are open."""
    return find_experiment(request, team, suite, number)


@post("spak-api-experiment-stop", f"{EXPERIMENT}stop/", gives=shapes.ExperimentShape, status=202)
def stop_experiment(request: Request, team: str, suite: str, number: int) -> Any:
    """Cancel its open runs; what ended stays. Needs the scope start; idempotent."""
    found = find_experiment(request, team, suite, number, "suite.edit")
    actions.stop(request.user, found)
    found.refresh_from_db(fields=["stopped_at"])
    return found


@post("spak-api-experiment-resume", f"{EXPERIMENT}resume/", gives=shapes.ExperimentShape, status=202)
def resume_experiment(request: Request, team: str, suite: str, number: int) -> Any:
    """Try at once what is held up, and run again the cells whose run gave no result. Needs the scope
    start."""
    found = find_experiment(request, team, suite, number, "suite.edit")
    actions.resume(request.user, found)
    return found


@get("spak-api-experiment-report", f"{EXPERIMENT}report.json", gives=shapes.ExperimentReport)
def get_experiment_report(request: Request, team: str, suite: str, number: int) -> Any:
    """Passes and their intervals, costs, and the comparison, finished or not."""
    return report.of(find_experiment(request, team, suite, number)).report.to_json()


def _address(request: Request, team: str) -> Callable[[str], str]:
    """What gives the whole address of a run."""
    return lambda run: str(request.build_absolute_uri(reverse("spak-run", args=[team, run])))


@get("spak-api-experiment-page", f"{EXPERIMENT}report.html", gives={(200, "text/html"): str})
def get_experiment_page(request: Request, team: str, suite: str, number: int) -> HttpResponse:
    """The report as one HTML file."""
    found = find_experiment(request, team, suite, number)
    text = render.html(report.of(found).report, _address(request, team))
    page = HttpResponse(text, content_type="text/html; charset=utf-8")
    answer: HttpResponse = export.attachment(page, f"{suite}-{number}.html")
    return answer


@get("spak-api-experiment-junit", f"{EXPERIMENT}junit.xml", gives={(200, "application/xml"): str})
def get_experiment_junit(request: Request, team: str, suite: str, number: int) -> HttpResponse:
    """JUnit XML: a suite for each version, a test for each run."""
    found = find_experiment(request, team, suite, number)
    text = render.junit(report.of(found).report, _address(request, team))
    return HttpResponse(text, content_type="application/xml; charset=utf-8")
