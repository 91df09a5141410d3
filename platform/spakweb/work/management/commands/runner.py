"""`manage.py runner add NAME --queue gpu`, `runner remove NAME`, `runner list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from spakweb.ground.errors import Refused
from spakweb.store.fleet.models import Runner
from spakweb.work.fleet import actions


class Command(BaseCommand):
    help = "Register a runner and print its token, this once; remove one; list them."

    def add_arguments(self, parser: Any) -> None:
        kinds = parser.add_subparsers(dest="what", required=True)
        add = kinds.add_parser("add")
        add.add_argument("name")
        add.add_argument("--queue", action="append", default=[], help="A queue it serves; again for more.")
        add.add_argument("--label", action="append", default=[])
        kinds.add_parser("remove").add_argument("name")
        kinds.add_parser("list")

    def handle(self, *args: Any, **given: Any) -> None:
        if given["what"] == "list":
            for runner in Runner.objects.all():
                state = "alive" if runner.alive else "silent"
                self.stdout.write(f"{runner.name}  {state}  {','.join(runner.queues)}")
        elif given["what"] == "remove":
            if not actions.withdraw(given["name"]):
                raise CommandError(f"there is no runner {given['name']!r}")
        else:
            try:
                _, token = actions.register(given["name"], given["queue"] or ["default"], given["label"])
            except Refused as why:
                raise CommandError(f"{why.message} {why.hint}") from why
            self.stdout.write(token)
