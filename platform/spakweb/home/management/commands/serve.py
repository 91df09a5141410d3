"""`manage.py serve`: the web part alone, where workers are processes or hosts of their own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from spakweb.errors import Refused
from spakweb.home.serve import serve
from spakweb.home.up import listen


class Command(BaseCommand):
    help = "Serve the web part alone on SPAK_WEB_HOST and SPAK_WEB_PORT, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            listening = listen(settings.HOST, settings.PORT)
        except Refused as why:
            raise CommandError(f"{why.message}\n  fix: {why.hint}") from why
        with listening:
            serve(listening)
