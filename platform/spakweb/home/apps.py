"""The app `home`; its system check lets no command work on a place that was restored by half, and nothing is
migrated on tables of a newer version."""

from pathlib import Path
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.management.base import CommandError
from django.db.models.signals import pre_migrate

from spakweb import restoring, tables
from spakweb.errors import Refused


class HomeConfig(AppConfig):
    """The app of the first page and of operating commands."""

    name = "spakweb.home"
    label = "home"

    def ready(self) -> None:
        checks.register(unfinished_restore)
        pre_migrate.connect(
            newer_tables, sender=apps.get_app_config("teams"), dispatch_uid="home.newer_tables"
        )


def newer_tables(**ignored: Any) -> None:
    """Before anything is migrated. Raises: CommandError where the tables are newer than the code."""
    try:
        tables.refuse()
    except Refused as why:
        raise CommandError(f"{why.message} [{why.code}]\n  fix: {why.hint}") from why


def unfinished_restore(**ignored: Any) -> list[checks.CheckMessage]:
    """A system check: an error while a restore of the data folder is unfinished."""
    try:
        restoring.refuse(Path(settings.DATA_DIR))
    except Refused as why:
        return [checks.Error(why.message, hint=why.hint, id=why.code)]
    return []
