"""`manage.py rebuild [KEY ...]`: make the projected columns of runs again from their ledgers.

Without keys all runs. Runs that a worker holds are left to it: it writes the same columns. A ledger that does
not verify is told of and left as it is, and the command ends with an error.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from spak.errors import LedgerError
from spakweb import clock
from spakweb.runs import news
from spakweb.runs.ledger import DatabaseLedgers
from spakweb.runs.models import Run
from spakweb.runs.project import rebuild
from spakweb.runs.queue import free


class Command(BaseCommand):
    help = "Make the projected columns of runs again from their ledgers."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("keys", nargs="*", metavar="KEY", help="these runs only")

    def handle(self, *args: Any, keys: list[str], **options: Any) -> None:
        rows = Run.objects.filter(count__gt=0).order_by("pk")
        if keys:
            rows = rows.filter(key__in=keys)
            if unknown := set(keys) - set(rows.values_list("key", flat=True)):
                raise CommandError(f"no records of {', '.join(sorted(unknown))}")
        done, damaged = 0, []
        left = rows.exclude(free(clock.now())).count()
        for row in rows.filter(free(clock.now())).iterator():
            try:
                rebuild(row, DatabaseLedgers().reader(row.key).read())
            except LedgerError as error:
                damaged.append(row.key)
                self.stderr.write(f"{row.key}: {error.message}\n  mend: {error.hint}")
                continue
            news.tell(row.key, row.count)
            done += 1
        self.stdout.write(f"{done} rebuilt, {left} left to their workers, {len(damaged)} damaged")
        if damaged:
            raise CommandError(f"damaged: {', '.join(damaged)}")
