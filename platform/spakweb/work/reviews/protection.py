"""Every write to rules of review: `protect` gives a spec its own, `follow_team` drops them, `protect_imports`
gives what a spec imports the same, `protect_team` sets those of the team, which hold for each of its specs
without rules of its own.

Rights are asked here; rules.py says what the rules mean for a patch. Each write is an event of the team.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import NamedRole, ReviewRules, Team
from spakweb.ground.text import plural
from spakweb.store.reviews.models import ApprovalRule
from spakweb.store.specs.models import Spec
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.reviews import rules
from spakweb.work.reviews.kinds import KINDS


def protect(
    user: Any,
    spec: Spec,
    approvals: int,
    by_admin: bool = False,
    required: Iterable[str] = (),
    roles: Mapping[str, str] | None = None,
    *,
    queue: bool = False,
    follow: bool = False,
    widening: str = "",
) -> None:
    """So many people must approve what changes the spec; 0: who may edit saves. `by_admin`: privileged
    changes need an admin. `required`: checks that have to pass. `roles`: the named role, by kind of edit
    (kinds.py), of which somebody has to approve it. `queue`: patches are merged by the queue. `follow`:
    approvals count for a text that was brought up to date without a conflict. `widening`: of
    ReviewRules.Widening; empty: as it is.

    Raises: Refused `web.approvals`, `web.named_role`.
    """
    access.require(user, "spec.protect", spec)
    found = _checked(approvals, by_admin, required, roles, queue, follow, widening)
    with transaction.atomic():
        by_kind = _named(spec.team, roles or {})
        Spec.objects.filter(pk=spec.pk).update(own_rules=True, **found)
        _replace(by_kind, spec=spec)
        words = f"{spec.slug}: {plural(approvals, 'approval')}"
        record(user, "spec.protected", words, spec.team, **found, roles=_role_names(by_kind))


def follow_team(user: Any, spec: Spec) -> None:
    """The rules of the team hold for the spec; its own are gone."""
    access.require(user, "spec.protect", spec)
    with transaction.atomic():
        if Spec.objects.filter(pk=spec.pk, own_rules=True).update(own_rules=False):
            spec.approval_rules.all().delete()
            record(user, "spec.protected", f"{spec.slug}: as the team's default", spec.team)


def unprotected_imports(spec: Spec, text: str) -> list[Spec]:
    """What a text of a protected spec takes in that somebody may save directly; nothing where the spec is not
    protected."""
    if not spec.review_rules.approvals:
        return []
    return [one for one in TeamFiles.of(spec).specs_in(text) if not one.review_rules.approvals]


def protect_imports(user: Any, spec: Spec) -> list[Spec]:
    """Give what the newest version imports, and is not protected, the rules of the spec."""
    access.require(user, "spec.protect", spec)
    with transaction.atomic():
        found, ruled = unprotected_imports(spec, spec.head.text), spec.review_rules
        roles = {one.kind: one.role.name for one in rules.by_kind(spec).select_related("role")}
        for one in found:
            protect(
                user, one, ruled.approvals, ruled.privileged_by_admin, ruled.required_checks, roles,
                queue=ruled.merge_queue, follow=ruled.approvals_follow, widening=ruled.widening,
            )  # fmt: skip
    return found


def protect_team(
    user: Any,
    team: Team,
    approvals: int,
    by_admin: bool = False,
    required: Iterable[str] = (),
    roles: Mapping[str, str] | None = None,
    *,
    queue: bool = False,
    follow: bool = False,
    widening: str = "",
) -> None:
    """The rules of all specs of the team without rules of their own; arguments as of `protect`.

    Raises: Refused `web.approvals`, `web.named_role`.
    """
    access.require(user, "team.manage", team)
    found = _checked(approvals, by_admin, required, roles, queue, follow, widening)
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=team.pk)
        by_kind = _named(team, roles or {})
        Team.objects.filter(pk=team.pk).update(**found)
        _replace(by_kind, team=team)
        record(
            user,
            "team.review_rules",
            plural(approvals, "approval"),
            team,
            **found,
            roles=_role_names(by_kind),
        )


def _checked(
    approvals: int,
    by_admin: bool,
    required: Iterable[str],
    roles: Mapping[str, str] | None,
    queue: bool,
    follow: bool,
    widening: str,
) -> dict[str, Any]:
    """Columns of ReviewRules. Raises: Refused `web.approvals`, `web.widening`."""
    if not 0 <= approvals <= 9:
        raise Refused("web.approvals", "Between 0 and 9 people can be asked to approve.", "Type a number.")
    if roles and not approvals:
        hint = "Ask for one approval at least: without, who may edit saves directly."
        raise Refused("web.approvals", "A named role approves nothing in a spec that is not protected.", hint)
    if widening and widening not in ReviewRules.Widening.values:
        known = ", ".join(ReviewRules.Widening.values)
        raise Refused(
            "web.widening", f"There is no rule {widening[:40]!r} for what widens.", f"One of: {known}."
        )
    return {
        **({"widening": widening} if widening else {}),
        "approvals": approvals,
        "privileged_by_admin": by_admin,
        "required_checks": [name for name in rules.CHECKS if name in set(required)],
        "merge_queue": queue,
        "approvals_follow": follow,
    }


def _named(team: Team, roles: Mapping[str, str]) -> dict[str, NamedRole]:
    """The named roles of the team, by kind of edit. Raises: Refused `web.named_role`."""
    known = {role.name: role for role in team.named_roles.select_for_update()}
    for kind, name in roles.items():
        if kind not in KINDS or name not in known:
            words = (
                f"There is no named role {name[:40]!r}" if kind in KINDS else "There is no such kind of edit"
            )
            raise Refused("web.named_role", f"{words}.", "Reload the page and choose from the list.", 409)
    return {kind: known[roles[kind]] for kind in KINDS if kind in roles}


def _replace(by_kind: Mapping[str, NamedRole], **owner: Any) -> None:
    """The rules by kind of a spec or of a team."""
    ApprovalRule.objects.filter(**owner).delete()
    ApprovalRule.objects.bulk_create(
        ApprovalRule(**owner, kind=kind, role=role) for kind, role in by_kind.items()
    )


def _role_names(by_kind: Mapping[str, NamedRole]) -> dict[str, str]:
    return {kind: role.name for kind, role in by_kind.items()}
