"""Open patches that wait for one person: `waiting(user, team)` as rows for pages, `count(user, team)`.

A reviewer is asked for each open patch that they neither wrote nor judged in its newest revision; the author
for each with changes requested, that the merge queue took out, with as many approvals as the spec asks for
and not in the queue, or that somebody else revised, until they say something. One query, no text is parsed:
whether a patch may be merged is decided by `rules.missing`.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Greatest

from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.reviews.models import Comment, Patch, Queued, Revision, Verdict

NEEDS = {
    "review": "Review it",
    "changes": "Changes requested",
    "queue": "Taken out of the queue",
    "merge": "Has its approvals",
    "revised": "Somebody else revised it",
}


def waiting(user: Any, team: Team) -> QuerySet[Patch]:
    """Patches with `need`, a key of NEEDS, oldest first."""
    revisions = Revision.objects.filter(patch=OuterRef("pk")).order_by("-number")
    newest = revisions.values("pk")[:1]
    said = Comment.objects.filter(patch=OuterRef("pk"), author=user, made_at__gte=OuterRef("newest_at"))
    own = Revision.objects.filter(patch=OuterRef("pk"), author=user, rebases=None)
    queued = Queued.objects.filter(patch=OuterRef("pk")).order_by("-pk")
    judged = Verdict.standing().filter(revision=OuterRef("newest"))
    approvals = judged.filter(approves=True).values("revision").annotate(n=Count("user", distinct=True))
    rows = _open(team).annotate(newest=Subquery(newest), newest_at=Subquery(revisions.values("made_at")[:1]))
    rows = rows.annotate(
        said=Exists(said),
        wanted=Case(
            When(spec__own_rules=True, then=F("spec__approvals")), default=F("spec__team__approvals")
        ),
        by_another=Exists(Revision.objects.filter(pk=OuterRef("newest"), rebases=None).exclude(author=user)),
        wrote=Exists(own),
        judged=Exists(judged.filter(user=user)),
        refused=Exists(judged.filter(approves=False)),
        approvals=Coalesce(Subquery(approvals.values("n")), 0),
        place=Subquery(queued.values("state")[:1]),
        queued_by=Subquery(queued.values("user")[:1]),
        thrown=Exists(queued.filter(state=Queued.State.REFUSED, revision=OuterRef("newest"))),
    )
    mine = Q(author=user) | Q(wrote=True)
    wanted = [
        When(mine & Q(refused=True), then=Value("changes")),
        When((mine | Q(queued_by=user.pk)) & Q(place=Queued.State.REFUSED, thrown=True), then=Value("queue")),
        When(mine & Q(place=Queued.State.WAITING), then=Value("")),
        When(
            Q(author=user, refused=False, approvals__gte=Greatest(F("wanted"), 1)),
            then=Value("merge"),
        ),
        When(Q(author=user, by_another=True, said=False, judged=False), then=Value("revised")),
    ]
    if access.can(user, "spec.review", team):
        wanted.append(When(~mine & Q(judged=False), then=Value("review")))
    need = Case(*wanted, default=Value(""), output_field=CharField())
    return rows.annotate(need=need).exclude(need="").select_related("spec", "author").order_by("pk")


def count(user: Any, team: Team) -> int:
    """How many patches of the team wait for the person. Every page of a team shows it, so a team without an
    open patch is asked for none: to put the statement of `waiting` together takes ten times as long."""
    if not access.can(user, "spec.propose", team):
        return 0
    return waiting(user, team).count() if _open(team).exists() else 0


def _open(team: Team) -> QuerySet[Patch]:
    return Patch.objects.filter(spec__team=team, spec__archived_at=None, state=Patch.State.OPEN)
