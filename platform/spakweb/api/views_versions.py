"""Versions of a spec: list, save, format, compare; its tags.

A save names the version that it was made from, in If-Match with the ETag of that version, so that nobody's
work is written over: the ETag of `versions/` and of a version is `"NUMBER-HASH"`. Source: RFC 9110, section
13.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spak.lang.diagnostics import Severity
from spak.lang.diff import compare
from spak.lang.format import format_text
from spak.patch.make import make
from spakweb import access
from spakweb.api import shapes_versions as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import PAGE, asked, asked_number, page_of
from spakweb.api.shapes import TEXT_BYTES
from spakweb.api.views_specs import find_spec
from spakweb.errors import Refused
from spakweb.specs import actions, reach
from spakweb.specs.facts import catalog
from spakweb.specs.models import Spec, SpecVersion, Tag
from spakweb.specs.show import MOST_CHANGES
from spakweb.text import as_number, clean

ETAG = re.compile(r'\s*(?:W/)?"(\d{1,9})-([A-Za-z0-9_-]{43})"\s*')
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of the newest version."
)


class Overtaken(Refused):
    """Somebody saved in between: `more` has both sides and their merge."""

    def __init__(self, stale: actions.Stale) -> None:
        said = stale.to_json()
        hint = "Merge `mine` and `head` (`merge` has a proposal), and save with the newest version's ETag."
        super().__init__(said.pop("code"), said.pop("message"), hint, 412)
        self.more = said


class VersionList(View):
    """Versions of a spec."""

    answers = shapes.Versions

    @extend_schema(
        operation_id="list_versions",
        responses=shapes.Versions,
        parameters=[OpenApiParameter("before", int, description="Those with smaller numbers.")],
    )
    def get(self, request: Request, team: str, spec: str) -> Response:
        """Versions without their texts, the newest first. The ETag is that of the newest one."""
        found = find_spec(request, team, spec)
        rows = found.versions.select_related("author", "restored_from").defer("text", "restored_from__text")
        if (before := asked_number(asked(request, "before"), "before")) is not None:
            rows = rows.filter(number__lt=before)
        page, more = page_of(request, rows[: PAGE + 1], "before", lambda one: one.number)
        body = {"versions": [shapes.row_of(one) for one in page], "next": more}
        return Response(body, headers={"ETag": shapes.etag_of(found.head)})

    @extend_schema(
        operation_id="save_version",
        request=shapes.NewVersionRequest,
        responses={200: shapes.VersionRow, 201: shapes.VersionRow},
        parameters=[IF_MATCH],
    )
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Save a text as the newest version; 200 and nothing new when it is the newest one's already. A
        protected spec takes patches. Needs the scope edit."""
        found = find_spec(request, team, spec, "spec.edit")
        given = self.given(request, shapes.NewVersionRequest)
        reach.require_whole(request.user, found, given["text"])
        number, digest = _base(request)

        def work() -> Response:
            base = number if digest == _hash(found, number) else 0
            saved = _saved(request, found, given["text"], base, given.get("message", ""))
            new = saved.pk != found.head_id
            headers = {"ETag": shapes.etag_of(saved)}
            if new:
                address = reverse("spak-api-version", args=[team, spec, saved.number])
                headers["Location"] = request.build_absolute_uri(address)
            return Response(shapes.row_of(saved), status=201 if new else 200, headers=headers)

        return once(request, work)


def _saved(request: Request, spec: Spec, text: str, base: int, message: str) -> SpecVersion:
    try:
        saved = actions.save_version(request.user, spec, text, base, message, typed=False)
    except Refused as why:
        raise _as_patch(spec, why) from why
    if isinstance(saved, actions.Stale):
        raise Overtaken(saved)
    return saved


def _as_patch(spec: Spec, why: Refused) -> Refused:
    """What refused a text, with the address of patches where the text may be one."""
    if why.code not in ("web.protected", "web.widens"):
        return why
    address = reverse("spak-api-patches", args=[spec.team.slug, spec.slug])
    hint = f"Propose the text as a patch: POST {address}, with a token that has the scope review."
    return Refused(why.code, why.message, hint, why.status)


def _base(request: Request) -> tuple[int, str]:
    """The number and hash of the version that a text was made from. Raises: Refused `web.precondition`."""
    sent = request.headers.get("If-Match", "")
    found = ETAG.fullmatch(sent)
    if found is None:
        words = (
            "If-Match holds no ETag of a version." if sent else "The request does not say what it changes."
        )
        hint = "Send If-Match with the ETag of the version that the text was made from."
        raise Refused("web.precondition", words, hint, 428)
    return int(found[1]), found[2]


def _hash(spec: Spec, number: int) -> str:
    found = spec.versions.filter(number=number).values_list("content_hash", flat=True).first()
    return found or ""


class VersionRestore(View):
    """An older version made the newest."""

    @extend_schema(
        operation_id="restore_version", request=None,
        responses={200: shapes.VersionRow, 201: shapes.VersionRow},
    )  # fmt: skip
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Save the text of a version as the newest one; 200 and nothing new when it is that already. Needs
        the scope edit."""
        found = find_spec(request, team, spec, "spec.edit")
        rows = SpecVersion.objects.select_related("spec__team", "author")
        version = access.find(request.user, "spec.edit", rows, spec=found, number=number)
        reach.require_whole(request.user, found, version.text)

        def work() -> Response:
            try:
                saved = actions.restore(request.user, version)
            except Refused as why:
                raise _as_patch(found, why) from why
            status = 200 if saved.pk == found.head_id else 201
            return Response(shapes.row_of(saved), status=status, headers={"ETag": shapes.etag_of(saved)})

        return once(request, work)


class SpecFormat(View):
    """The layout of a text."""

    @extend_schema(operation_id="format_spec", request=shapes.FormatRequest, responses=shapes.Formatted)
    def post(self, request: Request, team: str, spec: str) -> Response:
        """A text as `spak format` lays it out; nothing is saved."""
        find_spec(request, team, spec)
        text = clean(self.given(request, shapes.FormatRequest)["text"], TEXT_BYTES)
        made = format_text(text)
        if not made.ok:
            first = next(item for item in made.diagnostics if item.severity == Severity.ERROR)
            words = f"line {first.line}: {first.message}"
            raise Refused("lang.invalid", words, "Correct it; `check` lists all that is wrong.", 422)
        return Response({"text": made.text, "changed": made.text != text})


class SpecCompare(View):
    """Two versions compared."""

    @extend_schema(
        operation_id="diff_versions",
        responses=shapes.SpecDiff,
        parameters=[
            OpenApiParameter("old", str, description="A number or a tag; else the one before `new`."),
            OpenApiParameter("new", str, description="A number or a tag; else the newest version."),
        ],
    )
    def get(self, request: Request, team: str, spec: str) -> Response:
        """What changed between two versions: in meaning, in what the agent may do, in lines."""
        found = find_spec(request, team, spec)
        given = asked(request, "old", "new")
        new = _named(found, given.get("new", ""), found.head.number)
        old = _named(found, given.get("old", ""), max(1, new.number - 1))
        files = reach.files_for(request.user, found)
        said = compare(files.whole(old.text).parsed, files.whole(new.text).parsed, catalog()).to_json()
        changes = said.pop("changes")
        body = {
            "old": old.number,
            "new": new.number,
            **said,
            "changes": changes[:MOST_CHANGES],
            "more_changes": max(0, len(changes) - MOST_CHANGES),
            "unified": make([(f"{found.slug}.spak", old.text.encode(), new.text.encode())]),
        }
        return Response(body)


def _named(spec: Spec, name: str, default: int) -> SpecVersion:
    """The version of a number or a tag. Raises: Http404."""
    if not name:
        rows = spec.versions.filter(number=default)
    elif (number := as_number(name)) is not None:
        rows = spec.versions.filter(number=number)
    else:
        rows = spec.versions.filter(tags__name=name)
    found = rows.first()
    if found is None:
        raise Http404
    return found


def version_named(spec: Spec, given: Mapping[str, Any]) -> SpecVersion:
    """The version that a request names by `version` or `tag`; else the newest.

    Raises: Refused `web.request`, `web.run_version`.
    """
    if "version" in given and "tag" in given:
        raise Refused("web.request", "version and tag cannot both be given.", "Send one of them.", 422)
    found: SpecVersion | None = spec.head
    if "tag" in given:
        row = spec.tags.filter(name=given["tag"]).select_related("version").first()
        found = row.version if row else None
    elif "version" in given:
        found = spec.versions.filter(number=given["version"]).first()
    if found is None:
        named = f"tag {given['tag']!r}" if "tag" in given else f"version {given['version']}"
        raise Refused("web.run_version", f"This spec has no {named}.", "Its page lists them.", 422)
    found.spec = spec  # with its team, which whoever starts a run asks for
    return found


class TagList(View):
    """Tags of a spec."""

    answers = shapes.Tags

    @extend_schema(operation_id="list_tags", responses=shapes.Tags)
    def get(self, request: Request, team: str, spec: str) -> Response:
        """The tags of a spec, by name."""
        found = find_spec(request, team, spec)
        return Response({"tags": [shapes.tag_of(one) for one in found.tags.select_related("version")]})

    @extend_schema(operation_id="set_tag", request=shapes.TagRequest, responses={200: shapes.TagShape})
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Tag a version, or move a tag to it; idempotent. Needs the scope edit. In a protected spec `staging`
        and `production` move by their rules."""
        found = find_spec(request, team, spec, "spec.tag")
        given = self.given(request, shapes.TagRequest)
        version = found.versions.select_related("spec__team").filter(number=given["version"]).first()
        if version is None:
            words = f"This spec has no version {given['version']}."
            raise Refused("web.run_version", words, "GET versions/ lists them.", 422)
        return Response(shapes.tag_of(actions.set_tag(request.user, version, given["name"])))


class TagRemove(View):
    """Removing a tag."""

    @extend_schema(operation_id="remove_tag", request=None, responses={204: None})
    def post(self, request: Request, team: str, spec: str, name: str) -> Response:
        """Remove a tag; its version stays. Needs the scope edit."""
        found = find_spec(request, team, spec)
        rows = Tag.objects.select_related("version", "spec__team")
        tag = access.find(request.user, "spec.tag", rows, spec=found, name=name)
        actions.remove_tag(request.user, tag)
        return Response(status=204)
