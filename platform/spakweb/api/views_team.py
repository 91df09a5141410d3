"""What a team sees of the installation and of itself: runners and queues, and what happened."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api.base import View
from spakweb.api.reading import PAGE, asked, asked_number, page_of
from spakweb.audit.models import Event
from spakweb.audit.views import narrowed, row_of
from spakweb.fleet import show
from spakweb.teams.models import Team


class RunnerShape(serializers.Serializer):
    """A runner; `runs` are those of the team that it holds, `others` counts those of other teams."""

    name = serializers.CharField()
    alive = serializers.BooleanField()
    queues = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    slots = serializers.IntegerField()
    runs = serializers.ListField(child=serializers.CharField())
    others = serializers.IntegerField()
    devices = serializers.ListField(child=serializers.DictField())
    seen_at = serializers.CharField(allow_null=True)


class RunnerQueue(serializers.Serializer):
    """A queue: how many runs wait in it, since when, and the living runners that serve it."""

    name = serializers.CharField()
    depth = serializers.IntegerField()
    oldest = serializers.CharField(allow_null=True)
    runners = serializers.IntegerField()


class WaitingShape(serializers.Serializer):
    """A run of the team that waits for a runner, and why."""

    run = serializers.CharField()
    queue = serializers.CharField()
    why = serializers.CharField()


class FleetShape(serializers.Serializer):
    """What runs the team's runs; `waiting` has the first 50, `waiting_count` counts all."""

    runners = RunnerShape(many=True)
    queues = RunnerQueue(many=True)
    waiting = WaitingShape(many=True)
    waiting_count = serializers.IntegerField()


class EventShape(serializers.Serializer):
    """Something that happened: who did what to what, from where, with the content before and after."""

    id = serializers.IntegerField()
    at = serializers.CharField()
    actor = serializers.CharField(allow_blank=True)
    action = serializers.CharField()
    thing = serializers.CharField(allow_blank=True)
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
    detail = serializers.DictField()
    ip = serializers.CharField(allow_blank=True)
    request = serializers.CharField(allow_blank=True)


class Events(serializers.Serializer):
    """A page of what happened, the newest first."""

    events = EventShape(many=True)
    next = serializers.CharField(allow_null=True)


class RunnerList(View):
    """Runners and queues."""

    answers = FleetShape

    @extend_schema(operation_id="list_runners", responses=FleetShape)
    def get(self, request: Request, team: str) -> Response:
        """Runners with what they hold of the team's, queues, and which runs wait and why."""
        asked(request)
        shown = show.page(access.find(request.user, "fleet.view", Team, slug=team))
        body = {
            "runners": [_runner(one) for one in shown["runners"]],
            "queues": [
                {
                    "name": one.name,
                    "depth": one.depth,
                    "oldest": one.oldest.isoformat() if one.oldest else None,
                    "runners": one.runners,
                }
                for one in shown["queues"]
            ],
            "waiting": [{"run": run.key, "queue": run.queue, "why": why} for run, why in shown["waiting"]],
            "waiting_count": shown["waiting_count"],
        }
        return Response(body)


def _runner(busy: show.Busy) -> dict[str, Any]:
    runner = busy.runner
    return {
        **{name: getattr(runner, name) for name in ("name", "alive", "queues", "labels", "slots", "devices")},
        "runs": [run.key for run in busy.runs],
        "others": busy.others,
        "seen_at": runner.seen_at.isoformat() if runner.seen_at else None,
    }


class AuditList(View):
    """What happened in a team."""

    answers = Events

    @extend_schema(
        operation_id="list_events",
        responses=Events,
        parameters=[
            OpenApiParameter("q", str, description="What the person or the thing holds."),
            OpenApiParameter("action", str),
            OpenApiParameter("since", str, description="A date, as 2026-01-31."),
            OpenApiParameter("until", str, description="A date, as 2026-01-31."),
            OpenApiParameter("before", int, description="Those with smaller ids."),
        ],
    )
    def get(self, request: Request, team: str) -> Response:
        """Events of a team, the newest first. Needs the scope admin and the role."""
        found = access.find(request.user, "audit.view", Team, slug=team)
        given = asked(request, "q", "action", "since", "until", "before")
        rows = narrowed(Event.objects.filter(team=found), given)
        if (before := asked_number(given, "before")) is not None:
            rows = rows.filter(pk__lt=before)
        page, more = page_of(request, rows.order_by("-pk")[: PAGE + 1], "before", lambda one: one.pk)
        return Response({"events": [{"id": one.pk, **row_of(one)} for one in page], "next": more})
