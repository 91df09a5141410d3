"""Suites with their cases, and experiments: list, begin, watch, report, stop."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spak.outer.experiments import render
from spak.suites.book import SPLITS
from spakweb import access
from spakweb.api import shapes_suites as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import PAGE, asked, asked_number, page_of
from spakweb.api.views_specs import find_spec
from spakweb.api.views_versions import version_named
from spakweb.ledger import export
from spakweb.specs.models import SpecVersion
from spakweb.suites import actions, report
from spakweb.suites.models import Experiment, Suite
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
        counts = {split: Count("cases", filter=Q(cases__split=split), distinct=True) for split in SPLITS}
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
        rows = find_suite(request, team, suite).cases.all()
        given = asked(request, "after", "split")
        if "split" in given:
            rows = rows.filter(split=given["split"])
        if "after" in given:
            rows = rows.filter(name__gt=given["after"])
        page, more = page_of(request, rows.order_by("name")[: PAGE + 1], "after", lambda one: one.name)
        return Response({"cases": [shapes.case_of(one) for one in page], "next": more})


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

        def work() -> Response:
            made = actions.begin(
                request.user, found, versions, given.get("times", 1), splits, given.get("backend", "")
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


class ExperimentReport(View):
    """The report on an experiment."""

    answers = shapes.ExperimentReport

    @extend_schema(operation_id="get_experiment_report", responses=shapes.ExperimentReport)
    def get(self, request: Request, team: str, suite: str, number: int) -> Response:
        """Passes and their intervals, costs, and the comparison, finished or not."""
        return Response(report.of(find_experiment(request, team, suite, number)).report.to_json())


class ExperimentPage(View):
    """The report on an experiment."""

    @extend_schema(operation_id="get_experiment_page", responses={(200, "text/html"): str})
    def get(self, request: Request, team: str, suite: str, number: int) -> HttpResponse:
        """The report as one HTML file."""
        found = find_experiment(request, team, suite, number)
        page = HttpResponse(render.html(report.of(found).report), content_type="text/html; charset=utf-8")
        answer: HttpResponse = export.attachment(page, f"{suite}-{number}.html")
        return answer


class ExperimentJUnit(View):
    """The report for CI."""

    @extend_schema(operation_id="get_experiment_junit", responses={(200, "application/xml"): str})
    def get(self, request: Request, team: str, suite: str, number: int) -> HttpResponse:
        """JUnit XML: a suite for each version, a test for each run."""
        found = find_experiment(request, team, suite, number)
        text = render.junit(report.of(found).report)
        return HttpResponse(text, content_type="application/xml; charset=utf-8")
