"""`manage.py backup DEST`: a verified copy of database and data folder, while the platform works."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from spakweb.ground.errors import Refused
from spakweb.ground.text import plural
from spakweb.work.operate import backup


class Command(BaseCommand):
    help = "Copy the database and the data folder into a new folder, and verify every ledger there."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dest", metavar="DEST", type=Path, help="a folder that does not exist yet")

    def handle(self, *args: Any, dest: Path, **options: Any) -> None:
        try:
            made = backup.make(dest)
        except Refused as why:
            raise CommandError(f"{why.message} [{why.code}]\n  fix: {why.hint}") from why
        self.stdout.write(f"{plural(made.runs, 'run')} and {plural(made.files, 'file')} saved in {dest}")
        for line in made.damaged:
            self.stderr.write(f"damaged: {line}")
        if made.damaged:
            raise CommandError(f"the backup is there; {len(made.damaged)} ledgers in it are damaged")
