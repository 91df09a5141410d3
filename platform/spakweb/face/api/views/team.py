"""What a team sees of the installation and of itself: runners, queues and work, and what happened."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request

from spakweb.face.api.documents import Document, Moment, listing
from spakweb.face.api.operations import TEAM, Query, get, post
from spakweb.face.api.reading import paged
from spakweb.face.audit.views import narrowed
from spakweb.face.fleet import show
from spakweb.ground import access
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.jobs.models import Job
from spakweb.store.runs.models import LogCheckpoint
from spakweb.work.jobs import show as jobs


class RunnerShape(Document):
    """A runner; `runs` are those of the team that it holds, `others` counts those of other teams."""

    name = serializers.CharField(source="runner.name")
    alive = serializers.BooleanField(source="runner.alive")
    queues = serializers.ListField(source="runner.queues", child=serializers.CharField())
    labels = serializers.ListField(source="runner.labels", child=serializers.CharField())
    slots = serializers.IntegerField(source="runner.slots")
    runs = serializers.ListField(child=serializers.CharField())
    others = serializers.IntegerField()
    devices = serializers.ListField(source="runner.devices", child=serializers.DictField())
    seen_at = Moment(source="runner.seen_at", allow_null=True)

    def get_runs(self, busy: show.Busy) -> list[str]:
        """Their keys."""
        return [run.key for run in busy.runs]


class RunnerQueue(Document):
    """A queue: how many runs wait in it, since when, and the living runners that serve it."""

    name = serializers.CharField()
    depth = serializers.IntegerField()
    oldest = Moment(allow_null=True)
    runners = serializers.IntegerField()


class WaitingShape(Document):
    """A run of the team that waits for a runner, and why."""

    run = serializers.CharField(source="run.key")
    queue = serializers.CharField(source="run.queue")
    why = serializers.CharField()


class FleetShape(Document):
    """What runs the team's runs; `waiting` has the first 50, `waiting_count` counts all."""

    runners = RunnerShape(many=True)
    queues = RunnerQueue(many=True)
    waiting = WaitingShape(many=True)
    waiting_count = serializers.IntegerField()


class EventShape(Document):
    """Something that happened: who did what to what, from where, with the content before and after."""

    id = serializers.IntegerField(source="pk")
    at = Moment()
    actor = serializers.CharField(source="actor_name", allow_blank=True)
    action = serializers.CharField()
    thing = serializers.CharField(allow_blank=True)
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
    detail = serializers.DictField()
    ip = serializers.CharField(allow_blank=True)
    request = serializers.CharField(allow_blank=True)

    def get_ip(self, event: Event) -> str:
        """Empty where it came from no request."""
        return event.ip or ""


Events = listing("Events", EventShape, "A page of what happened, the newest first.", pages=True)


@get("spak-api-runners", f"{TEAM}runners/", gives=FleetShape, query=())
def list_runners(request: Request, team: str, query: Any) -> Any:
    """Runners with what they hold of the team's, queues, and which runs wait and why."""
    shown = show.page(access.find(request.user, "fleet.view", Team, slug=team))
    return {**shown, "waiting": [{"run": run, "why": why} for run, why in shown["waiting"]]}


@get(
    "spak-api-audit", f"{TEAM}audit/", gives=Events,
    query=(
        Query("q", str, description="What the person or the thing holds."),
        Query("action", str),
        Query("since", str, description="A date, as 2026-01-31."),
        Query("until", str, description="A date, as 2026-01-31."),
        Query("before", int, description="Those with smaller ids."),
    ),
)  # fmt: skip
def list_events(request: Request, team: str, query: dict[str, Any]) -> Any:
    """Events of a team, the newest first. Needs the scope admin and the role."""
    found = access.find(request.user, "audit.view", Team, slug=team)
    return paged(request, narrowed(Event.objects.filter(team=found), query), query, "before", "pk")


class JobShape(Document):
    """A job of workers; `error` says why it is tried again, or failed, `due` when it is tried next."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    title = serializers.CharField()
    key = serializers.CharField()
    state = serializers.ChoiceField(jobs.STATES)
    error = serializers.CharField()
    tries = serializers.IntegerField()
    queue = serializers.CharField()
    wanted_at = Moment(allow_null=True)
    due = Moment(allow_null=True)
    done_at = Moment(allow_null=True)
    worker = serializers.CharField()


class WorkShape(Document):
    """The first 50 jobs in a state, and how many there are in it."""

    jobs = JobShape(many=True)
    count = serializers.IntegerField()


@get(
    "spak-api-work", f"{TEAM}work/", gives=WorkShape,
    query=(Query("state", str, enum=jobs.STATES, default="waiting"),),
)  # fmt: skip
def list_work(request: Request, team: str, query: dict[str, Any]) -> Any:
    """What workers do besides runs, by state. Needs the scope admin and the role."""
    rows = jobs.of_state(
        access.find(request.user, "work.manage", Team, slug=team), query.get("state", "waiting")
    )
    return {"jobs": [jobs.row_of(row) for row in rows[: jobs.SHOWN]], "count": rows.count()}


@post("spak-api-work-retry", f"{TEAM}work/<int:job>/retry/", gives=JobShape, status=202)
def retry_work(request: Request, team: str, job: int) -> Any:
    """Have a job done now, whatever became of it. Needs the scope admin and the role."""
    rows = Job.objects.select_related("team")
    found: Job = access.find(request.user, "work.manage", rows, team__slug=team, pk=job)
    jobs.retry(request.user, found)
    found.refresh_from_db()
    return jobs.row_of(found)


@get("spak-api-checkpoint", f"{TEAM}latest.checkpoint", gives={(200, "text/plain"): str})
def get_checkpoint(request: Request, team: str) -> HttpResponse:
    """The last signed checkpoint of the team's runs."""
    found = access.find(request.user, "team.view", Team, slug=team)
    row = LogCheckpoint.objects.filter(team=found).first()
    if row is None:
        hint = "The operator turns them on: docs/deploy.md, Checkpoints."
        raise Refused("ledger.not_covered", "There is no checkpoint of this team yet.", hint, 409)
    return HttpResponse(row.note, content_type="text/plain; charset=utf-8")
