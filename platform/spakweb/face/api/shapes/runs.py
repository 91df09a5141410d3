"""The documents of what is done with a run that exists and of what it leaves, as serializers."""

from __future__ import annotations

from rest_framework import serializers

from spakweb.face.api.documents import Address, Document, listing


class ForkRequest(serializers.Serializer):
    """Where another run branches off: a record, the last entry of a task, or else the last effect."""

    not_both = (("at", "task"),)

    at = serializers.IntegerField(required=False, min_value=1, help_text="The records before it are reused.")
    task = serializers.CharField(required=False, max_length=120)
    mode = serializers.CharField(required=False, max_length=12)


class ReplayRequest(serializers.Serializer):
    """A replay that was begun already, or nothing."""

    of = serializers.CharField(required=False, max_length=200, help_text="The `of` of the answer before.")


class Replayed(Document):
    """A replay: with `done` its result, else how far it is. Ask again with its `of`."""

    done = serializers.BooleanField()
    of = serializers.CharField()
    progress = serializers.CharField(allow_blank=True)
    ledger_ok = serializers.BooleanField(allow_null=True, help_text="The chain of hashes holds.")
    replay_equal = serializers.BooleanField(
        allow_null=True, help_text="Every commit follows from the records before it."
    )
    records = serializers.IntegerField()
    head = serializers.CharField(allow_blank=True)
    difference = serializers.IntegerField(allow_null=True, help_text="The first record that does not follow.")
    problems = serializers.ListField(child=serializers.CharField())


class CallRequest(serializers.Serializer):
    """What the run waits for (`asks`), and the backend of a run that has none."""

    of = serializers.CharField(max_length=200)
    backend = serializers.CharField(required=False, max_length=40)


class LabelsRequest(serializers.Serializer):
    """All labels that the run is to have."""

    labels = serializers.ListField(child=serializers.CharField())


class RunFile(Document):
    """A file that the run made or changed, or one of its best candidate; `url` gives its content."""

    name = serializers.CharField()
    key = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)
    leaves_as = serializers.CharField(
        allow_blank=True,
        help_text="Its class at the door: runs (a tool may take it up by itself), checks, ordinary, odd or "
        "ignored; empty for a candidate.",
    )
    url = Address("spak-api-file", "team", "run", "key")


RunFiles = listing("RunFiles", RunFile, "Files of a run, 200 at most; the zip has all.", rows="files")


class RunLive(Document):
    """Where a run is, in figures, and where it is in the graph of its spec."""

    state = serializers.CharField()
    task = serializers.CharField()
    count = serializers.IntegerField(help_text="Its records.")
    ended = serializers.BooleanField()
    asks = serializers.CharField(help_text="The id of what it waits for; empty: nothing.")
    given = serializers.BooleanField(help_text="It was answered, and no worker has taken the answer up yet.")
    nodes = serializers.DictField(
        child=serializers.ListField(),
        help_text="By task: its state, times entered, tokens, their cost, failed steps that may fail.",
    )
    edges = serializers.ListField(
        child=serializers.ListField(), help_text="From, signal, to, times, times after such a failure."
    )


class ReportShape(Document):
    """The document of `spak run --json`, and what its check came to."""

    run = serializers.CharField()
    state = serializers.CharField()
    task = serializers.CharField(allow_blank=True)
    summary_hash = serializers.CharField()
    chain_head = serializers.CharField()
    records = serializers.IntegerField()
    metrics = serializers.DictField()
    artifacts = serializers.ListField(child=serializers.DictField())
    waiting = serializers.DictField(allow_null=True)
    refusal = serializers.DictField(allow_null=True)
    recorded = serializers.DictField(allow_null=True)
    ledger_ok = serializers.BooleanField()
    replay_equal = serializers.BooleanField()
    quality = serializers.DictField(child=serializers.CharField())
