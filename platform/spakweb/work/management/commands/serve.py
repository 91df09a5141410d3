"""`manage.py serve`: the web part alone, where workers are processes or hosts of their own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from spakweb.ground.database import tables
from spakweb.ground.errors import Refused
from spakweb.work.operate.serve import serve
from spakweb.work.operate.up import listen


class Command(BaseCommand):
    help = "Serve the web part alone on SPAK_WEB_HOST and SPAK_WEB_PORT, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with suppress(DatabaseError):  # one that is away is waited for
                tables.refuse()
            listening = listen(settings.HOST, settings.PORT)
        except Refused as why:
            raise CommandError(f"{why.message} [{why.code}]\n  fix: {why.hint}") from why
        with listening:
            serve(listening)
