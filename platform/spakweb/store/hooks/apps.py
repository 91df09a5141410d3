"""The app `hooks`; around each migration it drops and sets the trigger that fills the outbox."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate


class HooksConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.hooks"
    label = "hooks"

    def ready(self) -> None:
        pre_migrate.connect(drop_trigger, sender=self, dispatch_uid="spak_hooks_drop")
        post_migrate.connect(set_trigger, sender=self, dispatch_uid="spak_hooks_set")


def drop_trigger(using: str, **kwargs: Any) -> None:
    """Before tables are changed."""
    from spakweb.store.hooks import triggers

    triggers.remove(connections[using])


def set_trigger(using: str, **kwargs: Any) -> None:
    """After tables were changed."""
    from spakweb.store.hooks import triggers

    triggers.install(connections[using])
