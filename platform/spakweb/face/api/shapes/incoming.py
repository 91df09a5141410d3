"""Serializers of what comes in: folders of sources, triggers, their addresses and the messages that came."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from spakweb.face.api.documents import Document, Moment, listing
from spakweb.store.folders.models import Folder
from spakweb.store.incoming.models import Receiver
from spakweb.store.triggers.models import Trigger
from spakweb.work.folders.queue import SYNC
from spakweb.work.incoming import log
from spakweb.work.jobs import queue as jobs


class ReceivedShape(Document):
    """What became of a message."""

    state = serializers.ChoiceField(["done", "ignored", "held", "repeated"])
    reason = serializers.CharField()
    run = serializers.CharField(source="run.key", allow_null=True, help_text="The run that it started.")


class DeliveryShape(Document):
    """A message that came: done, ignored, held, repeated or refused, and why."""

    id = serializers.CharField(source="message", help_text="As the sender gave it.")
    event = serializers.CharField()
    ref = serializers.CharField()
    commit = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    run = serializers.CharField(source="run.key", allow_null=True)
    at = Moment()


Deliveries = listing("Deliveries", DeliveryShape, "The newest 50 messages of an address.")


class SecretShape(Document):
    """An address, and the secret that messages to it are signed with, which is given this once."""

    url = serializers.CharField()
    secret = serializers.CharField()

    def to_representation(self, row: tuple[Receiver, str]) -> dict[str, str]:
        """The document of a receiver and its secret."""
        receiver, secret = row
        url = log.address(self.context["request"], receiver)
        return super().to_representation({"url": url, "secret": secret})


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


class FolderLine(Document):
    """What the latest sync says of a file."""

    path = serializers.CharField()
    spec = serializers.CharField()
    what = serializers.CharField(
        help_text="created, changed, removed, moved, patch, conflict, invalid, wrong, waits, left or sent."
    )
    words = serializers.CharField()
    pull_url = serializers.CharField(help_text="Where its pull request is; empty: it has none.")

    def get_pull_url(self, line: dict[str, str]) -> str:
        """Lines of before have none."""
        return line.get("pull_url", "")


class FolderShape(Document):
    """A folder that is synced: new, same, look (somebody has to look at its lines) or failed."""

    branch = serializers.CharField(source="short_branch")
    path = serializers.CharField()
    out = serializers.CharField()
    active = serializers.BooleanField()
    person = serializers.CharField()
    wanted = serializers.BooleanField(help_text="A sync is asked for.")
    state = serializers.CharField()
    error = serializers.CharField()
    commit = serializers.CharField()
    pull_url = serializers.CharField(help_text="The pull request that was opened or updated last.")
    done_at = Moment(allow_null=True)
    result = FolderLine(many=True)

    def get_wanted(self, row: Folder) -> bool:
        """Whether somebody asked for a sync that is still to come."""
        return jobs.is_wanted(SYNC, row.pk)


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


class TriggerShape(Document):
    """A trigger, without its secret."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    spec = serializers.CharField(source="spec.slug")
    version = serializers.IntegerField(source="version.number", allow_null=True)
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
    last_run = serializers.CharField(source="last_run.key", allow_null=True)
    made_at = Moment()


class NewTrigger(TriggerShape):
    """A trigger with its address and its secret, which is given this once."""

    url = serializers.CharField()
    secret = serializers.CharField(help_text="Empty where the answer is a repeated one: rotate it then.")

    def to_representation(self, row: tuple[Trigger, str]) -> dict[str, Any]:
        """The document of a trigger and its secret."""
        trigger, secret = row
        address = SecretShape.of(self.context["request"], (trigger.receiver, secret))
        return {**TriggerShape().to_representation(trigger), **address}


Triggers = listing("Triggers", TriggerShape, "All triggers of a team, by name.")
