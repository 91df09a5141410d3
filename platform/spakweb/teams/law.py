"""The law that a team's specs and runs are under: the shipped one, the operator's, the team's rules.

Takes a team, or none for a text that belongs to nobody; gives a Law. The operator's files were read when the
platform started (SPAK_WEB_LAW). What each level may add: docs/policy.md.
"""

from __future__ import annotations

from django.conf import settings

from spak import config
from spak.policy.law import Law
from spakweb.teams.models import Team

FILE = "rules.mg"
"""The name that a team's rules have in findings and proofs, after `team/`."""


def law_of(team: Team | None = None) -> Law:
    """Raises: PolicyError when it does not load, as when the operator's law changed since the rules did."""
    return of_rules(team.rules if team is not None else "")


def of_rules(text: str) -> Law:
    """The law with these rules of a team. Raises: PolicyError."""
    return config.operators(settings.LAW, {FILE: text} if text else {})
