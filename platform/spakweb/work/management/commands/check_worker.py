"""`manage.py check_worker`: whether the workers of this host work; ends with 1 and says why when not."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from spakweb.ground import worker_health


class Command(BaseCommand):
    help = "Whether the workers of this host work. It asks the workers themselves, not the database."
    requires_system_checks: tuple[()] = ()

    def handle(self, *args: Any, **options: Any) -> None:
        found = worker_health.troubles()
        if found:
            raise CommandError("\n".join(found))
        self.stdout.write("ok")
