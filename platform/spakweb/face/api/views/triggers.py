"""Triggers of a team: listed, added, removed, their secrets rotated, and the messages that came."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from spakweb.face.api.operations import SPEC, TEAM, Answer, get, post
from spakweb.face.api.shapes import incoming as shapes
from spakweb.face.api.views.specs import find_spec
from spakweb.ground import access
from spakweb.store.triggers.models import Trigger
from spakweb.work.incoming import log
from spakweb.work.triggers import actions

TRIGGERS = f"{TEAM}triggers/"
TRIGGER = f"{TRIGGERS}<int:trigger>/"
ROWS = Trigger.objects.select_related("spec__team", "person", "version", "receiver", "last_run")


def find_trigger(request: Request, team: str, trigger: int, action: str = "trigger.edit") -> Trigger:
    """The trigger. Raises: Http404, PermissionDenied."""
    found: Trigger = access.find(request.user, action, ROWS, spec__team__slug=team, pk=trigger)
    return found


@get("spak-api-triggers", TRIGGERS, gives=shapes.Triggers, query=())
def list_triggers(request: Request, team: str, query: Any) -> Any:
    """All triggers, by name."""
    return access.listed(request.user, "trigger.view", ROWS, team)[1]


@post(
    "spak-api-trigger-add", f"{SPEC}triggers/",
    takes=shapes.TriggerRequest, gives=shapes.NewTrigger, status=201,
)  # fmt: skip
def add_trigger(request: Request, team: str, spec: str, body: Any) -> Any:
    """Add a trigger; the answer has its address and secret. Needs the scopes admin and start."""
    found, given = find_spec(request, team, spec, "trigger.edit"), body()
    return lambda: Answer(actions.add(request.user, found, **given), kept={"secret": ""})


@post("spak-api-trigger-on", f"{TRIGGER}on/", gives=shapes.TriggerShape)
def turn_trigger_on(request: Request, team: str, trigger: int) -> Any:
    """Turn it on, with your rights from now on. Needs the scopes admin and start."""
    return _switched(request, team, trigger, True)


@post("spak-api-trigger-off", f"{TRIGGER}off/", gives=shapes.TriggerShape)
def turn_trigger_off(request: Request, team: str, trigger: int) -> Any:
    """Turn it off. Needs the scope admin."""
    return _switched(request, team, trigger, False)


def _switched(request: Request, team: str, trigger: int, on: bool) -> Trigger:
    actions.switch(request.user, find_trigger(request, team, trigger), on)
    return find_trigger(request, team, trigger, "trigger.view")


@get("spak-api-trigger", TRIGGER, gives=shapes.TriggerShape)
def get_trigger(request: Request, team: str, trigger: int) -> Any:
    """A trigger, without its secret."""
    return find_trigger(request, team, trigger, "trigger.view")


@post("spak-api-trigger-remove", f"{TRIGGER}remove/", status=204)
def remove_trigger(request: Request, team: str, trigger: int) -> None:
    """Remove a trigger with its address and log. Needs the scope admin."""
    actions.remove(request.user, find_trigger(request, team, trigger))


@post("spak-api-trigger-rotate", f"{TRIGGER}rotate/", gives=shapes.SecretShape)
def rotate_trigger(request: Request, team: str, trigger: int) -> Any:
    """A new secret; the one before is taken for 24 hours. Needs the scope admin."""
    found = find_trigger(request, team, trigger)
    return found.receiver, actions.rotate(request.user, found)


@get("spak-api-trigger-deliveries", f"{TRIGGER}deliveries/", gives=shapes.Deliveries)
def list_trigger_deliveries(request: Request, team: str, trigger: int) -> Any:
    """The newest messages that came, with what became of them. Needs the scope admin."""
    return [row for row, _, _ in log.deliveries(find_trigger(request, team, trigger).receiver)]
