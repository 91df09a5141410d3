"""What is done with a run that exists, besides control: fork, replay, labels; and where it is now.

Approvals are people's.
"""

from __future__ import annotations

from typing import Any

from django.core.cache import cache
from rest_framework.request import Request

from spakweb.face.api.documents import With
from spakweb.face.api.operations import RUN, Answer, get, post
from spakweb.face.api.shapes import common as shapes
from spakweb.face.api.shapes import runs as given_shapes
from spakweb.face.api.views.runs import find_run
from spakweb.face.runs import checks, run_parts
from spakweb.face.runs.views import honest
from spakweb.ground.errors import Refused
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run, RunRecord, State
from spakweb.store.specs import reach
from spakweb.work.runs import actions, fork_points

SOON_S = 2


@post("spak-api-fork", f"{RUN}fork/", takes=given_shapes.ForkRequest, gives=shapes.RunShape, status=201)
def fork_run(request: Request, team: str, run: str, body: Any) -> Any:
    """A new run that takes over what came before a record. Needs the scope start."""
    found, given = find_run(request, team, run), body()
    if "at" in given and "task" in given:
        raise Refused("web.request", "at and task cannot both be given.", "Send one of them.", 422)
    if "task" in given:
        reach.require_shown(request.user, found)
    return lambda: actions.fork(request.user, found, _point(found, given), given.get("mode", ""))


def _point(run: Run, given: dict[str, Any]) -> int:
    if "at" in given:
        return int(given["at"])
    if "task" not in given:
        return fork_points.last_effect(run)
    found = fork_points.entered(RunRecord.objects.filter(run=run), given["task"].replace("\0", ""))
    if found is None:
        words = f"The run has not entered a task {given['task'][:60]!r}."
        raise Refused("web.run_fork", words, "Name a task of its records, or a record.", 422)
    return found


@post(
    "spak-api-replay", f"{RUN}replay/",
    takes=given_shapes.ReplayRequest, gives=given_shapes.Replayed, also=(202,),
)  # fmt: skip
def replay_run(request: Request, team: str, run: str, body: Any) -> Any:
    """Verify the chain and derive every commit again; nothing is executed. 202 while it is under way: ask
    again with its `of`."""
    found = find_run(request, team, run, whole=True)
    given = body()
    export.begun(found)
    key = run_parts.checked_key(found)
    result, progress = cache.get(key), ""
    if result is None:
        checking = checks.begin(found, given.get("of", ""))
        key, result, progress = checking.key, checking.wait(), checking.share
    if result is None:
        shown = {"done": False, "of": key, "progress": progress, **_found({})}
        return Answer(shown, 202, {"Retry-After": str(SOON_S)})
    return {"done": True, "of": key, "progress": "", **_found(result)}


def _found(result: dict[str, Any]) -> dict[str, Any]:
    """What a check found; of one that a failure of ours broke off neither holds."""
    broken = "broken" in result
    return {
        "ledger_ok": False if broken else result.get("ok"),
        "replay_equal": False if broken else result.get("equal"),
        "records": result.get("records", 0),
        "head": result.get("head", ""),
        "difference": result.get("difference"),
        "problems": result.get("problems", []),
    }


@post("spak-api-call", f"{RUN}call/", takes=given_shapes.CallRequest, gives=shapes.RunShape, status=202)
def call_backend(request: Request, team: str, run: str, body: Any) -> Any:
    """Let the backend answer what the run waits for; a run without one gets the backend that is named.
    Needs the scope answer."""
    found, given = find_run(request, team, run), body()
    actions.ask(request.user, found, "call", given["of"], given.get("backend", ""))
    return found


@get("spak-api-live", f"{RUN}live/", gives=given_shapes.RunLive)
def get_run_live(request: Request, team: str, run: str) -> Any:
    """Where a run is, and where it is in the graph of its spec: what its page asks for again and again where
    no stream opens."""
    found = honest(find_run(request, team, run, whole=True))
    waits = (found.summary or {}).get("waiting") if found.state == State.WAITING else None
    asks = (waits or {}).get("id", "")
    given = bool(asks) and found.commands.filter(done_at=None).exists()
    return With(found, asks=asks, given=given, **run_parts.live(found))


@post("spak-api-labels", f"{RUN}labels/", takes=given_shapes.LabelsRequest, gives=shapes.RunShape)
def label_run(request: Request, team: str, run: str, body: Any) -> Any:
    """Give the run these labels and no others. Needs the scope start."""
    found = find_run(request, team, run)
    actions.label(request.user, found, body()["labels"])
    return found
