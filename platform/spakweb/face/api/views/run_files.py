"""What a run leaves: its files, one or all as a zip, its report, its log, its JUnit report, its whole ledger.

Contents are what tools and models wrote: always attachments, never pages of ours.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from spak.errors import LedgerError, UserError
from spak.records import Kind
from spak.runner.views.junit import junit
from spakweb.face.api.operations import RUN, Query, get
from spakweb.face.api.shapes import runs as shapes
from spakweb.face.api.views.runs import find_run
from spakweb.face.runs import log, workspace
from spakweb.face.sources.run_views import as_patch
from spakweb.ground.errors import Refused
from spakweb.store.ledger import export
from spakweb.store.ledger.log import DatabaseLog
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.specs import reach

FILES = f"{RUN}files/"
BYTES = (200, "application/octet-stream")


@get("spak-api-files", FILES, gives=shapes.RunFiles)
def list_files(request: Request, team: str, run: str) -> Any:
    """The files that the run made or changed, each with the address of its content."""
    found = find_run(request, team, run)
    return [{**one, "team": team, "run": run} for one in workspace.listed(found)]


@get("spak-api-file", f"{FILES}<path:name>", gives={BYTES: OpenApiTypes.BINARY})
def get_file(request: Request, team: str, run: str, name: str) -> Any:
    """The content of a file, by its key."""
    found = find_run(request, team, run)
    try:
        if name.startswith("blob/"):
            return export.artifact(found, name)
        return workspace.as_file(found, name)
    except (KeyError, UserError, OSError, ValueError) as error:
        raise Http404 from error


@get(
    "spak-api-files-zip", f"{RUN}files.zip", gives={(200, "application/zip"): OpenApiTypes.BINARY},
    query=(Query("all", str, enum=["1"], description="Unchanged files too."),),
)  # fmt: skip
def get_files_zip(request: Request, team: str, run: str, query: dict[str, Any]) -> Any:
    """The files that the run made or changed, as one zip; files of secrets are left out."""
    return workspace.as_zip(find_run(request, team, run), everything="all" in query)


@get("spak-api-report", f"{RUN}report.json", gives=shapes.ReportShape)
def get_report(request: Request, team: str, run: str) -> Any:
    """What the report says, as JSON: figures, the best candidate, whether ledger and replay hold."""
    return export.report_json(find_run(request, team, run, whole=True))


@get("spak-api-report-page", f"{RUN}report.html", gives={(200, "text/html"): str})
def get_report_page(request: Request, team: str, run: str) -> Any:
    """The report as one HTML file."""
    return export.as_report(find_run(request, team, run, whole=True))


@get("spak-api-log", f"{RUN}log.txt", gives={(200, "text/plain"): str})
def get_log(request: Request, team: str, run: str) -> Any:
    """What tools, models and people put out, as text."""
    return log.as_text(find_run(request, team, run, whole=True))


@get("spak-api-export", f"{RUN}export.jsonl", gives={(200, export.JSONL): OpenApiTypes.BINARY})
def export_run(request: Request, team: str, run: str) -> Any:
    """The whole ledger, as `spak import` and `spak replay` take it."""
    return export.as_jsonl(find_run(request, team, run, whole=True))


@get("spak-api-pack", f"{RUN}pack.jsonl", gives={(200, export.JSONL): OpenApiTypes.BINARY})
def get_pack(request: Request, team: str, run: str) -> Any:
    """A run that ended with a signed statement in front, as `spak verify-pack` and `spak import` take it."""
    return export.as_pack(find_run(request, team, run, whole=True))


@get(
    "spak-api-proof", f"{RUN}run.tlog-proof", gives={(200, "text/plain"): str},
    query=(Query("seq", int, description="Prove this record too; without it the run as a whole."),),
)  # fmt: skip
def get_proof(request: Request, team: str, run: str, query: dict[str, Any]) -> HttpResponse:
    """The proof that the run, or one of its records, is in the last signed checkpoint of the team."""
    found = find_run(request, team, run, whole=True)
    try:
        text = DatabaseLog(found.team).prove(found, query.get("seq"))
    except LedgerError as error:
        raise Refused.of(error) from error
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@get("spak-api-changes", f"{RUN}changes.patch", gives={(200, "text/x-diff"): str})
def get_changes(request: Request, team: str, run: str) -> Any:
    """Everything that the run changed, as a patch for `git apply`."""
    return as_patch(find_run(request, team, run))


@get("spak-api-junit", f"{RUN}junit.xml", gives={(200, "application/xml"): str})
def get_junit(request: Request, team: str, run: str) -> HttpResponse:
    """JUnit XML: a test for each time that a task ended, and one for the run; that one alone where the
    token does not see the text that it runs."""
    found = find_run(request, team, run)
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
