"""The documents of schedules, as serializers."""

from __future__ import annotations

from datetime import datetime

from rest_framework import serializers

from spakweb.face.api.documents import Address, Document, Moment, listing
from spakweb.store.schedules.models import Schedule


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


class ScheduleShape(Document):
    """A schedule, and what became of its latest time. Its runs have the rights of `person`."""

    id = serializers.IntegerField(source="pk")
    spec = serializers.CharField(source="spec.slug")
    name = serializers.CharField()
    cron = serializers.CharField()
    zone = serializers.CharField()
    missed = serializers.CharField()
    inputs = serializers.DictField()
    source = serializers.CharField(allow_blank=True)
    ref = serializers.CharField(allow_blank=True)
    active = serializers.BooleanField()
    person = serializers.CharField()
    made_at = Moment()
    next_at = Moment(allow_null=True, help_text="Null while it is off.")
    last_at = Moment(allow_null=True)
    last_run = serializers.CharField(source="last_run.key", allow_null=True)
    last_error = serializers.CharField(allow_blank=True, help_text="Why its latest time began no run.")
    url = Address("spak-api-schedule", "team.slug", "pk")

    def get_next_at(self, row: Schedule) -> datetime | None:
        """Its next time, while it is on."""
        return row.next_at if row.active else None


Schedules = listing("Schedules", ScheduleShape, "All schedules of a team, by name; there are at most 50.")
