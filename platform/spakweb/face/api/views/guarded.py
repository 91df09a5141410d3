"""Guarded sessions: the law that a guard begins under, and the reports that it sends while its agent
works."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request

from spakweb.face.api.documents import Document
from spakweb.face.api.operations import TEAM, Query, get, post
from spakweb.face.api.views.runs import Lines, taken
from spakweb.ground import access
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team
from spakweb.store.ledger.export import IMPORT_BYTES
from spakweb.store.runs.signing import approvers, may_approve
from spakweb.work.runs import guarded


class LawShape(Document):
    """What a new run of the team is under besides the shipped law: texts of rules by the names of their
    files, and who may approve."""

    operator = serializers.DictField(child=serializers.CharField(), help_text="The platform's.")
    team = serializers.DictField(child=serializers.CharField(), help_text="The team's rules.")
    approvers = serializers.ListField(
        child=serializers.DictField(), help_text="Public keys of people, and of the platform."
    )


class Ask(Document):
    """What a person asked of a session: `approve` or `deny` with the signed approval, `answer` with the text
    for its agent's question, or `take_back`."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    by = serializers.CharField()
    body = serializers.DictField()


class HeardShape(Document):
    """How many records of a session are here, and what people asked that the guard has not answered yet."""

    records = serializers.IntegerField()
    asked = Ask(many=True)
    html_url = serializers.CharField(allow_blank=True, help_text="Its page; empty before its first record.")

    def get_html_url(self, heard: guarded.Heard) -> str:
        """The whole address."""
        return str(self.context["request"].build_absolute_uri(heard.path)) if heard.path else ""


@get("spak-api-law", f"{TEAM}law/", gives=LawShape, query=())
def get_law(request: Request, team: str, query: Any) -> Any:
    """The law of the team, for a guard that begins a session on another machine."""
    found: Team = access.find(request.user, "team.view", Team, slug=team)
    law = law_of(found)
    return {
        "operator": dict(settings.LAW),
        "team": dict(law.team),
        "approvers": approvers(may_approve(found)),
    }


@post(
    "spak-api-guarded", f"{TEAM}guarded/", parser_classes=(Lines,),
    takes={"application/x-ndjson": bytes}, gives=HeardShape,
    parameters=[Query("session", str, required=True, description="Its id where it runs.")],
)  # fmt: skip
def report_session(request: Request, team: str) -> Any:
    """Report the records of a guarded session of one's own: JSON lines of its ledger, its blobs, and
    `{"done": id, "outcome": ""}` for what was asked. An empty report says that the guard is there. What is
    here already is left. Needs the scope start."""
    found: Team = access.find(request.user, "run.start", Team, slug=team)
    with taken(request, IMPORT_BYTES) as (file, size):
        return guarded.receive(request.user, found, request.query_params.get("session", ""), file, size)
