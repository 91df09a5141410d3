"""Patches: lists, revisions, verdicts, comments, and all that a program may do with a patch.

Whatever changes a patch names the revision that the program has seen; with a newer one nothing is done (409
`web.patch_moved`). Nobody approves by token, or asks for changes: a merge needs the approvals of people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from spakweb.face.api.documents import Page, With
from spakweb.face.api.operations import SPEC, Answer, Query, get, post
from spakweb.face.api.reading import paged
from spakweb.face.api.shapes import reviews as shapes
from spakweb.face.api.shapes.reviews import PatchShape, SeenRequest
from spakweb.face.api.views.specs import find_spec, located
from spakweb.ground import access
from spakweb.store.reviews.models import Comment, Patch, Revision, Verdict
from spakweb.store.specs import reach
from spakweb.work.reviews import actions, merge_queue, rules, talk
from spakweb.work.reviews.parts import edits_of, parts_of, paths_of
from spakweb.work.reviews.reading import read

MOST = 1000
"""Rows of the lists that have no pages."""
PATCHES = f"{SPEC}patches/"
PATCH = f"{PATCHES}<int:number>/"
REVISIONS, COMMENTS = f"{PATCH}revisions/", f"{PATCH}comments/"
COMMENT = f"{COMMENTS}<int:comment>/"


def find_patch(request: Request, team: str, spec: str, number: int, action: str = "spec.propose") -> Patch:
    """The patch; whoever is to change it sees all that its texts import.

    Raises: Http404, PermissionDenied, Refused `web.token_imports`.
    """
    rows = Patch.objects.select_related("spec__team", "spec__head", "author", "merged", "reverts")
    here = {"spec__team__slug": team, "spec__slug": spec, "number": number}
    found: Patch = access.find(request.user, action, rows, **here)
    if action == "spec.propose" and reach.named(request.user) is not None:
        reach.require_whole(request.user, found.spec, found.latest.base.text, found.latest.text)
    return found


def _seen(request: Request, change: Callable[[], Revision]) -> Revision:
    """The revision that a change makes; nothing is changed where the token would not see all that it imports.

    Raises: Refused `web.token_imports`, and what the change raises.
    """
    with transaction.atomic():
        made = change()
        reach.require_whole(request.user, made.patch.spec, made.text)
    return made


def _revised(request: Request, change: Callable[[], Revision]) -> Answer:
    """The patch with its new revision."""
    made = _seen(request, change)
    here = made.patch.spec.team.slug, made.patch.spec.slug, made.patch.number, made.number
    return Answer(made.patch, headers=located(request, "spak-api-patch-revision", *here))


def _proposed(request: Request, change: Callable[[], Patch]) -> Answer:
    """The patch that a change proposes."""
    patch = _seen(request, lambda: change().latest).patch
    here = patch.spec.team.slug, patch.spec.slug, patch.number
    return Answer(patch, headers=located(request, "spak-api-patch", *here))


def _now(request: Request, patch: Patch) -> Patch:
    """The patch as the database has it now."""
    return find_patch(request, patch.spec.team.slug, patch.spec.slug, patch.number, "spec.view")


@get(
    "spak-api-patches", PATCHES, gives=shapes.Patches,
    query=(
        Query("state", str, enum=list(Patch.State.values)),
        Query("before", int, description="Those with smaller numbers."),
    ),
)  # fmt: skip
def list_patches(request: Request, team: str, spec: str, query: dict[str, Any]) -> Any:
    """Patches of a spec, the newest first."""
    found = find_spec(request, team, spec)
    newest = Revision.objects.filter(patch=OuterRef("pk")).order_by("-number").values("pk")[:1]
    rows = found.patches.select_related("spec__team", "author", "merged").defer("merged__text")
    rows = rows.annotate(newest=Subquery(newest))
    if "state" in query:
        rows = rows.filter(state=query["state"])
    page = paged(request, rows, query, "before", "number")
    last = Revision.objects.select_related("base").defer("text", "base__text")
    revisions = last.in_bulk([one.newest for one in page.rows])
    return Page([With(one, latest=revisions[one.newest]) for one in page.rows], page.next)


@post("spak-api-patches", PATCHES, takes=shapes.PatchRequest, gives=PatchShape, status=201)
def propose_patch(request: Request, team: str, spec: str, body: Any) -> Any:
    """Propose a patch. Needs the scope review; nobody approves by token."""
    found, given = find_spec(request, team, spec, "spec.propose"), body()
    text, base, title = given["text"], given["base_version"], given["title"]
    why = given.get("rationale", "")
    return lambda: _proposed(request, lambda: actions.propose(request.user, found, text, base, title, why))


@get("spak-api-patch", PATCH, gives=PatchShape)
def get_patch(request: Request, team: str, spec: str, number: int) -> Any:
    """A patch, its checks, and what a merge of it still waits for: a gate for CI."""
    return find_patch(request, team, spec, number, "spec.view")


@get("spak-api-patch-revisions", REVISIONS, gives=shapes.Revisions)
def list_revisions(request: Request, team: str, spec: str, number: int) -> Any:
    """The revisions of a patch without their texts, the newest first."""
    found = find_patch(request, team, spec, number, "spec.view")
    return found.revisions.select_related("author", "base").defer("text", "base__text")[:MOST]


@post("spak-api-patch-revisions", REVISIONS, takes=shapes.ReviseRequest, gives=PatchShape, status=201)
def revise_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Make the next revision of a patch, whose author does not approve it. Needs the scope review."""
    found, given = find_patch(request, team, spec, number), body()
    seen, text, why = given["revision"], given["text"], given.get("why", "")
    return lambda: _revised(request, lambda: actions.revise(request.user, found, seen, text, why))


@get("spak-api-patch-revision", f"{REVISIONS}<int:revision>/", gives=shapes.RevisionText)
def get_revision(request: Request, team: str, spec: str, number: int, revision: int) -> Any:
    """A revision with its text and its edits against its base."""
    found = find_patch(request, team, spec, number, "spec.view")
    return get_object_or_404(found.revisions.select_related("author", "base"), number=revision)


@get("spak-api-patch-verdicts", f"{PATCH}verdicts/", gives=shapes.Verdicts)
def list_verdicts(request: Request, team: str, spec: str, number: int) -> Any:
    """What people said of the revisions of a patch; nobody gives a verdict by token."""
    found = find_patch(request, team, spec, number, "spec.view")
    counted = {one.pk for one in rules.standing_approvals(found)}
    rows = Verdict.standing().filter(revision__patch=found).select_related("user", "revision")
    rows = rows.defer("revision__text").order_by("pk")[:MOST]
    return [With(one, counts=one.pk in counted) for one in rows]


@get("spak-api-patch-comments", COMMENTS, gives=shapes.Comments)
def list_comments(request: Request, team: str, spec: str, number: int) -> Any:
    """The comments on a patch with their answers."""
    found = find_patch(request, team, spec, number, "spec.view")
    rows = found.comments.select_related("author", "revision").defer("revision__text")[:MOST]
    return _shown(found, rows)


@post(
    "spak-api-patch-comments", COMMENTS,
    takes=shapes.CommentRequest, gives=shapes.CommentShape, status=201,
)  # fmt: skip
def comment_on_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Comment on a patch, a part or a line, suggest another text for a line, or answer. Needs the scope
    review."""
    found, given = find_patch(request, team, spec, number), body()

    def work() -> Any:
        made = talk.comment(
            request.user, found, given.get("text", ""), given.get("path", ""),
            line=given.get("line", 0), seen=given.get("revision", 0), answers=given.get("answers", 0),
            suggestion=given.get("suggestion"),
        )  # fmt: skip
        return _shown(found, [made])[0]

    return work


def _shown(patch: Patch, rows: Any) -> list[With]:
    """Comments, with whether the newest revision has outdated them."""
    latest = patch.latest
    reading = read(patch.spec, latest.base.text, latest.text)
    paths = paths_of(parts_of(reading, edits_of(latest.base.text, latest.text)))
    return [With(one, outdated=talk.outdated(one, latest, paths)) for one in rows]


def _comment(patch: Patch, key: int) -> Comment:
    row = patch.comments.select_related("author", "revision").filter(pk=key).first()
    if row is None:
        raise Http404
    return row


@post(
    "spak-api-comment-resolve", f"{COMMENT}resolve/", takes=shapes.ResolveRequest, gives=shapes.CommentShape
)
def resolve_comment(request: Request, team: str, spec: str, number: int, comment: int, body: Any) -> Any:
    """Resolve the thread of a comment, or open it again; idempotent. Needs the scope review."""
    found = find_patch(request, team, spec, number)
    row = _comment(found, comment)
    talk.resolve(request.user, found, row.parent_id or row.pk, body()["resolved"])
    return _shown(found, [_comment(found, comment)])[0]


@post("spak-api-comment-apply", f"{COMMENT}apply/", takes=SeenRequest, gives=PatchShape, status=201)
def apply_suggestion(request: Request, team: str, spec: str, number: int, comment: int, body: Any) -> Any:
    """Apply the suggestion of a comment: the next revision has it. Needs the scope review."""
    found = find_patch(request, team, spec, number)
    row, seen = _comment(found, comment), body()["revision"]
    return lambda: _revised(request, lambda: talk.take(request.user, found, seen, row.pk))


@post(
    "spak-api-patch-drop-edit", f"{PATCH}drop-edit/", takes=shapes.DropRequest, gives=PatchShape, status=201
)
def drop_edit(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Drop an edit of the newest revision: the next one is without it, and its checks run. Needs the
    scope review."""
    return _of_one_edit(request, find_patch(request, team, spec, number), body(), actions.drop_edit)


@post(
    "spak-api-patch-keep-edit", f"{PATCH}keep-edit/", takes=shapes.DropRequest, gives=PatchShape, status=201
)
def keep_edit(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Keep one edit of the newest revision: the next one has it alone, and its checks run. Needs the
    scope review."""
    return _of_one_edit(request, find_patch(request, team, spec, number), body(), actions.keep_edit)


def _of_one_edit(
    request: Request, patch: Patch, given: dict[str, Any], act: Callable[..., Any]
) -> Callable[[], Answer]:
    """What makes the next revision, by an action about one edit."""
    seen, place, why = given["revision"], given["edit"] - 1, given.get("why", "")
    return lambda: _revised(request, lambda: act(request.user, patch, seen, place, why))


@post("spak-api-patch-fork", f"{PATCH}fork/", takes=shapes.PatchForkRequest, gives=PatchShape, status=201)
def fork_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Propose a patch that begins with the newest revision of another, or with a text made of it. Needs
    the scope review."""
    found, given = find_patch(request, team, spec, number), body()
    text, title = given.get("text", ""), given.get("title", "")
    return lambda: _proposed(request, lambda: actions.fork(request.user, found, text, title))


@post(
    "spak-api-patch-update", f"{PATCH}update/", takes=SeenRequest, gives=PatchShape, status=201, also=(200,)
)
def update_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Bring a patch up to date: the next revision has both changes, on the newest version. 200 where
    it is on that already; what conflicts is decided by people (409). Needs the scope review."""
    found, seen = find_patch(request, team, spec, number), body()["revision"]

    def work() -> Answer:
        made = _seen(request, lambda: actions.update(request.user, found, seen))
        if made.number == seen:
            return Answer(_now(request, found), 200)
        return _revised(request, lambda: made)

    return work


@post("spak-api-patch-check", f"{PATCH}check/", takes=SeenRequest, gives=PatchShape, status=202)
def check_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Run the checks of the newest revision again. Needs the scope review."""
    found = find_patch(request, team, spec, number)
    actions.repeat_check(request.user, found, body()["revision"])
    return _now(request, found)


@post("spak-api-patch-merge", f"{PATCH}merge/", takes=SeenRequest, gives=PatchShape)
def merge_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Merge the revision, byte for byte, when nothing is missing. Needs the scope review and the
    approvals of people."""
    found, seen = find_patch(request, team, spec, number), body()["revision"]

    def work() -> Patch:
        actions.merge(request.user, found, seen)
        return _now(request, found)

    return work


@post("spak-api-patch-queue", f"{PATCH}queue/", takes=SeenRequest, gives=PatchShape, status=202)
def queue_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Queue the revision to be merged; idempotent. Needs the scope review and the approvals of people."""
    found = find_patch(request, team, spec, number)
    actions.queue(request.user, found, body()["revision"])
    return _now(request, found)


@post("spak-api-patch-unqueue", f"{PATCH}unqueue/", gives=PatchShape)
def unqueue_patch(request: Request, team: str, spec: str, number: int) -> Any:
    """Take a patch out of the merge queue; idempotent. Needs the scope review."""
    found = find_patch(request, team, spec, number)
    actions.unqueue(request.user, found)
    return _now(request, found)


@post("spak-api-patch-close", f"{PATCH}close/", takes=SeenRequest, gives=PatchShape)
def close_patch(request: Request, team: str, spec: str, number: int, body: Any) -> Any:
    """Close a patch without merging it. Needs the scope review."""
    found = find_patch(request, team, spec, number)
    actions.close(request.user, found, body()["revision"])
    return _now(request, found)


@post("spak-api-patch-revert", f"{PATCH}revert/", gives=PatchShape, status=201)
def revert_patch(request: Request, team: str, spec: str, number: int) -> Any:
    """Propose a patch that takes back what a merged one changed. Needs the scope review."""
    found = find_patch(request, team, spec, number)
    return lambda: _proposed(request, lambda: actions.revert(request.user, found))


@get("spak-api-queue", f"{SPEC}queue/", gives=shapes.QueueShape)
def get_merge_queue(request: Request, team: str, spec: str) -> Any:
    """The patches that wait to be merged, the next one first."""
    found = find_spec(request, team, spec)
    rows = merge_queue.waiting(found).select_related("revision")
    places = [With(one, place=place) for place, one in enumerate(rows, 1)]
    return {"enabled": found.review_rules.merge_queue, "waiting": places}
