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
from rest_framework.request import Request

from spak.lang.diagnostics import Severity
from spak.lang.diff import compare
from spak.lang.format import format_text
from spak.patch.make import make
from spakweb.face.api.operations import SPEC, Answer, Query, get, post
from spakweb.face.api.reading import paged
from spakweb.face.api.shapes import versions as shapes
from spakweb.face.api.shapes.common import TEXT_BYTES
from spakweb.face.api.views.specs import find_spec, located
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.text import as_number, clean
from spakweb.store.specs import reach
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec, SpecVersion, Tag
from spakweb.work.specs import actions
from spakweb.work.specs.show import MOST_CHANGES

ETAG = re.compile(r'\s*(?:W/)?"(\d{1,9})-([A-Za-z0-9_-]{43})"\s*')
VERSIONS, TAGS = f"{SPEC}versions/", f"{SPEC}tags/"
IF_MATCH = Query("If-Match", str, Query.HEADER, required=True, description="The ETag of the newest version.")


class Overtaken(Refused):
    """Somebody saved in between: `more` has both sides and their merge."""

    def __init__(self, stale: actions.Stale) -> None:
        said = stale.to_json()
        hint = "Merge `mine` and `head` (`merge` has a proposal), and save with the newest version's ETag."
        super().__init__(said.pop("code"), said.pop("message"), hint, 412)
        self.more = said


@get(
    "spak-api-versions", VERSIONS, gives=shapes.Versions,
    query=(Query("before", int, description="Those with smaller numbers."),),
)  # fmt: skip
def list_versions(request: Request, team: str, spec: str, query: dict[str, Any]) -> Any:
    """Versions without their texts, the newest first. The ETag is that of the newest one."""
    found = find_spec(request, team, spec)
    rows = found.versions.select_related("author", "restored_from").defer("text", "restored_from__text")
    page = paged(request, rows, query, "before", "number")
    return Answer(page, headers={"ETag": shapes.etag_of(found.head)})


@post(
    "spak-api-versions", VERSIONS, takes=shapes.NewVersionRequest, gives=shapes.VersionRow, status=201,
    also=(200,), parameters=[IF_MATCH],
)  # fmt: skip
def save_version(request: Request, team: str, spec: str, body: Any) -> Any:
    """Save a text as the newest version; 200 and nothing new when it is the newest one's already. A
    protected spec takes patches. Needs the scope edit."""
    found = find_spec(request, team, spec, "spec.edit")
    given = body()
    reach.require_whole(request.user, found, given["text"])
    number, digest = _base(request)

    def work() -> Answer:
        base = number if digest == _hash(found, number) else 0
        saved = _saved(request, found, given["text"], base, given.get("message", ""))
        headers = {"ETag": shapes.etag_of(saved)}
        if saved.pk == found.head_id:
            return Answer(saved, 200, headers)
        return Answer(saved, 201, headers | located(request, "spak-api-version", team, spec, saved.number))

    return work


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


@post(
    "spak-api-restore", f"{VERSIONS}<int:number>/restore/", gives=shapes.VersionRow, status=201, also=(200,)
)
def restore_version(request: Request, team: str, spec: str, number: int) -> Any:
    """Save the text of a version as the newest one; 200 and nothing new when it is that already. Needs
    the scope edit."""
    found = find_spec(request, team, spec, "spec.edit")
    rows = SpecVersion.objects.select_related("spec__team", "author")
    version = access.find(request.user, "spec.edit", rows, spec=found, number=number)
    reach.require_whole(request.user, found, version.text)

    def work() -> Answer:
        try:
            saved = actions.restore(request.user, version)
        except Refused as why:
            raise _as_patch(found, why) from why
        status = 200 if saved.pk == found.head_id else 201
        return Answer(saved, status, {"ETag": shapes.etag_of(saved)})

    return work


@post("spak-api-format", f"{SPEC}format/", takes=shapes.FormatRequest, gives=shapes.Formatted)
def format_spec(request: Request, team: str, spec: str, body: Any) -> Any:
    """A text as `spak format` lays it out; nothing is saved."""
    find_spec(request, team, spec)
    text = clean(body()["text"], TEXT_BYTES)
    made = format_text(text)
    if not made.ok:
        first = next(item for item in made.diagnostics if item.severity == Severity.ERROR)
        words = f"line {first.line}: {first.message}"
        raise Refused("lang.invalid", words, "Correct it; `check` lists all that is wrong.", 422)
    return {"text": made.text, "changed": made.text != text}


@get(
    "spak-api-diff", f"{SPEC}diff/", gives=shapes.SpecDiff,
    query=(
        Query("old", str, description="A number or a tag; else the one before `new`."),
        Query("new", str, description="A number or a tag; else the newest version."),
    ),
)  # fmt: skip
def diff_versions(request: Request, team: str, spec: str, query: dict[str, Any]) -> Any:
    """What changed between two versions: in meaning, in what the agent may do, in lines."""
    found = find_spec(request, team, spec)
    new = _named(found, query.get("new", ""), found.head.number)
    old = _named(found, query.get("old", ""), max(1, new.number - 1))
    files = reach.files_for(request.user, found)
    said = compare(files.whole(old.text).parsed, files.whole(new.text).parsed, catalog()).to_json()
    changes = said.pop("changes")
    return {
        "old": old.number,
        "new": new.number,
        **said,
        "changes": changes[:MOST_CHANGES],
        "more_changes": max(0, len(changes) - MOST_CHANGES),
        "unified": make([(f"{found.slug}.spak", old.text.encode(), new.text.encode())]),
    }


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


@get("spak-api-tags", TAGS, gives=shapes.Tags)
def list_tags(request: Request, team: str, spec: str) -> Any:
    """The tags of a spec, by name."""
    return find_spec(request, team, spec).tags.select_related("version")


@post("spak-api-tags", TAGS, takes=shapes.TagRequest, gives=shapes.TagShape)
def set_tag(request: Request, team: str, spec: str, body: Any) -> Any:
    """Tag a version, or move a tag to it; idempotent. Needs the scope edit. In a protected spec `staging`
    and `production` move by their rules."""
    found = find_spec(request, team, spec, "spec.tag")
    given = body()
    version = found.versions.select_related("spec__team").filter(number=given["version"]).first()
    if version is None:
        words = f"This spec has no version {given['version']}."
        raise Refused("web.run_version", words, "GET versions/ lists them.", 422)
    return actions.set_tag(request.user, version, given["name"])


@post("spak-api-tag-remove", f"{TAGS}<str:name>/remove/", status=204)
def remove_tag(request: Request, team: str, spec: str, name: str) -> None:
    """Remove a tag; its version stays. Needs the scope edit."""
    found = find_spec(request, team, spec)
    rows = Tag.objects.select_related("version", "spec__team")
    actions.remove_tag(request.user, access.find(request.user, "spec.tag", rows, spec=found, name=name))
