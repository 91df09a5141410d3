"""`manage.py delete_run KEY ...`: delete runs that ended, for good, and wait until nothing of them is left.

What stays of each is a line: its key, spec version, state, number of records and head, and that this command
deleted it. A run that has not ended, or that a fork goes on from, is left as it is, and the command ends with
an error. One that was deleted before is erased to its end.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from spakweb.ground.text import plural
from spakweb.store.runs.models import Run
from spakweb.work.worker import retention


class Command(BaseCommand):
    help = "Delete runs that ended, for good."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("keys", nargs="+", metavar="KEY", help="the runs")

    def handle(self, *args: Any, keys: list[str], **options: Any) -> None:
        left = [why for key in keys if (why := self._deleted(key))]
        if left:
            raise CommandError("; ".join(left))

    def _deleted(self, key: str) -> str:
        """Delete it; why not, or nothing."""
        run = Run.objects.select_related("team").filter(key=key).first()
        if run is None:
            return f"there is no run {key}"
        if run.deleted_at is None and not retention.mark(run, None, "manage.py delete_run"):
            forks = ", ".join(retention.forks_that_go_on(run)[:5])
            return f"{key} has forks that go on: {forks}" if run.deletable else f"{key} has not ended"
        if run.erased_at is None and not retention.erase(run):
            return f"{key} is deleted, and a backup is under way: a sweep erases it later"
        self.stdout.write(f"{key}: deleted, {plural(run.count, 'record')}")
        return ""
