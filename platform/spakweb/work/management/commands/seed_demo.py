"""`manage.py seed_demo`: a team of two people with the shipped specs; nothing if it is there."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from spakweb.work.operate.demo import seed


class Command(BaseCommand):
    help = "Make the demo team with the shipped specs, once."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("demo team made" if seed() else "the demo team is there already")
