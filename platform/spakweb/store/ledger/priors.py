"""The run that a search begins with: named when a run is started, read by the worker that begins it.

`fitting` refuses what cannot fit from the earlier run's first record; `read` gives its searches, with trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404

from spak.errors import SpecError, UsageError, UserError
from spak.lang.imports import Resolved
from spak.program import compile as compile_program
from spak.runner.searches import Earlier, earlier, matched
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run
from spakweb.store.specs.facts import catalog


def fitting(user: Any, team: Team, key: str, whole: Resolved, inputs: Mapping[str, str]) -> str:
    """The key of a run of the team whose search the text can begin with; empty where none was named.

    Raises: Refused `web.run_prior`, `tuner.prior`.
    """
    key = key.strip()
    if not key:
        return ""
    try:
        row = access.find(user, "run.view", Run, team=team, key=key[:128], deleted_at=None)
    except Http404 as error:
        hint = "Give the id of a run of this team, as its page shows it."
        raise Refused("web.run_prior", f"The team has no run {key[:60]!r}.", hint) from error
    if not row.count:
        raise Refused("web.run_prior", f"The run {row.key} has not begun.", "Wait until it has.", 409)
    try:
        program = compile_program(whole.parsed, catalog(), dict(inputs))
    except SpecError:
        return str(row.key)  # it cannot begin: its page says why
    try:
        first = next(iter(DatabaseLedgers().reader(row.key).read()))[0]
        matched(program, "", earlier([first]))
    except UserError as error:
        raise Refused(error.code, error.message, error.hint) from error
    return str(row.key)


def read(row: Run) -> dict[str, Earlier] | None:
    """The searches of the run that a run was to begin with; None where it was to begin with none.

    Raises: UsageError `tuner.prior` where that run is gone; LedgerError.
    """
    if not row.prior:
        return None
    found = Run.objects.filter(team=row.team_id, key=row.prior, deleted_at=None, count__gt=0).first()
    if found is None:
        message = f"the earlier run {row.prior} was deleted before this one began"
        raise UsageError("tuner.prior", message, "start it with another one, or without")
    return earlier(record for record, _ in DatabaseLedgers().reader(found.key).read())
