"""The exchange of a CI's id token for a short token of a team. Nobody need be signed in for it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponseBase
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb.api.base import View
from spakweb.errors import Refused
from spakweb.oidc.actions import exchange
from spakweb.oidc.claims import LONGEST_TOKEN
from spakweb.teams import bearer, tokens


class ExchangeRequest(serializers.Serializer):
    """What a job sends."""

    team = serializers.CharField(max_length=40)
    token = serializers.CharField(max_length=LONGEST_TOKEN, help_text="The id token of the job.")


class Exchanged(serializers.Serializer):
    """A token of the team."""

    token = serializers.CharField(help_text="For the header Authorization: Bearer.")
    ends_at = serializers.DateTimeField()
    team = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    specs = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null: every spec of the team."
    )


@method_decorator(login_not_required, name="dispatch")
class Exchange(View):
    """Sign-in of jobs of a CI."""

    authentication_classes: Any = ()
    permission_classes: Any = ()
    throttle_classes: Any = ()
    http_method_names: ClassVar = ["post"]

    @extend_schema(
        operation_id="exchange_id_token", request=ExchangeRequest, responses={201: Exchanged}, auth=[]
    )
    def post(self, request: Request) -> HttpResponseBase:
        """A short token of a team for an id token of GitHub or GitLab that one of the team's rules takes."""
        given = self.given(request, ExchangeRequest)
        try:
            made, secret = exchange(given["team"], given["token"])
        except Refused as why:
            late = bearer.too_often(request._request) if why.status in (401, 403) else None
            if late is None:
                raise
            return late
        body = {
            "token": secret,
            "ends_at": made.ends_at,
            "team": given["team"],
            "scopes": made.scopes,
            "specs": tokens.spec_names([made])[made.pk] or None,
        }
        return Response(body, status=201, headers={"Cache-Control": "no-store"})
