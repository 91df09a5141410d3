"""`manage.py rebuild [KEY ...]`: make the projected columns of runs again from their ledgers.

Without keys all runs. Runs that a worker holds are left to it: it writes the same columns. What the database
cannot read and ledgers that do not verify are named, with the records that are lost, and left as they are;
the others are rebuilt, and the command ends with an error.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from spak.errors import LedgerError
from spakweb.ground import clock
from spakweb.store.hints import news
from spakweb.store.jobs.leases import is_held
from spakweb.store.ledger import salvage
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run


class Command(BaseCommand):
    help = "Make the projected columns of runs again from their ledgers."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("keys", nargs="*", metavar="KEY", help="these runs only")

    def handle(self, *args: Any, keys: list[str], **options: Any) -> None:
        unknown = set(keys) - set(
            Run.objects.filter(key__in=keys, count__gt=0, deleted_at=None).values_list("key", flat=True)
        )
        if unknown:
            raise CommandError(f"no records of {', '.join(sorted(unknown))}")
        done, left, damaged, now = 0, 0, [], clock.now()
        for row in salvage.every_run():
            if isinstance(row, salvage.Unreadable):
                damaged.append(f"row {row.pk}")
                self.stderr.write(f"row {row.pk} of the list of runs cannot be read: the run is lost here")
            elif keys and row.key not in keys:
                continue
            elif is_held(row.holder, row.lease_until, now):
                left += 1
            elif why := self._failed(row):
                damaged.append(row.key)
                self.stderr.write(f"{row.key}: {why}")
            else:
                done += 1
        self.stdout.write(f"{done} rebuilt, {left} left to their workers, {len(damaged)} damaged")
        if damaged:
            raise CommandError(f"damaged: {', '.join(damaged)}")

    def _failed(self, row: Run) -> str:
        """Rebuild it; why not, or nothing."""
        try:
            rebuild(row, DatabaseLedgers().reader(row.key).read())
            news.publish(row.key, row.count)
        except LedgerError as error:
            return f"{error.message}\n  fix: {error.hint}"
        except DatabaseError as error:
            return f"{salvage.lost(row)} ({error})\n  fix: docs/deploy.md, Damage"
        return ""
