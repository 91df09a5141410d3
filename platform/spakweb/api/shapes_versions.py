"""The documents of versions, tags, formatting and differences, as serializers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from spakweb.api.shapes import TEXT_BYTES
from spakweb.specs.models import SpecVersion, Tag


class NewSpecRequest(serializers.Serializer):
    """A spec and its first version."""

    name = serializers.CharField(max_length=80, help_text="Its slug, in addresses, is made of it.")
    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)
    message = serializers.CharField(required=False, allow_blank=True, max_length=500)


class NewVersionRequest(serializers.Serializer):
    """A text that becomes the newest version."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)
    message = serializers.CharField(required=False, allow_blank=True, max_length=500)


class VersionRow(serializers.Serializer):
    """A version without its text."""

    number = serializers.IntegerField()
    hash = serializers.CharField()
    message = serializers.CharField()
    author = serializers.CharField()
    made_at = serializers.CharField()
    restored_from = serializers.IntegerField(allow_null=True)
    widened_by = serializers.CharField(help_text="Who saved what widens the spec; else empty.")
    errors = serializers.IntegerField(help_text="Findings of `spak check` that are errors.")


class Versions(serializers.Serializer):
    """A page of versions, the newest first; `next` is the address of the page after it."""

    versions = VersionRow(many=True)
    next = serializers.CharField(allow_null=True)


class FormatRequest(serializers.Serializer):
    """A text of a spec."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)


class Formatted(serializers.Serializer):
    """The text as `spak format` lays it out."""

    text = serializers.CharField()
    changed = serializers.BooleanField()


class SpecChange(serializers.Serializer):
    """One thing that differs; `before` and `after` are JSON, null where there was or is nothing."""

    op = serializers.CharField()
    path = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class CapabilityChange(serializers.Serializer):
    """What the agent may do, or is held to, that differs; `widens` is null when that cannot be told."""

    kind = serializers.CharField()
    change = serializers.CharField()
    path = serializers.CharField()
    name = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    widens = serializers.BooleanField(allow_null=True)


class SpecFlag(serializers.Serializer):
    """What a reviewer should not miss: the change widens, or breaks."""

    flag = serializers.CharField()
    path = serializers.CharField()
    why = serializers.CharField()


class SpecDiff(serializers.Serializer):
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


class TagShape(serializers.Serializer):
    """A name for a version."""

    name = serializers.CharField()
    version = serializers.IntegerField()
    hash = serializers.CharField()


class Tags(serializers.Serializer):
    """The tags of a spec, by name."""

    tags = TagShape(many=True)


def etag_of(version: SpecVersion) -> str:
    """The ETag of a version, and of the list that it is the newest of."""
    return f'"{version.number}-{version.content_hash}"'


def row_of(version: SpecVersion) -> dict[str, Any]:
    """A version as VersionRow."""
    from_ = version.restored_from
    return {
        "number": version.number,
        "hash": version.content_hash,
        "message": version.message,
        "author": str(version.author),
        "made_at": version.made_at.isoformat(),
        "restored_from": from_.number if from_ else None,
        "widened_by": version.provenance.get("widened", {}).get("by", ""),
        "errors": int(version.facts.get("errors", 0)),
    }


def tag_of(tag: Tag) -> dict[str, Any]:
    """A tag as TagShape."""
    return {"name": tag.name, "version": tag.version.number, "hash": tag.version.content_hash}
