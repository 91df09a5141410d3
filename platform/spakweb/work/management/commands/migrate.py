"""`manage.py migrate`: Django's, which begins only on tables that this version can bring up to date.

The question comes before Django reads the graph of migrations, which ends in a traceback for older tables.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from spakweb.ground.database import tables
from spakweb.ground.errors import Refused


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            tables.refuse()
        except Refused as why:
            raise CommandError(f"{why.message} [{why.code}]\n  fix: {why.hint}") from why
        super().handle(*args, **options)
