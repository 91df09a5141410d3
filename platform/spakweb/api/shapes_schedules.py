"""The documents of schedules, as serializers."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from spakweb.api.shapes import Builds
from spakweb.schedules.models import Schedule


class ScheduleChange(serializers.Serializer):
    """What of a schedule is to be another; what is not given stays."""

    cron = serializers.CharField(
        required=False, max_length=100, help_text="Minute, hour, day, month, day of the week."
    )
    zone = serializers.CharField(required=False, max_length=60, help_text="By its IANA name; else UTC.")
    missed = serializers.ChoiceField(
        Schedule.Missed.values, required=False, help_text="A time that passed while the platform was down."
    )
    inputs = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False)
    source = serializers.CharField(required=False, allow_blank=True, max_length=40)
    ref = serializers.CharField(required=False, allow_blank=True, max_length=255)


class ScheduleRequest(ScheduleChange):
    """Runs of the spec's newest version, by the clock."""

    name = serializers.CharField(max_length=60)
    cron = serializers.CharField(max_length=100, help_text="Minute, hour, day, month, day of the week.")


class ScheduleShape(serializers.Serializer):
    """A schedule, and what became of its latest time. Its runs have the rights of `person`."""

    id = serializers.IntegerField()
    spec = serializers.CharField()
    name = serializers.CharField()
    cron = serializers.CharField()
    zone = serializers.CharField()
    missed = serializers.CharField()
    inputs = serializers.DictField()
    source = serializers.CharField(allow_blank=True)
    ref = serializers.CharField(allow_blank=True)
    active = serializers.BooleanField()
    person = serializers.CharField()
    made_at = serializers.CharField()
    next_at = serializers.CharField(allow_null=True, help_text="Null while it is off.")
    last_at = serializers.CharField(allow_null=True)
    last_run = serializers.CharField(allow_null=True)
    last_error = serializers.CharField(allow_blank=True, help_text="Why its latest time began no run.")
    url = serializers.CharField()


class Schedules(serializers.Serializer):
    """All schedules of a team, by name; there are at most 50."""

    schedules = ScheduleShape(many=True)


def schedule_of(request: Builds, row: Schedule) -> dict[str, Any]:
    """A schedule as ScheduleShape."""
    same = ("name", "cron", "zone", "missed", "inputs", "source", "ref", "active", "last_error")
    return {
        **{name: getattr(row, name) for name in same},
        "id": row.pk,
        "spec": row.spec.slug,
        "person": str(row.person),
        "made_at": row.made_at.isoformat(),
        "next_at": row.next_at.isoformat() if row.active else None,
        "last_at": row.last_at.isoformat() if row.last_at else None,
        "last_run": row.last_run.key if row.last_run else None,
        "url": request.build_absolute_uri(reverse("spak-api-schedule", args=[row.team.slug, row.pk])),
    }
