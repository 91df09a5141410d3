"""`manage.py check_store`: look at all that is stored, and say what is damaged; it changes nothing.

The database by its own check (SQLite), the triggers that keep records as they are, and of every run the chain
of its records and its blobs; with `--checkpoint FILE` also that the team's runs are those that were signed.
It ends with an error when anything is damaged.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from spak import integrity
from spak.errors import LedgerError
from spak.ledger import note
from spak.ledger.note import Head
from spakweb.ground.database import appendonly, damage, tables
from spakweb.ground.teams.models import Team
from spakweb.ground.text import plural
from spakweb.store.ledger import log, salvage
from spakweb.work.runs import checkpoints

WITHIN_S = 24 * 3600.0


class Command(BaseCommand):
    help = "Look at all that is stored, and say what is damaged."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help="the database alone, no ledger")
        parser.add_argument(
            "--checkpoint", action="append", default=[], type=Path, metavar="FILE", help="a signed checkpoint"
        )
        parser.add_argument("--key", metavar="KEY", help="the public key that verifies it, where it is kept")

    def handle(
        self, *args: Any, quick: bool, checkpoint: list[Path], key: str | None, **options: Any
    ) -> None:
        signed = self._signed(checkpoint, key)
        found = [*self._database(quick), *([] if quick else self._runs())]
        for team, heads in signed.items():
            found += [f"{team.slug}: {line}" for line in log.problems(team, heads)]
            self.stdout.write(f"{team.slug}: against a checkpoint of {max(one.size for one in heads)} leaves")
        for line in found:
            self.stderr.write(line)
        if found:
            raise CommandError(f"{len(found)} problems; docs/deploy.md, Damage, says what to do")
        self.stdout.write("nothing is damaged")

    def _signed(self, files: list[Path], key: str | None) -> dict[Team, list[Head]]:
        """What the files say of each team. Raises: CommandError for what is no checkpoint of a team here."""
        found: dict[Team, list[Head]] = {}
        for file in files:
            try:
                data = file.read_bytes()
                origin = note.read(data).head().origin
                pk = origin.rpartition("/team-")[2]
                team = Team.objects.filter(pk=pk).first() if pk.isdecimal() and len(pk) < 10 else None
                if team is None:
                    raise CommandError(f"{file} is of the log {origin}, which is of no team here")
                trusted = note.verifier(key or checkpoints.public_key(team))
                found.setdefault(team, []).append(note.trusted(data, trusted)[1])
            except OSError as error:
                raise CommandError(f"{file}: {error.strerror}") from error
            except LedgerError as error:
                raise CommandError(f"{file}: {error.message}") from error
        return found

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
