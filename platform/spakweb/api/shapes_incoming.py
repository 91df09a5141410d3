"""Serializers of what comes in: folders of sources, triggers, their addresses and the messages that came."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from spakweb.api.shapes import Builds
from spakweb.folders.models import Folder
from spakweb.incoming import log
from spakweb.incoming.models import Received, Receiver
from spakweb.triggers.models import Trigger


class ReceivedShape(serializers.Serializer):
    """What became of a message."""

    state = serializers.ChoiceField(["done", "ignored", "held", "repeated"])
    reason = serializers.CharField()
    run = serializers.CharField(allow_null=True, help_text="The run that it started.")


class DeliveryShape(serializers.Serializer):
    """A message that came: done, ignored, held, repeated or refused, and why."""

    id = serializers.CharField(help_text="As the sender gave it.")
    event = serializers.CharField()
    ref = serializers.CharField()
    commit = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    run = serializers.CharField(allow_null=True)
    at = serializers.CharField()


class Deliveries(serializers.Serializer):
    """The newest 50 messages of an address."""

    deliveries = DeliveryShape(many=True)


class SecretShape(serializers.Serializer):
    """An address, and the secret that messages to it are signed with, which is given this once."""

    url = serializers.CharField()
    secret = serializers.CharField()


class FolderRequest(serializers.Serializer):
    """A folder of a source whose .spak files are specs of the team."""

    branch = serializers.CharField(max_length=200)
    path = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="Else the whole repository."
    )
    out = serializers.ChoiceField(
        ["none", "commit", "pull"],
        required=False,
        help_text="What becomes of a version that the repository does not have.",
    )


class IncludeRequest(serializers.Serializer):
    """A spec that is to have a file in the folder."""

    spec = serializers.CharField(max_length=60)


class FolderLine(serializers.Serializer):
    """What the latest sync says of a file."""

    path = serializers.CharField()
    spec = serializers.CharField()
    what = serializers.CharField(
        help_text="created, changed, removed, patch, conflict, invalid, wrong, waits, left or sent."
    )
    words = serializers.CharField()
    pull_url = serializers.CharField(help_text="Where its pull request is; empty: it has none.")


class FolderShape(serializers.Serializer):
    """A folder that is synced: new, same, look (somebody has to look at its lines) or failed."""

    branch = serializers.CharField()
    path = serializers.CharField()
    out = serializers.CharField()
    active = serializers.BooleanField()
    person = serializers.CharField()
    wanted = serializers.BooleanField(help_text="A sync is asked for.")
    state = serializers.CharField()
    error = serializers.CharField()
    commit = serializers.CharField()
    pull_url = serializers.CharField(help_text="The pull request that was opened or updated last.")
    done_at = serializers.CharField(allow_null=True)
    result = FolderLine(many=True)


class TriggerRequest(serializers.Serializer):
    """A trigger. `mapping` has a JSON pointer into the message for each input that comes from it."""

    name = serializers.CharField(max_length=60)
    version = serializers.IntegerField(required=False, min_value=1)
    tag = serializers.CharField(required=False, max_length=40)
    event = serializers.CharField(required=False, max_length=100, help_text="Else any.")
    ref = serializers.CharField(required=False, max_length=200, help_text="main, refs/tags/v*; else any.")
    mapping = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False)
    inputs = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False)
    source = serializers.CharField(
        required=False, max_length=40, help_text="The run begins with its files at the message's commit."
    )
    ref_at = serializers.CharField(required=False, max_length=200, help_text="/ref")
    commit_at = serializers.CharField(required=False, max_length=200, help_text="/after")


class TriggerShape(serializers.Serializer):
    """A trigger, without its secret."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    spec = serializers.CharField()
    version = serializers.IntegerField(allow_null=True)
    tag = serializers.CharField()
    event = serializers.CharField()
    ref = serializers.CharField()
    mapping = serializers.DictField(child=serializers.CharField(allow_blank=True))
    inputs = serializers.DictField(child=serializers.CharField(allow_blank=True))
    source = serializers.CharField()
    ref_at = serializers.CharField()
    commit_at = serializers.CharField()
    active = serializers.BooleanField()
    person = serializers.CharField()
    last_run = serializers.CharField(allow_null=True)
    made_at = serializers.CharField()


class NewTrigger(TriggerShape):
    """A trigger with its address and its secret, which is given this once."""

    url = serializers.CharField()
    secret = serializers.CharField(help_text="Empty where the answer is a repeated one: rotate it then.")


class Triggers(serializers.Serializer):
    """All triggers of a team, by name."""

    triggers = TriggerShape(many=True)


TRIGGER_FIELDS = (
    *("name", "tag", "event", "ref", "mapping", "inputs", "source", "ref_at", "commit_at", "active"),
)
FOLDER_FIELDS = ("path", "out", "active", "state", "error", "commit", "pull_url")


def delivery_of(row: Received) -> dict[str, Any]:
    """A message as DeliveryShape."""
    return {
        **{name: getattr(row, name) for name in ("event", "ref", "commit", "state", "reason")},
        "id": row.message,
        "run": row.run.key if row.run else None,
        "at": row.at.isoformat(),
    }


def deliveries_of(receiver: Receiver) -> dict[str, Any]:
    """The log of a receiver as Deliveries."""
    return {"deliveries": [delivery_of(row) for row, _, _ in log.deliveries(receiver)]}


def secret_of(request: Builds, receiver: Receiver, secret: str) -> dict[str, str]:
    """An address as SecretShape."""
    return {"url": log.address(request, receiver), "secret": secret}


def folder_of(row: Folder) -> dict[str, Any]:
    """A folder as FolderShape."""
    return {
        **{name: getattr(row, name) for name in FOLDER_FIELDS},
        "branch": row.short_branch,
        "result": [{"pull_url": "", **line} for line in row.result],
        "person": str(row.person),
        "wanted": row.wanted_at is not None,
        "done_at": row.done_at.isoformat() if row.done_at else None,
    }


def trigger_of(row: Trigger) -> dict[str, Any]:
    """A trigger as TriggerShape."""
    return {
        **{name: getattr(row, name) for name in TRIGGER_FIELDS},
        "id": row.pk,
        "spec": row.spec.slug,
        "version": row.version.number if row.version else None,
        "person": str(row.person),
        "last_run": row.last_run.key if row.last_run else None,
        "made_at": row.made_at.isoformat(),
    }
