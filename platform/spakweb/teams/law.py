"""The law of a team's specs and runs: the shipped one, the operator's, the team's rules and tables.

Takes a team, or none for a text that belongs to nobody; gives a Law. The operator's files were read when the
platform started (SPAK_WEB_LAW). What each level may add: docs/policy.md.
"""

from __future__ import annotations

from django.conf import settings

from spak.errors import UserError
from spak.policy.law import TEAM, Law
from spak.runner import laws
from spakweb.errors import Refused
from spakweb.teams.models import Team

FILE, TABLES = "rules.mg", "commands.toml"
"""The names that a team's rules and tables have in findings and proofs, after `team/`."""


def law_of(team: Team | None = None) -> Law:
    """Raises: Refused `web.team_rules` or `web.team_commands` where the operator's law or the shipped tables
    changed since, and the team's rules or tables no longer load."""
    if team is None:
        return of_rules("")
    try:
        return of_rules(team.rules, team.commands)
    except UserError as error:
        table = error.code.startswith("commands.")
        what, code = ("tables", "web.team_commands") if table else ("rules", "web.team_rules")
        message = f"The {what} of {team} do not load: {error.message}."
        raise Refused(code, message, "An admin can fix them on the team's page Rules.", 409) from error


def of_rules(text: str, commands: str = "") -> Law:
    """The law with these rules and tables of a team. Raises: PolicyError."""
    tables = {TEAM + TABLES: commands} if commands else {}
    return laws.operators(settings.LAW, {FILE: text} if text else {}, tables)
