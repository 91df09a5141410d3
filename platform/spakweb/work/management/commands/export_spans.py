"""`manage.py export_spans RUN`: send the spans of a run to the collector now, whatever was sent before.

Spans have the same ids each time, so that sending again adds nothing.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from spak.errors import UserError
from spakweb.store.runs.models import Run
from spakweb.work.telemetry.jobs import export


class Command(BaseCommand):
    help = "Send the spans of a run to the collector of SPAK_WEB_OTLP_ENDPOINT."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", help="the run's key")

    def handle(self, *args: Any, run: str, **options: Any) -> None:
        if not settings.OTLP:
            raise CommandError("SPAK_WEB_OTLP_ENDPOINT names no collector")
        found = Run.objects.filter(key=run, deleted_at=None).first()
        if found is None:
            raise CommandError(f"there is no run {run[:80]!r}")
        try:
            number = export(found)
        except UserError as error:
            raise CommandError(f"{error.code}: {error.message}. {error.hint}") from error
        self.stdout.write(f"{number} spans")
