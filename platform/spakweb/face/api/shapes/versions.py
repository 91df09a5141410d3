"""The documents of versions, tags, formatting and differences, as serializers."""

from __future__ import annotations

from rest_framework import serializers

from spakweb.face.api.documents import Document, Moment, listing
from spakweb.face.api.shapes.common import TEXT_BYTES
from spakweb.store.specs.models import SpecVersion


class NewSpecRequest(serializers.Serializer):
    """A spec and its first version."""

    name = serializers.CharField(max_length=80, help_text="Its slug, in addresses, is made of it.")
    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)
    message = serializers.CharField(required=False, allow_blank=True, max_length=500)


class NewVersionRequest(serializers.Serializer):
    """A text that becomes the newest version."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)
    message = serializers.CharField(required=False, allow_blank=True, max_length=500)


class VersionRow(Document):
    """A version without its text."""

    number = serializers.IntegerField()
    hash = serializers.CharField(source="content_hash")
    message = serializers.CharField()
    author = serializers.CharField(
        source="writer", help_text="Who wrote it; of a merged patch who proposed it."
    )
    merged_by = serializers.CharField(help_text="Who merged the patch that it is from; else empty.")
    made_at = Moment()
    restored_from = serializers.IntegerField(source="restored_from.number", allow_null=True)
    widened_by = serializers.CharField(help_text="Who saved what widens the spec; else empty.")
    errors = serializers.IntegerField(help_text="Findings of `spak check` that are errors.")

    def get_widened_by(self, version: SpecVersion) -> str:
        """Who confirmed that the spec widens."""
        return str(version.provenance.get("widened", {}).get("by", ""))

    def get_errors(self, version: SpecVersion) -> int:
        """The number of them when it was saved."""
        return int(version.facts.get("errors", 0))


Versions = listing(
    "Versions",
    VersionRow,
    "A page of versions, the newest first; `next` is the address of the page after it.",
    pages=True,
)


class FormatRequest(serializers.Serializer):
    """A text of a spec."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)


class Formatted(Document):
    """The text as `spak format` lays it out."""

    text = serializers.CharField()
    changed = serializers.BooleanField()


class SpecChange(Document):
    """One thing that differs; `before` and `after` are JSON, null where there was or is nothing."""

    op = serializers.CharField()
    path = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class CapabilityChange(Document):
    """What the agent may do, or is held to, that differs; `widens` is null when that cannot be told."""

    kind = serializers.CharField()
    change = serializers.CharField()
    path = serializers.CharField()
    name = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    widens = serializers.BooleanField(allow_null=True)


class SpecFlag(Document):
    """What a reviewer should not miss: the change widens, or breaks."""

    flag = serializers.CharField()
    path = serializers.CharField()
    why = serializers.CharField()


class SpecDiff(Document):
    """Two versions compared: what `spak diff --json` says, and the lines as a unified diff."""

    old = serializers.IntegerField()
    new = serializers.IntegerField()
    equal = serializers.BooleanField(help_text="They mean the same.")
    formatting_only = serializers.BooleanField()
    changes = SpecChange(many=True)
    more_changes = serializers.IntegerField(help_text="Changes beyond the first 1,000.")
    capabilities = CapabilityChange(many=True)
    flags = SpecFlag(many=True)
    renames = serializers.DictField(child=serializers.CharField())
    unified = serializers.CharField(help_text="`spak patch` and patches of the API take it.")


class TagRequest(serializers.Serializer):
    """A tag and the version that it is to be at."""

    name = serializers.CharField(max_length=40)
    version = serializers.IntegerField(min_value=1)


class TagShape(Document):
    """A name for a version."""

    name = serializers.CharField()
    version = serializers.IntegerField(source="version.number")
    hash = serializers.CharField(source="version.content_hash")


Tags = listing("Tags", TagShape, "The tags of a spec, by name.")


def etag_of(version: SpecVersion) -> str:
    """The ETag of a version, and of the list that it is the newest of."""
    return f'"{version.number}-{version.content_hash}"'
