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
from functools import partial, wraps
from operator import itemgetter
from typing import Any, BinaryIO
from urllib.parse import urlencode

import orjson
from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from spak import canon
from spak.lang.diagnostics import Severity
from spakweb.face.api.documents import Document
from spakweb.face.api.operations import RUN, SPEC, TEAM, Query, get, post
from spakweb.face.api.reading import NAME, chosen, page_of
from spakweb.face.api.shapes import common as shapes
from spakweb.face.api.views.specs import find_spec
from spakweb.face.api.views.versions import version_named
from spakweb.face.runs.filters import RunFilter
from spakweb.face.streams.stream import Crowded, hub, messages
from spakweb.face.streams.viewers import Viewer
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number, clean
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run, RunRecord, State, Upload
from spakweb.store.specs import reach
from spakweb.store.specs.facts import findings
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.runs import actions, start_inputs
from spakweb.work.runs.deleted import facts, gone
from spakweb.work.sources import actions as sources
from spakweb.work.suites import sealing

RUNS = f"{TEAM}runs/"
MOST_RECORDS = 500
LONGEST_WAIT_S = 60
ERROR = Severity.ERROR
STOPS = ("waiting", "paused")
"""States in which a run goes on only when somebody does something."""
NONE = "none"
WORDS = ("mode", "backend", "queue", "sandbox", "prior")
"""What a request for a run hands on as it is."""
WAIT = Query("wait", int, description="Seconds, at most 60, until it ends or needs somebody.")


def find_run(request: Request, team: str, run: str, *, whole: bool = False) -> Run:
    """The run, unless it was deleted; of a `whole` one the token sees the text that it runs.

    Raises: Http404, Refused `web.run_deleted`, `web.token_imports`.
    """
    rows = Run.objects.select_related("team", "version__spec", "deleted_by")
    found: Run = access.find(request.user, "run.view", rows, team__slug=team, key=run)
    if found.deleted_at is not None:
        error: Any = gone(found)
        error.more = {"tombstone": facts(found)}
        raise error
    if whole:
        reach.require_shown(request.user, found)
    return found


@get(
    "spak-api-runs", RUNS, gives=shapes.Runs, filters=True,
    parameters=[
        Query("state", str, enum=[*State.values, "unchecked", "own-tests"]),
        *(Query(name, str) for name in ("spec", "label", "q")),
        Query("version", int),
        Query("trials", str, enum=["0", "1"]),
        Query("guarded", str, enum=["0", "1"]),
        *(Query(name, str, enum=["1"]) for name in ("mine", "deleted")),
        Query("before", str, description="The id that the last page ended with."),
    ],
)  # fmt: skip
def list_runs(request: Request, team: str) -> Any:
    """The newest runs first; filters as on the page, but with the runs of experiments and campaigns:
    `trials=0` leaves them out, `trials=1` gives them alone; `deleted=1` what is left of deleted ones."""
    found, rows = access.listed(request.user, "run.view", Run, team)
    wanted = RunFilter.strict(request.query_params, but=("before", NAME))
    rows = wanted.apply(rows, request.user, apart=False)
    if before := request.query_params.get("before"):
        last = access.find(request.user, "run.view", Run, team=found, key=before)
        rows = rows.filter(pk__lt=last.pk)
    rows = rows.order_by("-pk").values(*shapes.RUN_COLUMNS)
    return page_of(request, rows, "before", itemgetter("key"))


@post("spak-api-start", f"{SPEC}runs/", takes=shapes.StartRequest, gives=shapes.RunShape, status=201)
def start_run(request: Request, team: str, spec: str, body: Any) -> Any:
    """Start a run of a version, of a tag, of the newest version, or of a text that is no version. Needs
    the scope start; with a text also the scope edit."""
    found = find_spec(request, team, spec, "run.start")
    given = body()
    text = given.get("text")
    version = version_named(found, given) if text is None else _posted(request, found, given)
    inputs = {name: str(value) for name, value in given.get("inputs", {}).items()}
    declared = start_inputs.declared(version)
    start_inputs.require_declared(declared, inputs)
    files, source, sealed = given.get("files", ""), given.get("source"), given.get("sealed")
    if files and source:
        raise Refused("web.request", "files and source cannot both be given.", "Send one of them.", 422)
    return lambda: actions.start(
        request.user, found, version=version if text is None else None, text=text or "",
        inputs=start_inputs.checked(version, inputs, declared),
        labels=given.get("labels", ()), bare=files == NONE, files=_files(found, files),
        begun_from=sources.begin(request.user, found, **source) if source else None,
        sealed=sealing.checks_of(request.user, found.team, sealed) if sealed else "",
        **{name: given[name] for name in WORDS if name in given},
    )  # fmt: skip


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


@post(
    "spak-api-bring", f"{SPEC}files/", parser_classes=(Zip,),
    takes={"application/zip": bytes}, gives=shapes.UploadShape, status=201,
    parameters=[Query("name", str, description="What the files are called.")],
)  # fmt: skip
def bring_files(request: Request, team: str, spec: str) -> Any:
    """Bring a zip that runs may begin with. The same files again are the same upload."""
    found = find_spec(request, team, spec, "run.start")
    name = request.query_params.get("name", "files.zip")
    with taken(request) as (archive, size):
        return actions.bring_files(request.user, found, name, archive, size)[0]


@post(
    "spak-api-import", f"{RUNS}import/", parser_classes=(Lines,),
    takes={"application/x-ndjson": bytes}, gives=shapes.RunShape, status=201,
)  # fmt: skip
def import_run(request: Request, team: str) -> Any:
    """Import the ledger of a run, as `export.jsonl` and `spak export` give it: all of it or nothing. The
    same file again is the same run. Needs the scope start."""
    found = access.find(request.user, "run.start", Team, slug=team)
    with taken(request, export.IMPORT_BYTES) as (file, size):
        return export.bring(request.user, found, file, size)


@post("spak-api-kept-files", f"{SPEC}kept-files/", takes=shapes.KeptFilesRequest, status=204)
def keep_files(request: Request, team: str, spec: str, body: Any) -> None:
    """Let later runs of the spec begin with these files unless they are given others; `none` takes them
    away. Needs the scope start."""
    found = find_spec(request, team, spec, "run.start")
    actions.keep_files(request.user, found, _files(found, body()["files"]))


@post("spak-api-pause", f"{RUN}pause/", gives=shapes.RunShape, status=202)
def pause_run(request: Request, team: str, run: str) -> Any:
    """Ask the run to pause. Needs the scope start; idempotent."""
    found = find_run(request, team, run)
    actions.request_control(request.user, found, "pause")
    return found


@post("spak-api-cancel", f"{RUN}cancel/", gives=shapes.RunShape, status=202)
def cancel_run(request: Request, team: str, run: str) -> Any:
    """Ask the run to be cancelled. Needs the scope start; idempotent."""
    found = find_run(request, team, run)
    actions.request_control(request.user, found, "cancel")
    return found


@post("spak-api-resume", f"{RUN}resume/", gives=shapes.RunShape, status=202)
def resume_run(request: Request, team: str, run: str) -> Any:
    """Go on with a paused run. Needs the scope start; idempotent."""
    found = find_run(request, team, run)
    actions.resume(request.user, found)
    return found


@post("spak-api-extend", f"{RUN}extend/", takes=shapes.ExtendRequest, gives=shapes.RunShape, status=202)
def extend_run(request: Request, team: str, run: str, body: Any) -> Any:
    """Ask for more of a budget before it is used up, within its spec's cap. Needs the scope start."""
    found, given = find_run(request, team, run), body()
    actions.extend(request.user, found, given["budget"], given["by"])
    return found


@post("spak-api-answer", f"{RUN}answer/", takes=shapes.AnswerRequest, gives=shapes.RunShape, status=202)
def answer_run(request: Request, team: str, run: str, body: Any) -> Any:
    """Answer what the run waits for. Needs the scope answer; approvals are given by people."""
    found, given = find_run(request, team, run), body()
    actions.ask(request.user, found, "answer", given["of"], text=given["text"])
    return found


def _records(request: Any, run: Run) -> dict[str, Any]:
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


def waiting(answer: Any, *, records: bool = False) -> AsyncView:
    """The view's answer when the run has news that somebody waits for, or when the time is over."""

    @wraps(answer)
    async def wait(request: HttpRequest, **here: str) -> HttpResponseBase:
        first: HttpResponseBase = await sync_to_async(answer)(request, **here)
        seconds = min(as_number(request.GET.get("wait", "")) or 0, LONGEST_WAIT_S)
        if seconds <= 0 or first.status_code != 200:
            return first
        user = await request.auser()
        run = await sync_to_async(_visible_run)(user, here)
        after = _after(request) if records else None
        if run is None or run.ended or (after is not None and run.count > after + 1):
            return first
        answered = await sync_to_async(_answered)(run) if run.state in STOPS else ""
        if run.state in STOPS and not answered:
            return first
        viewer = Viewer.of(user, request.session, named=False)

        async def later() -> AsyncIterator[bytes]:
            may_look = await news(run, viewer, seconds, answered, records=records)
            yield await sync_to_async(_body)(answer.cls.answers, request, user, here) if may_look else GONE

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


def _body(gives: type[Document], request: HttpRequest, user: Any, here: dict[str, str]) -> bytes:
    run = _visible_run(user, here)
    if run is None:
        return GONE
    try:
        row = _records(request, run) if gives is shapes.Records else run
        return orjson.dumps(chosen(request.GET, gives, gives.of(request, row)))
    finally:
        if not connection.in_atomic_block:
            connection.close()


async def news(run: Run, viewer: Viewer, seconds: int, answered: str, *, records: bool) -> bool:
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


@get("spak-api-run", RUN, gives=shapes.RunShape, parameters=[WAIT], around=waiting)
def get_run(request: Request, team: str, run: str) -> Any:
    """A run as it is; with `wait` as soon as it has ended, or needs somebody."""
    return find_run(request, team, run)


@get(
    "spak-api-records", f"{RUN}records/", gives=shapes.Records,
    parameters=[Query("after", int, description="The last seq that was read."), WAIT],
    around=partial(waiting, records=True),
)  # fmt: skip
def list_records(request: Request, team: str, run: str) -> Any:
    """Records after a seq, at most 500. Follow `next` until it is null."""
    return _records(request._request, find_run(request, team, run, whole=True))
