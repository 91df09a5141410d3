"""Runs: start, look, wait, answer, control; their records.

A wait (`waiting`) is an answer whose body comes later: the event loop holds it, no thread, and looks again
when the run has news.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlencode

import orjson
from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from spak import canon
from spak.lang.diagnostics import Severity
from spakweb import access
from spakweb.api import shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import NAME, chosen, page_of
from spakweb.api.views_specs import find_spec
from spakweb.api.views_versions import version_named
from spakweb.errors import Refused
from spakweb.ledger import export
from spakweb.live.stream import Crowded, hub, messages
from spakweb.live.viewers import Viewer
from spakweb.runs import actions, start_inputs
from spakweb.runs.deleted import gone
from spakweb.runs.models import Run, RunRecord, Upload
from spakweb.runs.pages.filters import RunFilter
from spakweb.sources import actions as sources
from spakweb.specs import reach
from spakweb.specs.facts import findings
from spakweb.specs.models import Spec, SpecVersion
from spakweb.specs.team_files import TeamFiles
from spakweb.teams.law import law_of
from spakweb.teams.models import Team
from spakweb.text import as_number, clean

PAGE, MOST_RECORDS = 100, 500
LONGEST_WAIT_S = 60
ERROR = Severity.ERROR
STOPS = ("waiting", "paused")
"""States in which a run goes on only when somebody does something."""
NONE = "none"
WORDS = ("mode", "backend", "queue", "sandbox", "prior")
"""What a request for a run hands on as it is."""
WAIT = OpenApiParameter("wait", int, description="Seconds, at most 60, until it ends or needs somebody.")


def find_run(request: Request, team: str, run: str, *, kept: bool = False, whole: bool = False) -> Run:
    """The run; one that is `kept` was not deleted, and of a `whole` one the token sees the text that it runs.

    Raises: Http404, Refused `web.run_deleted`, `web.token_imports`.
    """
    rows = Run.objects.select_related("team", "version__spec", "deleted_by")
    found: Run = access.find(request.user, "run.view", rows, team__slug=team, key=run)
    if kept and found.deleted_at is not None:
        raise gone(found)
    if whole:
        reach.require_shown(request.user, found)
    return found


class RunList(View):
    """Runs of a team."""

    answers = shapes.Runs

    @extend_schema(
        operation_id="list_runs",
        responses=shapes.Runs,
        parameters=[
            OpenApiParameter(name, str)
            for name in ("state", "spec", "version", "label", "q", "trials", "before")
        ],
    )
    def get(self, request: Request, team: str) -> Response:
        """The newest runs first; filters as on the page, but with the runs of experiments and campaigns:
        `trials=0` leaves them out, `trials=1` gives them alone."""
        found, rows = access.listed(request.user, "run.view", Run, team)
        given = {key: value for key, value in request.query_params.items() if key not in ("before", NAME)}
        wanted = RunFilter.of(request.query_params)
        if urlencode(sorted(given.items())) != urlencode(sorted(parse_qsl(wanted.query))):
            known = "state, spec, version, label, q, trials=0 or 1, mine=1 and deleted=1"
            raise Refused("web.run_filter", "The filters cannot be used.", f"They are {known}.")
        rows = wanted.apply(rows, request.user, apart=False)
        if before := request.query_params.get("before"):
            last = access.find(request.user, "run.view", Run, team=found, key=before)
            rows = rows.filter(pk__lt=last.pk)
        rows = list(rows.order_by("-pk").values(*shapes.RUN_COLUMNS)[: PAGE + 1])
        page, more = page_of(request, rows, "before", lambda one: one["key"], PAGE)
        return Response({"runs": [shapes.run_of(request, one) for one in page], "next": more})


class RunStart(View):
    """Starting runs."""

    @extend_schema(operation_id="start_run", request=shapes.StartRequest, responses={201: shapes.RunShape})
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Start a run of a version, of a tag, of the newest version, or of a text that is no version. Needs
        the scope start; with a text also the scope edit."""
        found = find_spec(request, team, spec, "run.start")
        given = self.given(request, shapes.StartRequest)
        text = given.get("text")
        version = version_named(found, given) if text is None else _posted(request, found, given)
        inputs = {name: str(value) for name, value in given.get("inputs", {}).items()}
        declared = start_inputs.declared(version)
        unknown = sorted(inputs.keys() - declared.keys())
        if unknown:
            hint = f"It declares: {', '.join(declared) or 'none'}."
            raise Refused("web.run_input", f"The spec has no input {unknown[0][:60]!r}.", hint, 422)
        asked, source = given.get("files", ""), given.get("source")
        if asked and source:
            raise Refused("web.request", "files and source cannot both be given.", "Send one of them.", 422)

        def work() -> Response:
            run = actions.start(
                request.user, found, version=version if text is None else None, text=text or "",
                inputs=start_inputs.checked(version, inputs, declared),
                labels=given.get("labels", ()), bare=asked == NONE, files=_files(found, asked),
                begun_from=sources.begin(request.user, found, **source) if source else None,
                **{name: given[name] for name in WORDS if name in given},
            )  # fmt: skip
            body = shapes.one_run(request, run)
            return Response(body, status=201, headers={"Location": body["url"]})

        return once(request, work)


def _posted(request: Request, spec: Spec, given: dict[str, Any]) -> SpecVersion:
    """What would be the version of a posted text; it is not saved. Who may not save a text runs none."""
    access.require(request.user, "spec.edit", spec)
    if request.user.token and request.user.token.specs is not None:
        raise PermissionDenied("A text is not a version of a spec: a token for some specs runs none.")
    if "version" in given or "tag" in given:
        raise Refused("web.request", "text and version cannot both be given.", "Send one of them.", 422)
    text = given["text"] = clean(given["text"], shapes.TEXT_BYTES)
    found = findings(TeamFiles.of(spec).whole(text), law_of(spec.team))
    wrong = [one for one in found if one.severity == ERROR]
    if wrong:
        words = f"line {wrong[0].line}: {wrong[0].message}"
        raise Refused("lang.invalid", words, "Correct it; `check` lists all that is wrong.", 422)
    return SpecVersion(spec=spec, text=text)


def _files(spec: Spec, asked: str) -> Upload | None:
    return None if asked in ("", NONE) else files_named(spec.team, asked)


def files_named(team: Team, root: str) -> Upload:
    """The files of a team that a hash names. Raises: Refused `web.run_files`."""
    found = Upload.objects.filter(team=team, root=root).first() if root.isprintable() else None
    if found is None:
        raise Refused("web.run_files", "The team has no such files.", "Upload them again.", 410)
    return found


class Zip(BaseParser):
    """An archive as it is; it is read by the view."""

    media_type = "application/zip"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The stream."""
        return stream


class Lines(Zip):
    """JSON lines as they are; they are read by the view."""

    media_type = "application/x-ndjson"


@contextmanager
def taken(request: Request, most: int = 0) -> Iterator[tuple[BinaryIO, int]]:
    """The body of a request as a file, and its size. What no request may bring was refused before it was
    read; where `most` is less than that, no more is read than shows that it is too long."""
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as archive:
        size = 0
        while (not most or size <= most) and (piece := request._request.read(1 << 20)):
            size += len(piece)
            archive.write(piece)
        archive.seek(0)
        yield archive, size  # type: ignore[misc]


class RunBring(View):
    """Files for runs."""

    parser_classes = (Zip,)

    @extend_schema(
        operation_id="bring_files",
        request={"application/zip": bytes},
        responses={201: shapes.UploadShape},
        parameters=[OpenApiParameter("name", str, description="What the files are called.")],
    )
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Bring a zip that runs may begin with. The same files again are the same upload."""
        found = find_spec(request, team, spec, "run.start")
        name = request.query_params.get("name", "files.zip")
        with taken(request) as (archive, size):
            upload, _ = actions.bring_files(request.user, found, name, archive, size)
        body = {"hash": upload.root, "name": upload.name, "files": upload.files, "bytes": upload.size}
        return Response(body, status=201)


class RunImport(View):
    """Runs that began elsewhere."""

    parser_classes = (Lines,)

    @extend_schema(
        operation_id="import_run",
        request={"application/x-ndjson": bytes},
        responses={201: shapes.RunShape},
    )
    def post(self, request: Request, team: str) -> Response:
        """Import the ledger of a run, as `export.jsonl` and `spak export` give it: all of it or nothing. The
        same file again is the same run. Needs the scope start."""
        found = access.find(request.user, "run.start", Team, slug=team)
        with taken(request, export.IMPORT_BYTES) as (file, size):
            run = export.bring(request.user, found, file, size)
        body = shapes.one_run(request, run)
        return Response(body, status=201, headers={"Location": body["url"]})


class KeptFiles(View):
    """Files that runs of a spec begin with."""

    @extend_schema(operation_id="keep_files", request=shapes.KeptFilesRequest, responses={204: None})
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Let later runs of the spec begin with these files unless they are given others; `none` takes them
        away. Needs the scope start."""
        found = find_spec(request, team, spec, "run.start")
        asked = self.given(request, shapes.KeptFilesRequest)["files"]
        actions.keep_files(request.user, found, _files(found, asked))
        return Response(status=204)


class RunDetail(View):
    """A run."""

    answers = shapes.RunShape

    @extend_schema(operation_id="get_run", responses=shapes.RunShape, parameters=[WAIT])
    def get(self, request: Request, team: str, run: str) -> Response:
        """A run as it is; with `wait` as soon as it has ended, or needs somebody."""
        return Response(self.body(request._request, find_run(request, team, run)))

    @staticmethod
    def body(request: HttpRequest, run: Run) -> dict[str, Any]:
        """The run as RunShape."""
        return shapes.one_run(request, run)


class RunPause(View):
    """Control of a run."""

    @extend_schema(operation_id="pause_run", request=None, responses={202: shapes.RunShape})
    def post(self, request: Request, team: str, run: str) -> Response:
        """Ask the run to pause. Needs the scope start; idempotent."""
        found = find_run(request, team, run)
        actions.request_control(request.user, found, "pause")
        return Response(shapes.one_run(request, found), status=202)


class RunCancel(View):
    """Control of a run."""

    @extend_schema(operation_id="cancel_run", request=None, responses={202: shapes.RunShape})
    def post(self, request: Request, team: str, run: str) -> Response:
        """Ask the run to be cancelled. Needs the scope start; idempotent."""
        found = find_run(request, team, run)
        actions.request_control(request.user, found, "cancel")
        return Response(shapes.one_run(request, found), status=202)


class RunResume(View):
    """Control of a run."""

    @extend_schema(operation_id="resume_run", request=None, responses={202: shapes.RunShape})
    def post(self, request: Request, team: str, run: str) -> Response:
        """Go on with a paused run. Needs the scope start; idempotent."""
        found = find_run(request, team, run)
        actions.resume(request.user, found)
        return Response(shapes.one_run(request, found), status=202)


class RunAnswer(View):
    """Answers."""

    @extend_schema(operation_id="answer_run", request=shapes.AnswerRequest, responses={202: shapes.RunShape})
    def post(self, request: Request, team: str, run: str) -> Response:
        """Answer what the run waits for. Needs the scope answer; approvals are given by people."""
        found = find_run(request, team, run)
        given = self.given(request, shapes.AnswerRequest)
        actions.ask(request.user, found, "answer", given["of"], text=given["text"])
        return Response(shapes.one_run(request, found), status=202)


class RunRecords(View):
    """Records of a run."""

    @extend_schema(
        operation_id="list_records",
        responses=shapes.Records,
        parameters=[OpenApiParameter("after", int, description="The last seq that was read."), WAIT],
    )
    def get(self, request: Request, team: str, run: str) -> Response:
        """Records after a seq, at most 500. Follow `next` until it is null."""
        return Response(self.body(request._request, find_run(request, team, run, whole=True)))

    @staticmethod
    def body(request: HttpRequest, run: Run) -> dict[str, Any]:
        """The records as Records."""
        after = _after(request)
        rows = list(
            RunRecord.objects.filter(run=run, seq__gt=after)
            .order_by("seq")
            .values_list("seq", "line")[:MOST_RECORDS]
        )
        last = rows[-1][0] if rows else after
        done = run.ended and last + 1 >= run.count
        address = f"{request.path}?{urlencode({'after': last})}"
        return {
            "records": [canon.loads(bytes(line)) for _, line in rows],
            "next": None if done else request.build_absolute_uri(address),
        }


def _after(request: HttpRequest) -> int:
    found = as_number(request.GET.get("after", ""))
    return -1 if found is None else found


# ---- waiting

GONE = orjson.dumps({"code": "web.404", "detail": "This no longer exists, or it is not yours."})
"""What a wait ends with whose run was deleted, or whose token was revoked: its answer had begun already."""
AsyncView = Callable[..., Awaitable[HttpResponseBase]]


def waiting(view: type[RunDetail] | type[RunRecords]) -> AsyncView:
    """The view's answer when the run has news that somebody waits for, or when the time is over."""
    answer = view.as_view()

    @wraps(answer)
    async def wait(request: HttpRequest, **here: str) -> HttpResponseBase:
        first: HttpResponseBase = await sync_to_async(answer)(request, **here)
        seconds = min(as_number(request.GET.get("wait", "")) or 0, LONGEST_WAIT_S)
        if seconds <= 0 or first.status_code != 200:
            return first
        user = await request.auser()
        run = await sync_to_async(_visible_run)(user, here)
        after = _after(request) if view is RunRecords else None
        if run is None or run.ended or (after is not None and run.count > after + 1):
            return first
        answered = await sync_to_async(_answered)(run) if run.state in STOPS else ""
        if run.state in STOPS and not answered:
            return first
        viewer = Viewer.of(user, request.session, named=False)

        async def later() -> AsyncIterator[bytes]:
            may_look = await _news(run, viewer, seconds, answered, records=after is not None)
            yield await sync_to_async(_body)(view, request, user, here) if may_look else GONE

        response = StreamingHttpResponse(later(), content_type="application/json")
        response["Cache-Control"] = "no-store"
        return response

    return wait


def _visible_run(user: Any, here: dict[str, str]) -> Run | None:
    """The run as it is now, while the person may see it; the connection of its thread is closed."""
    try:
        found: Run = access.find(user, "run.view", Run, team__slug=here["team"], key=here["run"])
        return found
    except (Http404, PermissionDenied):
        return None
    finally:
        if not connection.in_atomic_block:
            connection.close()


def _answered(run: Run) -> str:
    """The id of what the run waits for, where somebody answered and no worker has taken that up yet."""
    try:
        of = str(((run.summary or {}).get("waiting") or {}).get("id", ""))
        return of if of and run.commands.filter(done_at=None, body__of=of).exists() else ""
    finally:
        if not connection.in_atomic_block:
            connection.close()


def _body(
    view: type[RunDetail] | type[RunRecords], request: HttpRequest, user: Any, here: dict[str, str]
) -> bytes:
    run = _visible_run(user, here)
    if run is None:
        return GONE
    try:
        return orjson.dumps(chosen(request.GET, view.answers, view.body(request, run)))
    finally:
        if not connection.in_atomic_block:
            connection.close()


async def _news(run: Run, viewer: Viewer, seconds: int, answered: str, *, records: bool) -> bool:
    """Returns when the run ended, is paused or waits for something else than what was `answered`, has a
    further record where one waits for `records`, or the time is over; False when the token was revoked or the
    person left meanwhile."""
    try:
        reader = await hub().join(run, viewer, run.count - 1, whole=False)
    except Crowded:
        return True
    try:
        async with asyncio.timeout(seconds):
            async for message in messages(reader):
                if message.type in ("end", "resync") or (records and message.type == "records"):
                    return True
                if message.type == "state":
                    shown = json.loads(message.text)["run"]
                    if shown["state"] in STOPS and not (answered and shown["asks"] == answered):
                        return True
    except TimeoutError:
        return True
    finally:
        hub().leave(reader)
    return False
