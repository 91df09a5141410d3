"""`manage.py checkpoint [TEAM ...]`: sign what all runs of these teams are now, or of all teams.

It does at once what workers do every SPAK_WEB_CHECKPOINT_EVERY_S seconds, and prints the size of each log and
the public key that verifies it. What went wrong is printed too, and the command ends with an error.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from spak.errors import LedgerError
from spakweb.ground.teams.models import Team
from spakweb.work.runs import checkpoints


class Command(BaseCommand):
    help = "Sign what all runs are now, and write it where the operator says."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "teams", nargs="*", metavar="TEAM", help="addresses of teams; all, if none is named"
        )

    def handle(self, *args: Any, teams: list[str], **options: Any) -> None:
        if not settings.CHECKPOINTS.log:
            raise CommandError("no log is named: set SPAK_WEB_CHECKPOINT_LOG (docs/deploy.md, Checkpoints)")
        rows = Team.objects.filter(slug__in=teams) if teams else Team.objects.all()
        unknown = sorted(set(teams) - {row.slug for row in rows})
        if unknown:
            raise CommandError(f"there is no team {unknown[0]}")
        wrong = 0
        for team in rows.order_by("pk"):
            try:
                row = checkpoints.write(team)
            except LedgerError as error:
                wrong += 1
                self.stderr.write(f"{team.slug}: {error.message}")
                continue
            wrong += len(row.problems)
            for line in row.problems:
                self.stderr.write(f"{team.slug}: {line}")
            self.stdout.write(f"{team.slug}: size {row.size}, {row.key}")
        if wrong:
            raise CommandError(f"{wrong} problems; docs/checkpoints.md says what to do")
