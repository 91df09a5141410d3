"""The exchange of a CI's id token for a short token of a team. Nobody need be signed in for it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from spakweb.face.api.documents import Document
from spakweb.face.api.json_view import OpenView
from spakweb.face.api.operations import Answer, post
from spakweb.ground.errors import Refused
from spakweb.work.oidc.actions import exchange
from spakweb.work.oidc.claims import LONGEST_TOKEN
from spakweb.work.teams import bearer, tokens


class ExchangeRequest(serializers.Serializer):
    """What a job sends."""

    team = serializers.CharField(max_length=40)
    token = serializers.CharField(max_length=LONGEST_TOKEN, help_text="The id token of the job.")


class Exchanged(Document):
    """A token of the team."""

    token = serializers.CharField(help_text="For the header Authorization: Bearer.")
    ends_at = serializers.DateTimeField()
    team = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    specs = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null: every spec of the team."
    )


@post("spak-oidc-exchange", "oidc/", base=OpenView, takes=ExchangeRequest, gives=Exchanged, status=201)
def exchange_id_token(request: Request, body: Any) -> Any:
    """A short token of a team for an id token of GitHub or GitLab that one of the team's rules takes."""
    given = body()
    try:
        made, secret = exchange(given["team"], given["token"])
    except Refused as why:
        late = bearer.too_often(request._request) if why.status in (401, 403) else None
        if late is None:
            raise
        return late
    specs = tokens.spec_names([made])[made.pk] or None
    row = {"token": secret, "team": given["team"], "specs": specs}
    row |= {"ends_at": made.ends_at, "scopes": made.scopes}
    return Answer(row, headers={"Cache-Control": "no-store"})
