"""What a run leaves: its files, one or all as a zip, its report, its log, its JUnit report, its whole ledger.

Contents are what tools and models wrote: always attachments, never pages of ours.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spak.errors import UserError
from spak.records import Kind
from spak.runner.views.junit import junit
from spakweb.api import shapes_runs as shapes
from spakweb.api.base import View
from spakweb.api.reading import asked
from spakweb.api.views_runs import find_run
from spakweb.errors import Refused
from spakweb.ledger import export
from spakweb.ledger.store import DatabaseLedgers
from spakweb.runs.pages import log, workspace
from spakweb.sources.run_views import as_patch
from spakweb.specs import reach

BYTES = (200, "application/octet-stream")


class RunFiles(View):
    """Files of a run."""

    answers = shapes.RunFiles

    @extend_schema(operation_id="list_files", responses=shapes.RunFiles)
    def get(self, request: Request, team: str, run: str) -> Response:
        """The files that the run made or changed, each with the address of its content."""
        found = find_run(request, team, run, kept=True)
        rows = [
            {
                **one,
                "url": request.build_absolute_uri(reverse("spak-api-file", args=[team, run, one["key"]])),
            }
            for one in export.artifacts(found)
        ]
        return Response({"files": rows})


class RunFile(View):
    """A file of a run."""

    @extend_schema(operation_id="get_file", responses={BYTES: OpenApiTypes.BINARY})
    def get(self, request: Request, team: str, run: str, name: str) -> Any:
        """The content of a file, by its key."""
        found = find_run(request, team, run, kept=True)
        try:
            if name.startswith("blob/"):
                return export.artifact(found, name)
            return workspace.as_file(found, name)
        except (KeyError, UserError, OSError, ValueError) as error:
            raise Http404 from error


class RunZip(View):
    """All files of a run."""

    @extend_schema(
        operation_id="get_files_zip",
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
        parameters=[OpenApiParameter("all", str, enum=["1"], description="Unchanged files too.")],
    )
    def get(self, request: Request, team: str, run: str) -> Any:
        """The files that the run made or changed, as one zip; files of secrets are left out."""
        everything = "all" in asked(request, "all")
        return workspace.as_zip(find_run(request, team, run, kept=True), everything=everything)


class RunReport(View):
    """The report of a run."""

    answers = shapes.ReportShape

    @extend_schema(operation_id="get_report", responses=shapes.ReportShape)
    def get(self, request: Request, team: str, run: str) -> Response:
        """What the report says, as JSON: figures, the best candidate, whether ledger and replay hold."""
        return Response(export.report_json(find_run(request, team, run, kept=True, whole=True)))


class RunReportPage(View):
    """The report of a run."""

    @extend_schema(operation_id="get_report_page", responses={(200, "text/html"): str})
    def get(self, request: Request, team: str, run: str) -> HttpResponse:
        """The report as one HTML file."""
        return export.as_report(find_run(request, team, run, kept=True, whole=True))


class RunLog(View):
    """The log of a run."""

    @extend_schema(operation_id="get_log", responses={(200, "text/plain"): str})
    def get(self, request: Request, team: str, run: str) -> Any:
        """What tools, models and people put out, as text."""
        return log.as_text(find_run(request, team, run, kept=True, whole=True))


class RunExport(View):
    """The ledger of a run."""

    @extend_schema(operation_id="export_run", responses={(200, export.JSONL): OpenApiTypes.BINARY})
    def get(self, request: Request, team: str, run: str) -> Any:
        """The whole ledger, as `spak import` and `spak replay` take it."""
        return export.as_jsonl(find_run(request, team, run, kept=True, whole=True))


class RunPatch(View):
    """What a run changed."""

    @extend_schema(operation_id="get_changes", responses={(200, "text/x-diff"): str})
    def get(self, request: Request, team: str, run: str) -> Any:
        """Everything that the run changed, as a patch for `git apply`."""
        return as_patch(find_run(request, team, run, kept=True))


class RunJUnit(View):
    """The report for CI."""

    @extend_schema(operation_id="get_junit", responses={(200, "application/xml"): str})
    def get(self, request: Request, team: str, run: str) -> HttpResponse:
        """JUnit XML: a test for each time that a task ended, and one for the run; that one alone where the
        token does not see the text that it runs."""
        found = find_run(request, team, run, kept=True)
        export.begun(found)
        try:
            ledger = DatabaseLedgers().reader(found.key)
            records = (record for record, _ in ledger.read())
            if reach.hides(request.user, found.takes_in):
                records = (record for record in records if record.kind != Kind.ROUTE)
            page = request.build_absolute_uri(reverse("spak-run", args=[team, run]))
            text = junit(found.name, records, page, ledger.blobs)
        except UserError as error:
            raise Refused("web.run_damaged", error.message, error.hint, 409) from error
        return HttpResponse(text, content_type="application/xml; charset=utf-8")
