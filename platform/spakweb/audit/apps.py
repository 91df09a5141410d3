"""The app `audit`; after each migration it sets the triggers that keep rows as they are."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    """The app of what happened; it installs the triggers after each migration."""

    name = "spakweb.audit"
    label = "audit"

    def ready(self) -> None:
        from spakweb.audit import signins  # noqa: F401  connects receivers

        post_migrate.connect(install_triggers, sender=self, dispatch_uid="spak_append_only")


def install_triggers(using: str, **kwargs: Any) -> None:
    """Install the triggers of append-only tables."""
    from spakweb import appendonly

    appendonly.install(connections[using])
