"""What a patch still needs before it may be merged: `missing(patch)`, in words, derived at each look.

Approvals are never stored as a state: people leave, revisions come, roles and laws change. Nothing is
written here.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from spakweb.ground import access
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import NamedRole, Role
from spakweb.ground.text import plural
from spakweb.store.reviews.models import ApprovalRule, Check, Patch, Revision, Verdict
from spakweb.store.runs.models import ENDED, Run
from spakweb.store.specs.models import Spec
from spakweb.work.reviews.kinds import KINDS
from spakweb.work.reviews.parts import digest_of, loosened_by
from spakweb.work.reviews.reading import read, read_imports

CHECKS = {
    "text": "The text is free of errors",
    "actions": "Recorded actions under both texts",
    "replay": "Recorded runs under the patch",
}
"""The checks of each revision, by name."""


def authors(patch: Patch) -> set[int]:
    """Who wrote a text of it, or a part of one; who only brought it up to date wrote none."""
    wrote = patch.revisions.filter(rebases=None).values_list("author", "also_by")
    return {patch.author_id, *(key for author, others in wrote for key in (author, *others))}


def author_names(patch: Patch) -> list[str]:
    """The names of those who wrote a revision of the patch, sorted."""
    rows = get_user_model().objects.filter(pk__in=authors(patch))
    return sorted(one.get_username() for one in rows)


def by_kind(spec: Spec) -> QuerySet[ApprovalRule]:
    """Which kinds of edit a named role has to approve."""
    own = {"spec": spec} if spec.own_rules else {"team": spec.team_id}
    return ApprovalRule.objects.filter(**own)


def required(spec: Spec) -> list[str]:
    """The checks that have to pass. The merge queue asks for a text without errors always; where a named role
    approves what recorded actions show, they have to be judged."""
    ruled = spec.review_rules
    wanted = {*ruled.required_checks, *(["text"] if ruled.merge_queue else [])}
    if by_kind(spec).filter(kind="permits").exists():
        wanted.add("actions")
    return [*(name for name in CHECKS if name in wanted), *sorted(wanted - CHECKS.keys())]


def same_work(revision: Revision) -> list[Revision]:
    """The revision, and those that it came of by bringing them up to date without a conflict."""
    found = [revision]
    while (before := found[-1].rebases) is not None:
        found.append(before)
    return found


def standing_approvals(patch: Patch) -> list[Verdict]:
    """The approvals that count for the newest revision: of each person the last verdict, where the text that
    they judged and the newest differ in layout at most, who wrote no revision and may still review. Where the
    spec says so they count for what came of bringing the text up to date."""
    latest, wrote = patch.latest, authors(patch)
    counted = same_work(latest) if patch.spec.review_rules.approvals_follow else [latest]
    said = Verdict.standing().filter(revision__patch=patch).order_by("pk")
    last = {user: (pk, approves) for user, pk, approves in said.values_list("user", "pk", "approves")}
    rows = Verdict.standing().filter(pk__in=[pk for pk, approves in last.values() if approves]).order_by("pk")
    return [
        one
        for one in rows.select_related("revision__base", "user")
        if one.user_id not in wrote
        and access.can(one.user, "spec.review", patch)
        and any(
            one.revision.base_id == other.base_id
            and same_layout_aside(patch.spec, one.revision.text, other.text)
            for other in counted
        )
    ]


def missing(patch: Patch) -> list[str]:
    """What a merge still waits for; empty when it may be merged."""
    latest, found = patch.latest, of_people(patch)
    if latest.base_id != patch.spec.head_id:
        found.append("to be brought up to date: the spec has a newer version")
    elif _unjudged(patch, latest):
        found.append(f"a check to end, or an admin to approve it: {CHECKS['actions'].lower()}")
    return found + _checks(patch.spec, latest)


def _unjudged(patch: Patch, latest: Revision) -> bool:
    """Whether it is not known what it newly permits: whether an admin has to approve it depends on that."""
    row = latest.checks.filter(name="actions").first()
    if "actions" in required(patch.spec) or (row and row.ended_at and not is_stale(patch.spec, row)):
        return False
    return _acted(patch.spec).exists() and not any(map(_by_admin, standing_approvals(patch)))


def _acted(spec: Spec) -> QuerySet[Run]:
    """Ended runs that may have recorded actions."""
    return Run.objects.filter(version__spec=spec, deleted_at=None, state__in=sorted(ENDED), count__gt=1)


def _by_admin(approval: Verdict) -> bool:
    return access.role_in(approval.user, approval.revision.patch.spec.team) == Role.ADMIN


def before_queue(patch: Patch) -> list[str]:
    """What has to be there before it is queued: the verdicts, and no required check that failed."""
    latest = patch.latest
    failed = latest.checks.filter(name__in=required(patch.spec), state=Check.State.FAILED)
    words = [
        f"a check to pass: {CHECKS.get(one.name, one.name).lower()}"
        for one in failed
        if not is_stale(patch.spec, one)
    ]
    return of_people(patch) + words


def of_people(patch: Patch) -> list[str]:
    """The verdicts that a merge still waits for."""
    approvals, latest, found = standing_approvals(patch), patch.latest, []
    if len(approvals) < (needed := max(1, patch.spec.review_rules.approvals)):
        found.append(plural(needed - len(approvals), "more approval"))
    saw = [one for one in approvals if _by_admin(one) and _loosens_alike(patch, one.revision, latest)]
    if not saw and (why := for_an_admin(patch, latest)):
        found.append(f"an admin to approve it, since {why}{_without_admin(patch)}")
    found += _by_roles(patch, latest, approvals)
    if _is_refused(patch, latest):
        found.append("an approval by the person who requested changes, or a new revision")
    return found


def _loosens_alike(patch: Patch, seen: Revision, latest: Revision) -> bool:
    """Whether what a revision loosens is what the newest one does: bringing a text up to date may join it
    with a change that makes it more."""
    if seen.pk == latest.pk:
        return True
    one, two = (digest_of(loosened_by(read(patch.spec, at.base.text, at.text))) for at in (seen, latest))
    return one == two


def _is_refused(patch: Patch, latest: Revision) -> bool:
    """Whether the last word of somebody on this text, or on one that means the same, asks for
    changes. Who has written a revision since can not approve it: of them only this revision's words count."""
    rows = Verdict.standing().filter(revision__patch=patch).select_related("revision").order_by("pk")
    said = list(rows.defer("revision__text"))
    if all(one.approves for one in said):
        return False
    counted, wrote = same_work(latest), authors(patch)
    keys, hashes = {one.pk for one in counted}, {one.content_hash for one in counted}
    newest = {one.user_id: one.pk for one in said}  # a text is read for one verdict of each person at most
    last: dict[int, Verdict] = {}
    for one in said:
        alike = one.revision_id in keys
        if not alike and one.user_id not in wrote:
            alike = one.revision.content_hash in hashes or (
                newest[one.user_id] == one.pk
                and any(same_meaning(patch.spec, one.revision.text, other.text) for other in counted)
            )
        if alike:
            last[one.user_id] = one
    return any(not one.approves for one in last.values())


def _by_roles(patch: Patch, latest: Revision, approvals: list[Verdict]) -> list[str]:
    """What named roles have not approved yet, each role once with every reason."""
    wanted: dict[NamedRole, list[str]] = {}
    ruled = list(by_kind(patch.spec).select_related("role"))
    kinds = kinds_of(patch, latest) if ruled else frozenset()
    for rule in ruled:
        if rule.kind in kinds:
            wanted.setdefault(rule.role, []).append(KINDS[rule.kind][1])
    found = []
    who = {one.user_id for one in approvals}
    for role, reasons in wanted.items():
        members = set(role.members.values_list("user", flat=True))
        if not members & who:
            able = _able(patch, members)
            nobody = "" if able else f"; nobody of {role} may"
            found.append(f"somebody of {role} to approve it, since {' and '.join(reasons)}{nobody}")
    return found


def _able(patch: Patch, people: set[int]) -> bool:
    """Whether one of them may approve the patch."""
    rows = get_user_model().objects.filter(pk__in=people - authors(patch))
    return any(access.can(user, "spec.review", patch) for user in rows)


def _without_admin(patch: Patch) -> str:
    """Said where no admin may approve it, as its authors are all that there are."""
    admins = set(patch.spec.team.memberships.filter(role=Role.ADMIN).values_list("user", flat=True))
    own = "; no admin may, since nobody approves a patch of their own: add another"
    return "" if _able(patch, admins) else own


def kinds_of(patch: Patch, revision: Revision) -> frozenset[str]:
    """The kinds of edit that a revision has, with what recorded actions showed."""
    kinds = read(patch.spec, revision.base.text, revision.text).kinds
    permits = revision.checks.filter(name="actions", state=Check.State.LOOK).exists()
    return kinds | {"permits"} if permits else kinds


def named_roles(user: Any, spec: Spec) -> list[str]:
    """The named roles of a person in the team of a spec."""
    return sorted(spec.team.named_roles.filter(members__user=user).values_list("name", flat=True))


def for_an_admin(patch: Patch, revision: Revision) -> str:
    """Why an admin has to approve it; empty where any reviewer may."""
    reading = read(patch.spec, revision.base.text, revision.text)
    if not reading.readable:
        return "it cannot be read as a whole"
    if reading.widens:
        return "it widens what the spec may do"
    if patch.spec.review_rules.privileged_by_admin and reading.marked:
        return f"it makes {plural(len(reading.marked), 'privileged change')}"
    found = revision.checks.filter(name="actions").first()
    if found is None:
        return ""
    if found.state == Check.State.LOOK:
        is_known = found.result.get("permitted_count") != 0
        return "it permits actions that were denied" if is_known else "it may permit actions that were denied"
    if found.state == Check.State.FAILED and _acted(patch.spec).exists():
        return "its recorded actions could not be judged"
    return ""


def _checks(spec: Spec, revision: Revision) -> list[str]:
    rows = {one.name: one for one in revision.checks.all()}
    found = []
    for name in required(spec):
        row, words = rows.get(name), CHECKS.get(name, name).lower()
        if row is None or row.state in (Check.State.QUEUED, Check.State.RUNNING):
            found.append(f"a check to end: {words}")
        elif row.state == Check.State.FAILED:
            found.append(f"a check to pass: {words}")
        elif is_stale(spec, row):
            found.append(f"a check to run again: {words}")
    return found


def is_stale(spec: Spec, check: Check) -> bool:
    """Whether it was judged against another version, under another law or with other imports than now, or
    found no action to judge and there are runs now."""
    if check.ended_at is None:
        return False
    if check.revision.base_id != spec.head_id or check.law != law_hash(spec):
        return True
    empty = check.name == "actions" and check.state == Check.State.NOTHING
    if empty and _acted(spec).filter(ended_at__gt=check.ended_at).exists():
        return True
    imported = check.result.get("imports")
    return imported is not None and imported != imports_hash(check.revision)


def imports_hash(revision: Revision) -> str:
    """Of what the revision and its base import, as it is now; empty where they import nothing."""
    return read_imports(revision.patch.spec, revision.base.text, revision.text)


def law_hash(spec: Spec) -> str:
    """The hash of the law that new runs of the spec begin with."""
    return str(law_of(spec.team).hash)


def same_layout_aside(spec: Spec, one: str, two: str) -> bool:
    """Whether they are the same but for layout, comments too; two texts that cannot be read are not."""
    return one == two or read(spec, one, two).layout


def same_meaning(spec: Spec, one: str, two: str) -> bool:
    """Whether they mean the same: layout and comments may differ; two texts that cannot be read do not."""
    if one == two:
        return True
    reading = read(spec, one, two)
    return reading.readable and reading.difference.formatting_only
