"""What is done with a run that exists, besides control: fork, replay, labels. Approvals are people's."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb.api import shapes
from spakweb.api import shapes_runs as given_shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.views_runs import find_run
from spakweb.errors import Refused
from spakweb.ledger import export
from spakweb.runs import actions, fork_points
from spakweb.runs.models import Run, RunRecord
from spakweb.runs.pages import checks, run_parts
from spakweb.specs import reach

SOON_S = 2


class RunFork(View):
    """Forks."""

    @extend_schema(
        operation_id="fork_run", request=given_shapes.ForkRequest, responses={201: shapes.RunShape}
    )
    def post(self, request: Request, team: str, run: str) -> Response:
        """A new run that takes over what came before a record. Needs the scope start."""
        found = find_run(request, team, run, kept=True)
        given = self.given(request, given_shapes.ForkRequest)
        if "at" in given and "task" in given:
            raise Refused("web.request", "at and task cannot both be given.", "Send one of them.", 422)
        if "task" in given:
            reach.require_shown(request.user, found)

        def work() -> Response:
            made = actions.fork(request.user, found, _point(found, given), given.get("mode", ""))
            body = shapes.one_run(request, made)
            return Response(body, status=201, headers={"Location": body["url"]})

        return once(request, work)


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


class RunReplay(View):
    """Replays."""

    @extend_schema(
        operation_id="replay_run",
        request=given_shapes.ReplayRequest,
        responses={200: given_shapes.Replayed, 202: given_shapes.Replayed},
    )
    def post(self, request: Request, team: str, run: str) -> Response:
        """Verify the chain and derive every commit again; nothing is executed. 202 while it is under way: ask
        again with its `of`."""
        found = find_run(request, team, run, kept=True, whole=True)
        given = self.given(request, given_shapes.ReplayRequest)
        export.begun(found)
        key = run_parts.checked_key(found)
        result, progress = cache.get(key), ""
        if result is None:
            checking = checks.begin(found, given.get("of", ""))
            key, result, progress = checking.key, checking.wait(), checking.share
        body = {
            "done": result is not None,
            "of": key,
            "progress": "" if result is not None else progress,
            **_found(result or {}),
        }
        headers = {} if result is not None else {"Retry-After": str(SOON_S)}
        return Response(body, status=200 if result is not None else 202, headers=headers)


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


class RunCall(View):
    """Answers of the backend."""

    @extend_schema(
        operation_id="call_backend", request=given_shapes.CallRequest, responses={202: shapes.RunShape}
    )
    def post(self, request: Request, team: str, run: str) -> Response:
        """Let the backend answer what the run waits for; a run without one gets the backend that is named.
        Needs the scope answer."""
        found = find_run(request, team, run, kept=True)
        given = self.given(request, given_shapes.CallRequest)
        actions.ask(request.user, found, "call", given["of"], given.get("backend", ""))
        return Response(shapes.one_run(request, found), status=202)


class RunLabels(View):
    """Labels."""

    @extend_schema(operation_id="label_run", request=given_shapes.LabelsRequest, responses=shapes.RunShape)
    def post(self, request: Request, team: str, run: str) -> Response:
        """Give the run these labels and no others. Needs the scope start."""
        found = find_run(request, team, run, kept=True)
        given = self.given(request, given_shapes.LabelsRequest)
        actions.label(request.user, found, given["labels"])
        return Response(shapes.one_run(request, found))
