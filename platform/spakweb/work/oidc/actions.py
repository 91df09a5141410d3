"""Rules for jobs of a CI: added and removed by admins, used by `exchange`. Each act is an event of the team.

`exchange` gives a token of the team for an id token that a rule takes. Who holds none of a known issuer
learns nothing of teams: without a signature of such an issuer the answer is the same for every team.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from spak.policy import urls
from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.oidc.models import Kind, Rule, UsedToken
from spakweb.ground.rights import ACTIONS, RANK, SCOPES
from spakweb.ground.teams.models import Membership, Team, Token
from spakweb.ground.text import one_line
from spakweb.store.sources import refs
from spakweb.work.oidc import claims as ids
from spakweb.work.teams import tokens

MOST = 50
"""Rules of one team."""
MINUTES = (15, 60, 240, 720)
STARS = 3
ISSUERS = {Kind.GITHUB: "https://token.actions.githubusercontent.com", Kind.GITLAB: "https://gitlab.com"}
"""The usual ones."""
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rule as it is asked for, in words of a form."""

    name: str
    kind: str
    repository: str
    ref: str
    audience: str
    issuer: str = ""
    """Empty: the usual one of its kind."""
    environment: str = ""
    scopes: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    minutes: int = 60
    once: bool = True


def add(user: Any, team: Team, wanted: Wanted) -> Rule:
    """A rule. Raises: Refused `web.name`, `web.oidc_rule_text`, `web.oidc_many`, `web.token_scopes`,
    `web.token_specs`, `git.refs`."""
    access.require(user, "team.manage", team)
    name = one_line(wanted.name, 60)
    if not any(letter.isalnum() for letter in name):
        raise Refused("web.name", "A rule needs a name with a letter or digit.", "Say which jobs it is for.")
    if wanted.kind not in Kind.values:
        raise _bad("Id tokens are of GitHub or GitLab.")
    if wanted.minutes not in MINUTES:
        raise _bad("A token works for 15, 60, 240 or 720 minutes.")
    found = refs.patterns([wanted.ref])
    if len(found) != 1 or found[0].count("*") > STARS:
        raise _bad(f"A rule has one pattern of refs, with at most {STARS} stars.")
    made = Rule(
        team=team, name=name, kind=wanted.kind, ref=found[0], minutes=wanted.minutes, once=wanted.once,
        issuer=_issuer(wanted.issuer.strip() or ISSUERS[Kind(wanted.kind)]),
        audience=_exact("audience", wanted.audience), repository=_exact("repository", wanted.repository),
        environment=_exact("environment", wanted.environment, 100) if wanted.environment.strip() else "",
        scopes=tokens.known_scopes(wanted.scopes), specs=tokens.keys_of(team, wanted.specs), made_by=user,
    )  # fmt: skip
    with transaction.atomic():
        list(Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values_list("pk"))
        if Rule.objects.filter(team=team).count() >= MOST:
            raise Refused("web.oidc_many", f"A team has at most {MOST} rules.", "Remove one.", 409)
        if Rule.objects.filter(team=team, name=name).exists():
            raise Refused("web.name", "There is a rule of this name.", "Choose another name.", 409)
        made.save()
        record(
            user, "oidc.made", name, team, rule=made.pk, issuer=made.issuer, repository=made.repository,
            ref=made.ref, environment=made.environment, scopes=made.scopes, specs=made.specs,
        )  # fmt: skip
    return made


def remove(user: Any, rule: Rule) -> None:
    """Remove it; the tokens that it gave end with it."""
    access.require(user, "team.manage", rule)
    with transaction.atomic():
        record(user, "oidc.removed", rule.name, rule.team, rule=rule.pk)
        rule.delete()


def _issuer(text: str) -> str:
    found = urls.parse(text)
    if isinstance(found, urls.Trouble):
        raise _bad(f"The issuer is not an address: {found.detail}.")
    inside = set(settings.OIDC_REACH) - {"public"}
    if found.scheme != "https" and not (found.scheme == "http" and inside):
        raise _bad("An issuer is reached over https.")
    if found.query or found.fragment or len(text) > LONGEST:
        raise _bad("An issuer's address has no ? and no #.")
    return text


def _exact(what: str, text: str, longest: int = LONGEST) -> str:
    found = text.strip()
    if not 0 < len(found) <= longest or not found.isprintable() or "*" in found:
        raise _bad(f"The {what} is written out, without stars.")
    return found


def _bad(message: str) -> Refused:
    return Refused("web.oidc_rule_text", message, "docs/ci.md shows a rule.")


# ---- jobs


def exchange(team: str, token: str) -> tuple[Token, str]:
    """A token of the team for an id token, and its secret, told this once.

    Raises: Refused `web.oidc_token` (401), `web.oidc_rule` (403), `web.oidc_used` (403), `web.oidc_issuer`.
    """
    issuer = ids.issuer_of(token)
    if not issuer or not Rule.objects.filter(issuer=issuer).exists():
        raise _no_rule("no rule of this platform names its issuer")
    claims = ids.verified(token, issuer)
    audience = ids.audience_of(claims)
    rules = Rule.objects.filter(issuer=issuer, audience=audience) if audience else Rule.objects.none()
    lost = ""
    for rule in rules.filter(team__slug=team).select_related("team", "made_by"):
        job = ids.Job.of(rule.kind, claims)
        if not _fits(rule, job):
            continue
        if not _may(rule):
            lost = rule.name
        elif found := _given(rule, job, claims):
            return found
    if lost:
        raise _no_rule(f"who made the rule {lost!r} may no longer do what it permits")
    job = ids.Job.of("gitlab" if "project_path" in claims else "github", claims)
    said = f"repository {job.repository!r}, ref {job.ref!r}, environment {job.environment!r}"
    raise _no_rule(f"it is for {audience!r}, of {said}")


def _no_rule(why: str) -> Refused:
    hint = "An admin of the team adds one: Automation, CI sign-in. All of it has to fit."
    return Refused("web.oidc_rule", f"No rule of the team takes this id token: {why}.", hint, 403)


def _fits(rule: Rule, job: ids.Job) -> bool:
    """Whether the rule is for the job, and whoever made it is still one who may be stood for."""
    return (
        job.repository == rule.repository
        and bool(job.repository_id)
        and rule.repository_id in ("", job.repository_id)
        and bool(job.ref)
        and refs.matches(job.ref, rule.ref)
        and rule.environment in ("", job.environment)
        and rule.made_by.is_active
        and Membership.objects.filter(team=rule.team_id, user=rule.made_by_id).exists()
    )


def _may(rule: Rule) -> bool:
    """Whether whoever made the rule has a role that anything of its scopes needs: its tokens act for them."""
    role = access.member_role(rule.made_by, rule.team)
    needed = [ACTIONS[action] for scope in rule.scopes for action in SCOPES[scope]]
    return role is not None and (not needed or any(RANK[role] >= RANK[least] for least in needed))


def _given(rule: Rule, job: ids.Job, claims: dict[str, Any]) -> tuple[Token, str] | None:
    """The token; None where the repository is another one that took the name meanwhile."""
    now = timezone.now()
    with transaction.atomic():
        rows = Rule.objects.filter(pk=rule.pk, repository_id__in=("", job.repository_id))
        if not rows.update(repository_id=job.repository_id, used_at=now):
            return None
        if rule.once:
            _use_up(rule, claims, now)
        Token.objects.filter(rule=rule, ends_at__lt=now - timedelta(days=1)).delete()
        name = one_line(f"{rule.name}: {job.repository} {job.run}", 60)
        made, secret = tokens.of_rule(rule, name, now + timedelta(minutes=rule.minutes))
        record(
            None, "oidc.exchanged", rule.name, rule.team, rule=rule.pk, token=made.pk, run=job.run,
            repository=job.repository, ref=job.ref, environment=job.environment,
        )  # fmt: skip
    return made, secret


def _use_up(rule: Rule, claims: dict[str, Any], now: datetime) -> None:
    name = ids.token_id(claims)
    if not name:
        raise Refused("web.oidc_used", "The id token has no id of its own (jti).", "", 403)
    UsedToken.objects.filter(rule=rule, ends_at__lt=now).delete()
    ends = datetime.fromtimestamp(claims["exp"], UTC) + timedelta(seconds=2 * ids.LEEWAY_S)
    try:
        with transaction.atomic():
            digest = hashlib.sha256(name.encode()).hexdigest()
            UsedToken.objects.create(rule=rule, jti_hash=digest, ends_at=ends)
    except IntegrityError as error:
        hint = "Ask the CI for another; a rule may allow more than one use."
        raise Refused("web.oidc_used", "This id token was used already.", hint, 403) from error
