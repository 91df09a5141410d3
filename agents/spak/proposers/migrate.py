"""The proposers `migrate` and `migrate_django`: the files of a migration, tried on a copy with all rows.

Takes a PlanRequest and the MeasureCall of its workspace; gives a call of `apply_patch` that adds the files
(`up.sql` and `down.sql`, or what Django makes), with the verdicts of the trial, or a refusal with a code.
What they do and do not accept: docs/strategies.md. SQLite and Django run in the sandbox, by
sandbox/guest/migrate_guest.py; nothing is written, and the kernel judges the recorded verdicts once more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from spak import data
from spak import schema_parts as parts
from spak.errors import RunError
from spak.lang.catalog import NamedEntry
from spak.patch.make import make
from spak.ports import Candidate, MeasureCall, PlanRequest, Search
from spak.proposers import guest
from spak.proposers.fitting import fit

TOOL, CODE = "apply_patch", "migrate.options"
GUEST = "migrate_guest.py"
SCHEMAS, DRIVER = "sandbox/guest/migrate_schema.py", "sandbox/guest/migrate_django.py"

JOURNALS = ("-wal", "-journal")

_LOSE = parts.text(
    "Tables and columns (`posts, users.email`) whose values may be lost.", 4096, default="", least=0
)
_SCHEMA = parts.members(
    ["schema"],
    schema=parts.path("The file of the wanted schema, in SQL of SQLite."),
    database=parts.text(
        "The SQLite database as it is; without it the one of the workspace, or what the migrations give.",
        4095,
        default="",
        least=0,
    ),
    folder=parts.path("Where migrations are, each a folder with up.sql and down.sql.", "migrations"),
    lose=_LOSE,
)
_PROJECT = parts.members([], manage=parts.path("The manage.py of a Django project.", "manage.py"), lose=_LOSE)
_HINTS = {
    "migrate.schema": "write the whole wanted schema: CREATE TABLE, INDEX, VIEW and TRIGGER",
    "migrate.database": "name a sound database of the folder with the input database",
    "migrate.project": "mend the project first: manage.py check; the Python of spak needs what it imports",
    "migrate.history": "mend the migrations, which are run in order, or name a database",
    "migrate.unchanged": "change the schema first; nothing was changed",
    "migrate.loss": "keep them; where they may go, name them in the input lose",
    "migrate.rows": "change these rows first, or give the column a DEFAULT",
    "migrate.irreversible": "give what is dropped a DEFAULT first, so that down.sql can put it back",
    "migrate.unsupported": "write this migration by hand",
}


class Migrate:
    """The proposer that writes a migration of plain SQL."""

    entry = NamedEntry("migrate", "writes the migration from a database to a schema", _SCHEMA)

    def search(self, request: PlanRequest, place: MeasureCall) -> Search:
        """One candidate, or a refusal. Raises: UsageError `migrate.options`; UnavailableError; RunError
        `migrate.incomplete`; Cancelled."""
        fit(CODE, _SCHEMA, request.options)
        return _searched(
            place, "sql", {"database": "", "folder": "migrations", "lose": "", **request.options}
        )


class MigrateDjango:
    """The proposer that has Django write a migration."""

    entry = NamedEntry("migrate_django", "has Django write the migration to its models", _PROJECT)

    def search(self, request: PlanRequest, place: MeasureCall) -> Search:
        """One candidate, or a refusal. Raises: as `Migrate.search`."""
        fit(CODE, _PROJECT, request.options)
        driver = data.path(DRIVER).read_text(encoding="utf-8")
        return _searched(
            place, "django", {"manage": "manage.py", "lose": "", **request.options}, driver=driver
        )


def _searched(place: MeasureCall, do: str, given: Mapping[str, Any], **texts: str) -> Search:
    plan = {**given, **texts, "do": do, "schemas": data.path(SCHEMAS).read_text(encoding="utf-8")}
    found = guest.ask(place, GUEST, plan, "migrate.incomplete")
    if "refusal" in found:
        refusal = found["refusal"]
        if refusal["code"] not in _HINTS:  # the project's process wrote it
            raise RunError(
                "migrate.incomplete", "the project answered in the place of the trial", "look at its settings"
            )
        return Search((), given, {**refusal, "hint": _HINTS[refusal["code"]]})
    if left := _journal_left_out(place, found["from"]):
        message = f"{left} holds changes of the database, and is not in the run's copy"
        hint = f'close the database, or set `bring = ["{left}"]` in [workspace] of spak.toml'
        return Search((), given, {"code": "migrate.database", "message": message, "hint": hint})
    patch = make((path, None, text.encode()) for path, text in found["files"].items())
    record = {**given, "from": found["from"], "changed": len(found["changed"])}
    return Search((Candidate(TOOL, {"patch": patch}, checks=found["checks"]),), record)


def _journal_left_out(place: MeasureCall, database: str) -> str:
    """The journal that lies next to a database in the user's folder, and not in the copy; empty where there
    is none: rows that are only in it were not tried."""
    if place.original is None:
        return ""
    for path in (os.path.normpath(f"{database}{end}") for end in JOURNALS):
        file = place.original / path
        if not os.path.lexists(place.workspace / path) and file.is_file() and file.stat().st_size:
            return path
    return ""


__all__ = ["Migrate", "MigrateDjango"]
