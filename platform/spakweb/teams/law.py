"""The law that a team's specs and runs are under: the shipped one, the operator's, the team's rules.

Takes a team, or none for a text that belongs to nobody; gives a Law. The operator's files were read when the
platform started (SPAK_WEB_LAW). What each level may add: docs/policy.md.
"""

from __future__ import annotations

from django.conf import settings

from spak.errors import UserError
from spak.policy.law import Law
from spak.runner import laws
from spakweb.errors import Refused
from spakweb.teams.models import Team

FILE = "rules.mg"
"""The name that a team's rules have in findings and proofs, after `team/`."""


def law_of(team: Team | None = None) -> Law:
    """Raises: Refused `web.team_rules` where the operator's law changed since, and they no longer load."""
    try:
        return of_rules(team.rules if team is not None else "")
    except UserError as error:
        message = f"The rules of {team} do not load: {error.message}."
        raise Refused(
            "web.team_rules", message, "An admin mends them on the team's page Rules.", 409
        ) from error


def of_rules(text: str) -> Law:
    """The law with these rules of a team. Raises: PolicyError."""
    return laws.operators(settings.LAW, {FILE: text} if text else {})
