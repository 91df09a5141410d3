"""The documents of a team's problems, as serializers."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from spakweb.specs.models import ProblemFile


class ProblemRequest(serializers.Serializer):
    """A problem's file. Under a name that the team has, it takes that one's place."""

    name = serializers.CharField(max_length=100, help_text="As specs give it: problems/rmsnorm.py.")
    text = serializers.CharField(trim_whitespace=False, help_text="A Python file in UTF-8.")


class ProblemFinding(serializers.Serializer):
    """Something that the check found."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(["error", "warning"])
    message = serializers.CharField()
    hint = serializers.CharField()


class ProblemShape(serializers.Serializer):
    """A problem of a team, and what its check found: that of `spak problem check`, in a worker's sandbox."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    sha256 = serializers.CharField()
    state = serializers.ChoiceField(ProblemFile.State.values)
    found = ProblemFinding(many=True)
    saved_by = serializers.CharField()
    saved_at = serializers.CharField()
    checked_at = serializers.CharField(allow_null=True)
    html_url = serializers.CharField()


class ProblemWithText(ProblemShape):
    """A problem with its text."""

    text = serializers.CharField()


class Problems(serializers.Serializer):
    """All problems of a team, by name."""

    problems = ProblemShape(many=True)


def problem_of(row: ProblemFile, url: Any) -> dict[str, Any]:
    """A problem as ProblemShape; `url` makes a whole address of a path."""
    return {
        "id": row.pk,
        "name": row.name,
        "sha256": row.sha256,
        "state": row.state,
        "found": row.found,
        "saved_by": str(row.saved_by),
        "saved_at": row.saved_at.isoformat(),
        "checked_at": row.checked_at.isoformat() if row.checked_at else None,
        "html_url": url(reverse("spak-problem", args=(row.team.slug, row.pk))),
    }
