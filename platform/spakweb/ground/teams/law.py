"""The law of a team's specs and runs: the shipped one, the operator's, the team's rules.

Takes a team, or none for a text that belongs to nobody; gives a Law. The operator's files were read when the
platform started (SPAK_WEB_LAW). What each level may add: docs/policy.md.
"""

from __future__ import annotations

from django.conf import settings

from spak.errors import UserError
from spak.policy.law import Law
from spak.runner import laws
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team

FILE = "rules.mg"
"""The name that a team's rules have in findings and proofs, after `team/`."""


def law_of(team: Team | None = None) -> Law:
    """Raises: Refused `web.team_rules` where the operator's law changed since, and the team's rules no longer
    load."""
    if team is None:
        return of_rules("")
    try:
        return of_rules(team.rules)
    except UserError as error:
        message = f"The rules of {team} do not load: {error.message}."
        hint = "An admin can fix them on the team's page Rules."
        raise Refused("web.team_rules", message, hint, 409) from error


def of_rules(text: str) -> Law:
    """The law with these rules of a team. Raises: PolicyError."""
    return laws.operators(settings.LAW, {FILE: text} if text else {})
