"""The app `audit`; around each migration it drops and sets triggers that keep rows as they are."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate


class AuditConfig(AppConfig):
    """The app of what happened; it installs the triggers after each migration."""

    name = "spakweb.ground.audit"
    label = "audit"

    def ready(self) -> None:
        from spakweb.ground.audit import signins  # noqa: F401  connects receivers

        pre_migrate.connect(make_way, sender=self, dispatch_uid="spak_append_only_make_way")
        post_migrate.connect(install_triggers, sender=self, dispatch_uid="spak_append_only")


def make_way(using: str, plan: Any, **kwargs: Any) -> None:
    """Where tables are about to be changed."""
    from spakweb.ground.database import appendonly

    if plan:
        appendonly.make_way(connections[using])


def install_triggers(using: str, **kwargs: Any) -> None:
    """Install the triggers of append-only tables."""
    from spakweb.ground.database import appendonly

    appendonly.install(connections[using])
