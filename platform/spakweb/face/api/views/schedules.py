"""Schedules: list, add, look, change, turn on and off, run now, remove."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from spakweb.face.api.operations import SPEC, TEAM, Query, get, post
from spakweb.face.api.shapes import common as shapes
from spakweb.face.api.shapes import schedules as given_shapes
from spakweb.face.api.shapes.schedules import ScheduleShape
from spakweb.face.api.views.specs import find_spec
from spakweb.ground import access
from spakweb.store.schedules.models import Schedule
from spakweb.work.schedules import actions

SCHEDULES = f"{TEAM}schedules/"
SCHEDULE = f"{SCHEDULES}<int:schedule>/"
ROWS = Schedule.objects.select_related("spec__team", "person", "last_run")


def find_schedule(request: Request, team: str, schedule: int, action: str = "schedule.edit") -> Schedule:
    """The schedule. Raises: Http404, PermissionDenied."""
    found: Schedule = access.find(request.user, action, ROWS.all(), spec__team__slug=team, pk=schedule)
    return found


@get("spak-api-schedules", SCHEDULES, gives=given_shapes.Schedules, query=(Query("spec", str),))
def list_schedules(request: Request, team: str, query: dict[str, Any]) -> Any:
    """All schedules, by name."""
    _, rows = access.listed(request.user, "schedule.view", ROWS.all(), team)
    return rows.filter(spec__slug=query["spec"]) if "spec" in query else rows


@post(
    "spak-api-schedule-add", f"{SPEC}schedules/",
    takes=given_shapes.ScheduleRequest, gives=ScheduleShape, status=201,
)  # fmt: skip
def add_schedule(request: Request, team: str, spec: str, body: Any) -> Any:
    """Begin runs of the spec by the clock, with the rights of the token's person, also after the token
    has ended. Needs the scope admin."""
    found, given = find_spec(request, team, spec, "schedule.edit"), body()
    name, cron, zone = given.pop("name"), given.pop("cron"), given.pop("zone", "UTC")
    return lambda: actions.add(request.user, found, name, cron, zone, **given)


@get("spak-api-schedule", SCHEDULE, gives=ScheduleShape)
def get_schedule(request: Request, team: str, schedule: int) -> Any:
    """A schedule, and what became of its latest time."""
    return find_schedule(request, team, schedule, "schedule.view")


@post(
    "spak-api-schedule-change", f"{SCHEDULE}change/", takes=given_shapes.ScheduleChange, gives=ScheduleShape
)
def change_schedule(request: Request, team: str, schedule: int, body: Any) -> Any:
    """Change its times, inputs or source; its runs are the token's person's from now on. Needs the scopes
    admin and start."""
    found = find_schedule(request, team, schedule)
    return actions.change(request.user, found, body())


@post("spak-api-schedule-on", f"{SCHEDULE}on/", gives=ScheduleShape)
def resume_schedule(request: Request, team: str, schedule: int) -> Any:
    """Turn it on; its runs are the token's person's from now on. Needs the scopes admin and start."""
    return _switched(request, team, schedule, True)


@post("spak-api-schedule-off", f"{SCHEDULE}off/", gives=ScheduleShape)
def pause_schedule(request: Request, team: str, schedule: int) -> Any:
    """Turn it off; runs under way go on. Needs the scope admin; idempotent."""
    return _switched(request, team, schedule, False)


def _switched(request: Request, team: str, schedule: int, on: bool) -> Schedule:
    actions.switch(request.user, find_schedule(request, team, schedule), on)
    return find_schedule(request, team, schedule)


@post("spak-api-schedule-run", f"{SCHEDULE}run/", gives=shapes.RunShape, status=201)
def run_schedule(request: Request, team: str, schedule: int) -> Any:
    """Start a run as the schedule does, now. Needs the scopes admin and start."""
    found = find_schedule(request, team, schedule)
    return lambda: actions.run_now(request.user, found)


@post("spak-api-schedule-remove", f"{SCHEDULE}remove/", status=204)
def remove_schedule(request: Request, team: str, schedule: int) -> None:
    """Remove it; its runs stay. Needs the scope admin."""
    actions.remove(request.user, find_schedule(request, team, schedule))
