"""Suites with their cases, and experiments: list, begin, watch, report, stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, BinaryIO

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spak.errors import RunError
from spak.outer.experiments import Budget, render
from spak.suites.book import SPLITS
from spakweb import access
from spakweb.api import shapes_suites as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import PAGE, asked, asked_number, page_of
from spakweb.api.views_runs import Zip, files_named, find_run, taken
from spakweb.api.views_specs import find_spec
from spakweb.api.views_versions import version_named
from spakweb.errors import Refused
from spakweb.ledger import export, uploads
from spakweb.specs.models import SpecVersion
from spakweb.suites import actions, bringing, report, sealing
from spakweb.suites.models import Case, Experiment, Suite, counted
from spakweb.teams.models import Team

AFTER = OpenApiParameter("after", str, description="The name that the last page ended with.")
BEFORE = OpenApiParameter("before", int, description="Those with smaller numbers.")


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


class SuiteList(View):
    """Suites of a team."""

    answers = shapes.Suites

    @extend_schema(operation_id="list_suites", responses=shapes.Suites, parameters=[AFTER])
    def get(self, request: Request, team: str) -> Response:
        """The team's suites by slug, with the number of their cases by split."""
        given = asked(request, "after")
        rows = Suite.objects.filter(team=access.find(request.user, "suite.view", Team, slug=team))
        counts = {split: counted(split) for split in SPLITS}
        rows = rows.annotate(**counts, tried=Count("experiments", distinct=True))
        if "after" in given:
            rows = rows.filter(slug__gt=given["after"])
        rows = rows.select_related("team", "made_by").order_by("slug")[: PAGE + 1]
        page, more = page_of(request, rows, "after", lambda one: one.slug)
        shown = [
            shapes.suite_of(request, one, {split: getattr(one, split) for split in SPLITS}, one.tried)
            for one in page
        ]
        return Response({"suites": shown, "next": more})

    @extend_schema(
        operation_id="create_suite", request=shapes.SuiteRequest, responses={201: shapes.SuiteShape}
    )
    def post(self, request: Request, team: str) -> Response:
        """Create a suite without cases. Needs the scope start."""
        found = access.find(request.user, "suite.edit", Team, slug=team)
        given = self.given(request, shapes.SuiteRequest)
        return once(
            request,
            lambda: Response(_shown(request, actions.make(request.user, found, given["name"])), status=201),
        )


def _shown(request: Request, suite: Suite) -> dict[str, Any]:
    """The suite as SuiteShape."""
    found = suite.current.values_list("split").annotate(many=Count("pk")).order_by()
    counts = {**dict.fromkeys(SPLITS, 0), **dict(found)}
    return shapes.suite_of(request, suite, counts, suite.experiments.count())


class SuiteBring(View):
    """Suites of the command line."""

    parser_classes = (Zip,)

    @extend_schema(
        operation_id="bring_suite",
        request={"application/zip": bytes},
        responses={201: shapes.SuiteShape},
        parameters=[OpenApiParameter("name", str, required=True, description="What the suite is called.")],
    )
    def post(self, request: Request, team: str) -> Response:
        """A suite of the zip of its folder, with all its cases or not at all. Needs the scope start."""
        found = access.find(request.user, "suite.edit", Team, slug=team)
        with taken(request) as (archive, size):
            made = bringing.bring(request.user, found, request.query_params.get("name", ""), archive, size)
        return Response(_shown(request, made), status=201)


class SuiteDetail(View):
    """A suite."""

    answers = shapes.SuiteShape

    @extend_schema(operation_id="get_suite", responses=shapes.SuiteShape)
    def get(self, request: Request, team: str, suite: str) -> Response:
        """A suite, with the number of its cases by split."""
        return Response(_shown(request, find_suite(request, team, suite)))


class SuiteRename(View):
    """The name of a suite."""

    @extend_schema(operation_id="rename_suite", request=shapes.SuiteRequest, responses=shapes.SuiteShape)
    def post(self, request: Request, team: str, suite: str) -> Response:
        """Give it another name; its address stays. Needs the scope start."""
        found = find_suite(request, team, suite, "suite.edit")
        actions.rename(request.user, found, self.given(request, shapes.SuiteRequest)["name"])
        return Response(_shown(request, found))


class SuiteRemove(View):
    """Removing a suite."""

    @extend_schema(operation_id="remove_suite", request=None, responses={204: None})
    def post(self, request: Request, team: str, suite: str) -> Response:
        """Remove a suite that has no case, experiment or campaign. Needs the scope start."""
        actions.remove(request.user, find_suite(request, team, suite, "suite.edit"))
        return Response(status=204)


class CaseList(View):
    """Cases of a suite."""

    answers = shapes.Cases

    @extend_schema(
        operation_id="list_cases",
        responses=shapes.Cases,
        parameters=[AFTER, OpenApiParameter("split", str, enum=list(SPLITS))],
    )
    def get(self, request: Request, team: str, suite: str) -> Response:
        """The cases of a suite, by name."""
        rows = find_suite(request, team, suite).current
        given = asked(request, "after", "split")
        if "split" in given:
            rows = rows.filter(split=given["split"])
        if "after" in given:
            rows = rows.filter(name__gt=given["after"])
        page, more = page_of(request, rows.order_by("name")[: PAGE + 1], "after", lambda one: one.name)
        return Response({"cases": [shapes.case_of(one) for one in page], "next": more})

    @extend_schema(operation_id="keep_case", request=shapes.CaseRequest, responses={201: shapes.CaseShape})
    def post(self, request: Request, team: str, suite: str) -> Response:
        """Keep a run that ended as a case; chance puts it into a split. Needs the scope start."""
        found = find_suite(request, team, suite, "suite.edit")
        given = self.given(request, shapes.CaseRequest)
        run = find_run(request, team, given["run"], kept=True)

        def work() -> Response:
            made = actions.keep(request.user, run, found, given.get("name", ""))
            return Response(shapes.case_of(made), status=201)

        return once(request, work)


class CaseGolden(View):
    """Golden cases."""

    @extend_schema(operation_id="mark_golden", request=shapes.GoldenRequest, responses=shapes.CaseShape)
    def post(self, request: Request, team: str, suite: str, case: str) -> Response:
        """Mark a case as golden, or no longer: no candidate of a campaign may lose one. Needs the scope
        start."""
        found = get_object_or_404(
            find_suite(request, team, suite, "suite.edit").cases.select_related("suite__team"), name=case
        )
        actions.mark_golden(request.user, found, self.given(request, shapes.GoldenRequest)["golden"])
        found.suite.refresh_from_db(fields=["golden"])
        return Response(shapes.case_of(found))


class CaseSeal(View):
    """Sealed checks of a case."""

    @extend_schema(operation_id="seal_case", request=shapes.SealRequest, responses={201: shapes.CaseShape})
    def post(self, request: Request, team: str, suite: str, case: str) -> Response:
        """Give a kept case sealed checks: a case of its own, which takes its place once a worker found that
        the checks fail before a run. `files` were brought for any spec of the team. Needs the scope start."""
        rows = find_suite(request, team, suite, "suite.edit").cases.select_related("suite__team", "files")
        found = get_object_or_404(rows, name=case)
        given = self.given(request, shapes.SealRequest)
        checks = [(one["command"], one.get("output", "")) for one in given["checks"]]
        with ExitStack() as held:
            file, size = _sealed_files(found, given.get("files", ""), held)

            def work() -> Response:
                made = sealing.seal(request.user, found, checks, given.get("reason", ""), file, size)
                return Response(shapes.case_of(made), status=201)

            return once(request, work)


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


class ExperimentList(View):
    """Experiments on a suite."""

    answers = shapes.Experiments

    @extend_schema(operation_id="list_experiments", responses=shapes.Experiments, parameters=[BEFORE])
    def get(self, request: Request, team: str, suite: str) -> Response:
        """Experiments on a suite, the newest first."""
        rows = find_suite(request, team, suite).experiments.select_related("suite__team", "made_by")
        if (before := asked_number(asked(request, "before"), "before")) is not None:
            rows = rows.filter(number__lt=before)
        page, more = page_of(request, rows[: PAGE + 1], "before", lambda one: one.number)
        return Response({"experiments": [shapes.experiment_row(request, one) for one in page], "next": more})

    @extend_schema(
        operation_id="begin_experiment",
        request=shapes.ExperimentRequest,
        responses={201: shapes.ExperimentShape},
    )
    def post(self, request: Request, team: str, suite: str) -> Response:
        """Run the cases of a suite under versions. Needs the scope start."""
        found = find_suite(request, team, suite, "suite.edit")
        given = self.given(request, shapes.ExperimentRequest)
        versions = [_version(request, team, one) for one in given["versions"]]
        splits = given.get("splits") or actions.CANDIDATE
        runs, tokens, nanousd, seconds = (
            given.get(f"most_{name}", 0) for name in ("runs", "tokens", "nanousd", "seconds")
        )
        budget = Budget(runs, tokens, nanousd, float(seconds))

        def work() -> Response:
            made = actions.begin(
                request.user, found, versions, given.get("times", 1), splits, given.get("backend", ""), budget
            )
            body = shapes.experiment_of(request, made, report.of(made))
            return Response(body, status=201, headers={"Location": body["url"]})

        return once(request, work)


def _version(request: Request, team: str, given: dict[str, Any]) -> SpecVersion:
    """Raises: Http404, PermissionDenied, Refused `web.run_version`."""
    return version_named(find_spec(request, team, given["spec"], "run.start"), given)


class ExperimentDetail(View):
    """An experiment."""

    answers = shapes.ExperimentShape

    @extend_schema(operation_id="get_experiment", responses=shapes.ExperimentShape)
    def get(self, request: Request, team: str, suite: str, number: int) -> Response:
        """An experiment, and how many of its runs are open."""
        found = find_experiment(request, team, suite, number)
        return Response(shapes.experiment_of(request, found, report.of(found)))


class ExperimentStop(View):
    """Stopping an experiment."""

    @extend_schema(operation_id="stop_experiment", request=None, responses={202: shapes.ExperimentShape})
    def post(self, request: Request, team: str, suite: str, number: int) -> Response:
        """Cancel its open runs; what ended stays. Needs the scope start; idempotent."""
        found = find_experiment(request, team, suite, number, "suite.edit")
        actions.stop(request.user, found)
        found.refresh_from_db(fields=["stopped_at"])
        return Response(shapes.experiment_of(request, found, report.of(found)), status=202)


class ExperimentResume(View):
    """Going on with an experiment."""

    @extend_schema(operation_id="resume_experiment", request=None, responses={202: shapes.ExperimentShape})
    def post(self, request: Request, team: str, suite: str, number: int) -> Response:
        """Try at once what is held up, and run again the cells whose run gave no result. Needs the scope
        start."""
        found = find_experiment(request, team, suite, number, "suite.edit")
        actions.resume(request.user, found)
        return Response(shapes.experiment_of(request, found, report.of(found)), status=202)


class ExperimentReport(View):
    """The report on an experiment."""

    answers = shapes.ExperimentReport

    @extend_schema(operation_id="get_experiment_report", responses=shapes.ExperimentReport)
    def get(self, request: Request, team: str, suite: str, number: int) -> Response:
        """Passes and their intervals, costs, and the comparison, finished or not."""
        return Response(report.of(find_experiment(request, team, suite, number)).report.to_json())


def _address(request: Request, team: str) -> Callable[[str], str]:
    """What gives the whole address of a run."""
    return lambda run: str(request.build_absolute_uri(reverse("spak-run", args=[team, run])))


class ExperimentPage(View):
    """The report on an experiment."""

    @extend_schema(operation_id="get_experiment_page", responses={(200, "text/html"): str})
    def get(self, request: Request, team: str, suite: str, number: int) -> HttpResponse:
        """The report as one HTML file."""
        found = find_experiment(request, team, suite, number)

        text = render.html(report.of(found).report, _address(request, team))
        page = HttpResponse(text, content_type="text/html; charset=utf-8")
        answer: HttpResponse = export.attachment(page, f"{suite}-{number}.html")
        return answer


class ExperimentJUnit(View):
    """The report for CI."""

    @extend_schema(operation_id="get_experiment_junit", responses={(200, "application/xml"): str})
    def get(self, request: Request, team: str, suite: str, number: int) -> HttpResponse:
        """JUnit XML: a suite for each version, a test for each run."""
        found = find_experiment(request, team, suite, number)
        text = render.junit(report.of(found).report, _address(request, team))
        return HttpResponse(text, content_type="application/xml; charset=utf-8")
