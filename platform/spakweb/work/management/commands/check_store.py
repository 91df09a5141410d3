"""`manage.py check_store`: look at all that is stored, and say what is damaged; it changes nothing.

The database by its own check (SQLite), the triggers that keep records as they are, and of every run the chain
of its records and its blobs. It ends with an error when anything is damaged.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from spak import integrity
from spakweb.ground.database import appendonly, damage, tables
from spakweb.ground.text import plural
from spakweb.store.ledger import salvage

WITHIN_S = 24 * 3600.0


class Command(BaseCommand):
    help = "Look at all that is stored, and say what is damaged."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help="the database alone, no ledger")

    def handle(self, *args: Any, quick: bool, **options: Any) -> None:
        found = [*self._database(quick), *([] if quick else self._runs())]
        for line in found:
            self.stderr.write(line)
        if found:
            raise CommandError(f"{len(found)} problems; docs/deploy.md, Damage, says what to do")
        self.stdout.write("nothing is damaged")

    def _database(self, quick: bool) -> list[str]:
        where = damage.file()
        found = () if where is None else integrity.check(where, WITHIN_S, full=not quick).problems
        try:
            lost = appendonly.missing(connection)
            newer, lacking = tables.unknown(), tables.lacking()
        except DatabaseError as error:
            return [*(f"database: {line}" for line in found), f"database: {error}"]
        return [
            *(f"database: {line}" for line in found),
            *(f"triggers of {name} are gone" for name in lost),
            *(f"{name} was applied by a newer version than this" for name in newer),
            *(f"{name} was never applied, and this version cannot" for name in lacking),
        ]

    def _runs(self) -> list[str]:
        found, seen = [], 0
        for row in salvage.every_run():
            seen += 1
            if isinstance(row, salvage.Unreadable):
                found.append(f"row {row.pk} of the list of runs cannot be read")
            else:
                found += [f"{row.key}: {line}" for line in salvage.problems(row)]
        self.stdout.write(f"{plural(seen, 'run')} checked")
        return found
