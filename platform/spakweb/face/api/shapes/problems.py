"""The documents of a team's problems, as serializers."""

from __future__ import annotations

from rest_framework import serializers

from spakweb.face.api.documents import Address, Document, Moment, listing
from spakweb.store.specs.models import ProblemFile


class ProblemRequest(serializers.Serializer):
    """A problem's file. Under a name that the team has, it takes that one's place."""

    name = serializers.CharField(max_length=100, help_text="As specs give it: problems/rmsnorm.py.")
    text = serializers.CharField(trim_whitespace=False, help_text="A Python file in UTF-8.")


class ProblemFinding(Document):
    """Something that the check found."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(["error", "warning"])
    message = serializers.CharField()
    hint = serializers.CharField()


class ProblemShape(Document):
    """A problem of a team, and what its check found: that of `spak problem check`, in a worker's sandbox."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    sha256 = serializers.CharField()
    state = serializers.ChoiceField(ProblemFile.State.values)
    found = ProblemFinding(many=True)
    saved_by = serializers.CharField()
    saved_at = Moment()
    checked_at = Moment(allow_null=True)
    html_url = Address("spak-problem", "team.slug", "pk")


class ProblemWithText(ProblemShape):
    """A problem with its text."""

    text = serializers.CharField()


Problems = listing("Problems", ProblemShape, "All problems of a team, by name.")
