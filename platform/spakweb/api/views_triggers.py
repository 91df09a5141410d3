"""Triggers of a team: listed, added, removed, their secrets rotated, and the messages that came."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api import shapes_incoming as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import asked
from spakweb.api.views_specs import find_spec
from spakweb.incoming import log
from spakweb.triggers import actions
from spakweb.triggers.models import Trigger

ROWS = Trigger.objects.select_related("spec__team", "person", "version", "receiver", "last_run")


def find_trigger(request: Request, team: str, trigger: int, action: str) -> Trigger:
    """The trigger. Raises: Http404, PermissionDenied."""
    found: Trigger = access.find(request.user, action, ROWS, spec__team__slug=team, pk=trigger)
    return found


class TriggerList(View):
    """Triggers of a team."""

    answers = shapes.Triggers

    @extend_schema(operation_id="list_triggers", responses=shapes.Triggers)
    def get(self, request: Request, team: str) -> Response:
        """All triggers, by name."""
        asked(request)
        _, rows = access.listed(request.user, "trigger.view", ROWS, team)
        return Response({"triggers": [shapes.trigger_of(one) for one in rows]})


class TriggerAdd(View):
    """A trigger of a spec."""

    @extend_schema(
        operation_id="add_trigger", request=shapes.TriggerRequest, responses={201: shapes.NewTrigger}
    )
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Add a trigger; the answer has its address and secret. Needs the scopes admin and start."""
        found = find_spec(request, team, spec, "trigger.edit")
        given = self.given(request, shapes.TriggerRequest)

        def work() -> Response:
            made, secret = actions.add(request.user, found, **given)
            url = log.address(request, made.receiver)
            response = Response({**shapes.trigger_of(made), "url": url, "secret": secret}, status=201)
            response.kept = {**response.data, "secret": ""}
            return response

        return once(request, work)


class TriggerOn(View):
    """Turning a trigger on."""

    @extend_schema(operation_id="turn_trigger_on", request=None, responses={200: shapes.TriggerShape})
    def post(self, request: Request, team: str, trigger: int) -> Response:
        """Turn it on, with your rights from now on. Needs the scopes admin and start."""
        return _switched(request, team, trigger, True)


class TriggerOff(View):
    """Turning a trigger off."""

    @extend_schema(operation_id="turn_trigger_off", request=None, responses={200: shapes.TriggerShape})
    def post(self, request: Request, team: str, trigger: int) -> Response:
        """Turn it off. Needs the scope admin."""
        return _switched(request, team, trigger, False)


def _switched(request: Request, team: str, trigger: int, on: bool) -> Response:
    actions.switch(request.user, find_trigger(request, team, trigger, "trigger.edit"), on)
    return Response(shapes.trigger_of(find_trigger(request, team, trigger, "trigger.view")))


class TriggerDetail(View):
    """A trigger."""

    answers = shapes.TriggerShape

    @extend_schema(operation_id="get_trigger", responses=shapes.TriggerShape)
    def get(self, request: Request, team: str, trigger: int) -> Response:
        """A trigger, without its secret."""
        return Response(shapes.trigger_of(find_trigger(request, team, trigger, "trigger.view")))


class TriggerRemove(View):
    """Removing a trigger."""

    @extend_schema(operation_id="remove_trigger", request=None, responses={204: None})
    def post(self, request: Request, team: str, trigger: int) -> Response:
        """Remove a trigger with its address and log. Needs the scope admin."""
        actions.remove(request.user, find_trigger(request, team, trigger, "trigger.edit"))
        return Response(status=204)


class TriggerRotate(View):
    """The secret of a trigger."""

    @extend_schema(operation_id="rotate_trigger", request=None, responses={200: shapes.SecretShape})
    def post(self, request: Request, team: str, trigger: int) -> Response:
        """A new secret; the one before is taken for 24 hours. Needs the scope admin."""
        found = find_trigger(request, team, trigger, "trigger.edit")
        return Response(shapes.secret_of(request, found.receiver, actions.rotate(request.user, found)))


class TriggerDeliveries(View):
    """Messages of a trigger."""

    answers = shapes.Deliveries

    @extend_schema(operation_id="list_trigger_deliveries", responses=shapes.Deliveries)
    def get(self, request: Request, team: str, trigger: int) -> Response:
        """The newest messages that came, with what became of them. Needs the scope admin."""
        found = find_trigger(request, team, trigger, "trigger.edit")
        return Response(shapes.deliveries_of(found.receiver))
