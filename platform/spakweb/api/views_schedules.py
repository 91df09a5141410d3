"""Schedules: list, add, look, change, turn on and off, run now, remove."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api import shapes
from spakweb.api import shapes_schedules as given_shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import asked
from spakweb.api.views_specs import find_spec
from spakweb.schedules import actions
from spakweb.schedules.models import Schedule

ROWS = Schedule.objects.select_related("spec__team", "person", "last_run")


def find_schedule(request: Request, team: str, schedule: int, action: str = "schedule.edit") -> Schedule:
    """The schedule. Raises: Http404, PermissionDenied."""
    found: Schedule = access.find(request.user, action, ROWS.all(), spec__team__slug=team, pk=schedule)
    return found


class ScheduleList(View):
    """Schedules of a team."""

    answers = given_shapes.Schedules

    @extend_schema(
        operation_id="list_schedules",
        responses=given_shapes.Schedules,
        parameters=[OpenApiParameter("spec", str)],
    )
    def get(self, request: Request, team: str) -> Response:
        """All schedules, by name."""
        given = asked(request, "spec")
        _, rows = access.listed(request.user, "schedule.view", ROWS.all(), team)
        if "spec" in given:
            rows = rows.filter(spec__slug=given["spec"])
        return Response({"schedules": [given_shapes.schedule_of(request, one) for one in rows]})


class ScheduleAdd(View):
    """Adding schedules."""

    @extend_schema(
        operation_id="add_schedule",
        request=given_shapes.ScheduleRequest,
        responses={201: given_shapes.ScheduleShape},
    )
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Begin runs of the spec by the clock, with the rights of the token's person, also after the token
        has ended. Needs the scope admin."""
        found = find_spec(request, team, spec, "schedule.edit")
        given = self.given(request, given_shapes.ScheduleRequest)

        def work() -> Response:
            name, cron, zone = given.pop("name"), given.pop("cron"), given.pop("zone", "UTC")
            made = actions.add(request.user, found, name, cron, zone, **given)
            body = given_shapes.schedule_of(request, made)
            return Response(body, status=201, headers={"Location": body["url"]})

        return once(request, work)


class ScheduleDetail(View):
    """A schedule."""

    answers = given_shapes.ScheduleShape

    @extend_schema(operation_id="get_schedule", responses=given_shapes.ScheduleShape)
    def get(self, request: Request, team: str, schedule: int) -> Response:
        """A schedule, and what became of its latest time."""
        found = find_schedule(request, team, schedule, "schedule.view")
        return Response(given_shapes.schedule_of(request, found))


class ScheduleChange(View):
    """Changing a schedule."""

    @extend_schema(
        operation_id="change_schedule",
        request=given_shapes.ScheduleChange,
        responses=given_shapes.ScheduleShape,
    )
    def post(self, request: Request, team: str, schedule: int) -> Response:
        """Change its times, inputs or source; its runs are the token's person's from now on. Needs the scopes
        admin and start."""
        found = find_schedule(request, team, schedule)
        given = self.given(request, given_shapes.ScheduleChange)
        changed = actions.change(request.user, found, given)
        return Response(given_shapes.schedule_of(request, changed))


class ScheduleOn(View):
    """Turning a schedule on."""

    on = True

    @extend_schema(operation_id="resume_schedule", request=None, responses=given_shapes.ScheduleShape)
    def post(self, request: Request, team: str, schedule: int) -> Response:
        """Turn it on; its runs are the token's person's from now on. Needs the scopes admin and start."""
        return self.switched(request, team, schedule)

    def switched(self, request: Request, team: str, schedule: int) -> Response:
        """The schedule, turned on or off."""
        actions.switch(request.user, find_schedule(request, team, schedule), self.on)
        found = find_schedule(request, team, schedule)
        return Response(given_shapes.schedule_of(request, found))


class ScheduleOff(ScheduleOn):
    """Turning a schedule off."""

    on = False

    @extend_schema(operation_id="pause_schedule", request=None, responses=given_shapes.ScheduleShape)
    def post(self, request: Request, team: str, schedule: int) -> Response:
        """Turn it off; runs under way go on. Needs the scope admin; idempotent."""
        return self.switched(request, team, schedule)


class ScheduleRun(View):
    """A run of a schedule."""

    @extend_schema(operation_id="run_schedule", request=None, responses={201: shapes.RunShape})
    def post(self, request: Request, team: str, schedule: int) -> Response:
        """Start a run as the schedule does, now. Needs the scopes admin and start."""
        found = find_schedule(request, team, schedule)

        def work() -> Response:
            body = shapes.one_run(request, actions.run_now(request.user, found))
            return Response(body, status=201, headers={"Location": body["url"]})

        return once(request, work)


class ScheduleRemove(View):
    """Removing a schedule."""

    @extend_schema(operation_id="remove_schedule", request=None, responses={204: None})
    def post(self, request: Request, team: str, schedule: int) -> Response:
        """Remove it; its runs stay. Needs the scope admin."""
        actions.remove(request.user, find_schedule(request, team, schedule))
        return Response(status=204)
