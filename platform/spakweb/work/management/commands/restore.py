"""`manage.py restore SOURCE`: put a backup back into an empty place, the platform being stopped."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from spakweb.ground.errors import Refused
from spakweb.ground.text import plural
from spakweb.work.operate import backup


class Command(BaseCommand):
    help = "Put a backup back. Stop the platform first."
    requires_system_checks = ()  # one of them lets nothing but this command work on half a place

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("source", metavar="SOURCE", type=Path, help="a folder that `backup` made")
        parser.add_argument("--replace", action="store_true", help="move what is there aside")

    def handle(self, *args: Any, source: Path, replace: bool, **options: Any) -> None:
        try:
            made = backup.restore(source, replace, self.stdout.write)
        except Refused as why:
            raise CommandError(f"{why.message} [{why.code}]\n  fix: {why.hint}") from why
        self.stdout.write(
            f"{plural(made.runs, 'run')} restored, as of {made.made_at}. Next: manage.py check_store"
        )
        for line in made.damaged:
            self.stderr.write(f"was damaged when the backup was made: {line}")
