"""`manage.py sweep`: put back into their queues all runs that should go on and that nobody holds, now.

Workers do the same by themselves every few seconds; this is for whoever mended a broker and will not wait.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from spakweb.work.worker.tasks import sweep_up


class Command(BaseCommand):
    help = "Put back into their queues all runs that should go on and that nobody holds."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{sweep_up(at_once=True)} put back")
