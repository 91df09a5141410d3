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
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api import shapes_reviews as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import PAGE, asked, asked_number, page_of
from spakweb.api.shapes import Builds, PatchRequest, PatchShape
from spakweb.api.views_specs import find_spec
from spakweb.errors import Refused
from spakweb.reviews import actions, merge_queue, rules, talk
from spakweb.reviews.models import Comment, Patch, Revision, Verdict
from spakweb.reviews.parts import edits_of, parts_of, paths_of
from spakweb.reviews.reading import read
from spakweb.specs import reach

MOST = 1000
"""Rows of the lists that have no pages."""
UNSEEN = "A token that names the imported specs too sees what it says."


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


def _sees(request: Builds, patch: Patch) -> bool:
    """Whether the token sees all that the newest revision and its base import."""
    if reach.named(request.user) is None:
        return True
    return reach.sees_whole(request.user, patch.spec, patch.latest.base.text, patch.latest.text)


def _seen(request: Request, change: Callable[[], Revision]) -> Revision:
    """The revision that a change makes; nothing is changed where the token would not see all that it imports.

    Raises: Refused `web.token_imports`, and what the change raises.
    """
    with transaction.atomic():
        made = change()
        reach.require_whole(request.user, made.patch.spec, made.text)
    return made


def row_of(request: Request, patch: Patch, latest: Revision) -> dict[str, Any]:
    """A patch as PatchRow."""
    here = [patch.spec.team.slug, patch.spec.slug, patch.number]
    return {
        "number": patch.number,
        "title": patch.title,
        "state": patch.state,
        "proposer": patch.proposer,
        "revision": latest.number,
        "base_version": latest.base.number,
        "hash": latest.content_hash,
        "merged_version": patch.merged.number if patch.merged else None,
        "html_url": request.build_absolute_uri(reverse("spak-patch", args=here)),
    }


def patch_of(request: Request, patch: Patch) -> dict[str, Any]:
    """A patch as PatchShape."""
    latest, sees = patch.latest, _sees(request, patch)
    checks = [
        {"name": one.name, "state": one.state, "words": one.words if sees else UNSEEN}
        for one in latest.checks.all()
    ]
    missing = rules.missing(patch) if patch.state == Patch.State.OPEN else []
    return {
        **row_of(request, patch, latest),
        "checks": checks,
        "missing": missing if sees or not missing else [UNSEEN],
    }


class PatchList(View):
    """Patches of a spec."""

    answers = shapes.Patches

    @extend_schema(
        operation_id="list_patches",
        responses=shapes.Patches,
        parameters=[
            OpenApiParameter("state", str, enum=list(Patch.State.values)),
            OpenApiParameter("before", int, description="Those with smaller numbers."),
        ],
    )
    def get(self, request: Request, team: str, spec: str) -> Response:
        """Patches of a spec, the newest first."""
        found = find_spec(request, team, spec)
        given = asked(request, "state", "before")
        newest = Revision.objects.filter(patch=OuterRef("pk")).order_by("-number").values("pk")[:1]
        rows = found.patches.select_related("spec__team", "author", "merged").defer("merged__text")
        rows = rows.annotate(newest=Subquery(newest))
        if (state := given.get("state")) is not None:
            if state not in Patch.State.values:
                known = ", ".join(Patch.State.values)
                raise Refused("web.filter", f"There is no state {state[:40]!r}.", f"Known: {known}.")
            rows = rows.filter(state=state)
        if (before := asked_number(given, "before")) is not None:
            rows = rows.filter(number__lt=before)
        page, more = page_of(
            request, rows.order_by("-number")[: PAGE + 1], "before", lambda one: one.number, PAGE
        )
        last = Revision.objects.select_related("base").defer("text", "base__text")
        revisions = last.in_bulk([one.newest for one in page])
        body = [row_of(request, one, revisions[one.newest]) for one in page]
        return Response({"patches": body, "next": more})

    @extend_schema(operation_id="propose_patch", request=PatchRequest, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Propose a patch. Needs the scope review; nobody approves by token."""
        found = find_spec(request, team, spec, "spec.propose")
        given = self.given(request, PatchRequest)

        def work() -> Response:
            made = _seen(
                request,
                lambda: actions.propose(
                    request.user, found, given["text"], given["base_version"], given["title"],
                    given.get("rationale", ""),
                ).latest,
            ).patch  # fmt: skip
            address = reverse("spak-api-patch", args=[team, spec, made.number])
            headers = {"Location": request.build_absolute_uri(address)}
            return Response(patch_of(request, made), status=201, headers=headers)

        return once(request, work)


class PatchDetail(View):
    """A patch."""

    answers = PatchShape

    @extend_schema(operation_id="get_patch", responses=PatchShape)
    def get(self, request: Request, team: str, spec: str, number: int) -> Response:
        """A patch, its checks, and what a merge of it still waits for: a gate for CI."""
        return Response(patch_of(request, find_patch(request, team, spec, number, "spec.view")))


class RevisionList(View):
    """Revisions of a patch."""

    answers = shapes.Revisions

    @extend_schema(operation_id="list_revisions", responses=shapes.Revisions)
    def get(self, request: Request, team: str, spec: str, number: int) -> Response:
        """The revisions of a patch without their texts, the newest first."""
        found = find_patch(request, team, spec, number, "spec.view")
        rows = found.revisions.select_related("author", "base").defer("text", "base__text")[:MOST]
        return Response({"revisions": [shapes.revision_of(one) for one in rows]})

    @extend_schema(operation_id="revise_patch", request=shapes.ReviseRequest, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Make the next revision of a patch, whose author does not approve it. Needs the scope review."""
        found = find_patch(request, team, spec, number)
        given = self.given(request, shapes.ReviseRequest)

        def work() -> Response:
            return _revised(
                request,
                lambda: actions.revise(
                    request.user, found, given["revision"], given["text"], given.get("why", "")
                ),
            )

        return once(request, work)


class RevisionDetail(View):
    """A revision."""

    answers = shapes.RevisionText

    @extend_schema(operation_id="get_revision", responses=shapes.RevisionText)
    def get(self, request: Request, team: str, spec: str, number: int, revision: int) -> Response:
        """A revision with its text and its edits against its base."""
        found = find_patch(request, team, spec, number, "spec.view")
        row = found.revisions.select_related("author", "base").filter(number=revision).first()
        if row is None:
            raise Http404
        edits = [shapes.edit_of(one) for one in edits_of(row.base.text, row.text)]
        return Response({**shapes.revision_of(row), "text": row.text, "edits": edits})


class VerdictList(View):
    """Verdicts on a patch."""

    answers = shapes.Verdicts

    @extend_schema(operation_id="list_verdicts", responses=shapes.Verdicts)
    def get(self, request: Request, team: str, spec: str, number: int) -> Response:
        """What people said of the revisions of a patch; nobody gives a verdict by token."""
        found = find_patch(request, team, spec, number, "spec.view")
        counted = {one.pk for one in rules.standing_approvals(found)}
        rows = Verdict.standing().filter(revision__patch=found).select_related("user", "revision")
        rows = rows.defer("revision__text").order_by("pk")[:MOST]
        return Response({"verdicts": [shapes.verdict_of(one, one.pk in counted) for one in rows]})


class CommentList(View):
    """Comments on a patch."""

    answers = shapes.Comments

    @extend_schema(operation_id="list_comments", responses=shapes.Comments)
    def get(self, request: Request, team: str, spec: str, number: int) -> Response:
        """The comments on a patch with their answers."""
        found = find_patch(request, team, spec, number, "spec.view")
        rows = found.comments.select_related("author", "revision").defer("revision__text")[:MOST]
        return Response({"comments": _comments(found, rows)})

    @extend_schema(
        operation_id="comment_on_patch", request=shapes.CommentRequest, responses={201: shapes.CommentShape}
    )
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Comment on a patch, a part or a line, suggest another text for a line, or answer. Needs the scope
        review."""
        found = find_patch(request, team, spec, number)
        given = self.given(request, shapes.CommentRequest)

        def work() -> Response:
            made = talk.comment(
                request.user, found, given.get("text", ""), given.get("path", ""),
                line=given.get("line", 0), seen=given.get("revision", 0), answers=given.get("answers", 0),
                suggestion=given.get("suggestion"),
            )  # fmt: skip
            return Response(_comments(found, [made])[0], status=201)

        return once(request, work)


def _comments(patch: Patch, rows: Any) -> list[dict[str, Any]]:
    latest = patch.latest
    reading = read(patch.spec, latest.base.text, latest.text)
    paths = paths_of(parts_of(reading, edits_of(latest.base.text, latest.text)))
    return [shapes.comment_of(one, talk.outdated(one, latest, paths)) for one in rows]


class CommentResolve(View):
    """Whether a thread is resolved."""

    @extend_schema(
        operation_id="resolve_comment", request=shapes.ResolveRequest, responses={200: shapes.CommentShape}
    )
    def post(self, request: Request, team: str, spec: str, number: int, comment: int) -> Response:
        """Resolve the thread of a comment, or open it again; idempotent. Needs the scope review."""
        found = find_patch(request, team, spec, number)
        row = _comment(found, comment)
        talk.resolve(
            request.user,
            found,
            row.parent_id or row.pk,
            self.given(request, shapes.ResolveRequest)["resolved"],
        )
        return Response(_comments(found, [_comment(found, comment)])[0])


class CommentTake(View):
    """Applying a suggestion."""

    @extend_schema(operation_id="apply_suggestion", request=shapes.SeenRequest, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int, comment: int) -> Response:
        """Apply the suggestion of a comment: the next revision has it. Needs the scope review."""
        found = find_patch(request, team, spec, number)
        row, given = _comment(found, comment), self.given(request, shapes.SeenRequest)
        return once(
            request,
            lambda: _revised(request, lambda: talk.take(request.user, found, given["revision"], row.pk)),
        )


def _comment(patch: Patch, key: int) -> Comment:
    row = patch.comments.select_related("author", "revision").filter(pk=key).first()
    if row is None:
        raise Http404
    return row


def _revised(request: Request, change: Callable[[], Revision]) -> Response:
    """The patch with its new revision."""
    made = _seen(request, change)
    patch = made.patch
    here = [patch.spec.team.slug, patch.spec.slug, patch.number]
    address = reverse("spak-api-patch-revision", args=[*here, made.number])
    headers = {"Location": request.build_absolute_uri(address)}
    return Response(patch_of(request, patch), status=201, headers=headers)


def _now(request: Request, patch: Patch) -> Response:
    """The patch as the database has it now."""
    spec = patch.spec
    return Response(
        patch_of(request, find_patch(request, spec.team.slug, spec.slug, patch.number, "spec.view"))
    )


class PatchDropEdit(View):
    """A patch without one of its edits."""

    @extend_schema(operation_id="drop_edit", request=shapes.DropRequest, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Drop an edit of the newest revision: the next one is without it, and its checks run. Needs the
        scope review."""
        found = find_patch(request, team, spec, number)
        return _of_one_edit(request, found, self.given(request, shapes.DropRequest), actions.drop_edit)


class PatchKeepEdit(View):
    """A patch with one of its edits."""

    @extend_schema(operation_id="keep_edit", request=shapes.DropRequest, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Keep one edit of the newest revision: the next one has it alone, and its checks run. Needs the
        scope review."""
        found = find_patch(request, team, spec, number)
        return _of_one_edit(request, found, self.given(request, shapes.DropRequest), actions.keep_edit)


def _of_one_edit(request: Request, patch: Patch, given: dict[str, Any], act: Callable[..., Any]) -> Response:
    """The next revision, by an action about one edit."""
    seen, place, why = given["revision"], given["edit"] - 1, given.get("why", "")
    return once(request, lambda: _revised(request, lambda: act(request.user, patch, seen, place, why)))


class PatchFork(View):
    """A patch made from another."""

    @extend_schema(operation_id="fork_patch", request=shapes.PatchForkRequest, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Propose a patch that begins with the newest revision of another, or with a text made of it. Needs
        the scope review."""
        found = find_patch(request, team, spec, number)
        given = self.given(request, shapes.PatchForkRequest)

        def work() -> Response:
            text, title = given.get("text", ""), given.get("title", "")
            made = _seen(request, lambda: actions.fork(request.user, found, text, title).latest).patch
            address = reverse("spak-api-patch", args=[team, spec, made.number])
            headers = {"Location": request.build_absolute_uri(address)}
            return Response(patch_of(request, made), status=201, headers=headers)

        return once(request, work)


class PatchUpdate(View):
    """A patch on the newest version."""

    @extend_schema(
        operation_id="update_patch", request=shapes.SeenRequest, responses={200: PatchShape, 201: PatchShape}
    )
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Bring a patch up to date: the next revision has both changes, on the newest version. 200 where
        it is on that already; what conflicts is decided by people (409). Needs the scope review."""
        found = find_patch(request, team, spec, number)
        given = self.given(request, shapes.SeenRequest)

        def work() -> Response:
            made = _seen(request, lambda: actions.update(request.user, found, given["revision"]))
            if made.number == given["revision"]:
                return _now(request, found)
            return _revised(request, lambda: made)

        return once(request, work)


class PatchChecks(View):
    """The checks of a patch."""

    @extend_schema(operation_id="check_patch", request=shapes.SeenRequest, responses={202: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Run the checks of the newest revision again. Needs the scope review."""
        found = find_patch(request, team, spec, number)
        actions.repeat_check(request.user, found, self.given(request, shapes.SeenRequest)["revision"])
        answer = _now(request, found)
        answer.status_code = 202
        return answer


class PatchMerge(View):
    """Merging a patch."""

    @extend_schema(operation_id="merge_patch", request=shapes.SeenRequest, responses=PatchShape)
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Merge the revision, byte for byte, when nothing is missing. Needs the scope review and the
        approvals of people."""
        found = find_patch(request, team, spec, number)
        given = self.given(request, shapes.SeenRequest)

        def work() -> Response:
            actions.merge(request.user, found, given["revision"])
            return _now(request, found)

        return once(request, work)


class PatchQueue(View):
    """A place in the merge queue."""

    @extend_schema(operation_id="queue_patch", request=shapes.SeenRequest, responses={202: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Queue the revision to be merged; idempotent. Needs the scope review and the approvals of people."""
        found = find_patch(request, team, spec, number)
        actions.queue(request.user, found, self.given(request, shapes.SeenRequest)["revision"])
        answer = _now(request, found)
        answer.status_code = 202
        return answer


class PatchUnqueue(View):
    """No place in the merge queue."""

    @extend_schema(operation_id="unqueue_patch", request=None, responses=PatchShape)
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Take a patch out of the merge queue; idempotent. Needs the scope review."""
        found = find_patch(request, team, spec, number)
        actions.unqueue(request.user, found)
        return _now(request, found)


class PatchClose(View):
    """Closing a patch."""

    @extend_schema(operation_id="close_patch", request=shapes.SeenRequest, responses=PatchShape)
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Close a patch without merging it. Needs the scope review."""
        found = find_patch(request, team, spec, number)
        actions.close(request.user, found, self.given(request, shapes.SeenRequest)["revision"])
        return _now(request, found)


class PatchRevert(View):
    """Taking a merged patch back."""

    @extend_schema(operation_id="revert_patch", request=None, responses={201: PatchShape})
    def post(self, request: Request, team: str, spec: str, number: int) -> Response:
        """Propose a patch that takes back what a merged one changed. Needs the scope review."""
        found = find_patch(request, team, spec, number)

        def work() -> Response:
            made = _seen(request, lambda: actions.revert(request.user, found).latest).patch
            address = reverse("spak-api-patch", args=[team, spec, made.number])
            headers = {"Location": request.build_absolute_uri(address)}
            return Response(patch_of(request, made), status=201, headers=headers)

        return once(request, work)


class Queue(View):
    """The merge queue of a spec."""

    answers = shapes.QueueShape

    @extend_schema(operation_id="get_merge_queue", responses=shapes.QueueShape)
    def get(self, request: Request, team: str, spec: str) -> Response:
        """The patches that wait to be merged, the next one first."""
        found = find_spec(request, team, spec)
        rows = merge_queue.waiting(found).select_related("revision")
        places = [shapes.place_of(one, place) for place, one in enumerate(rows, 1)]
        return Response({"enabled": found.review_rules.merge_queue, "waiting": places})
