"""The app `triggers`."""

from django.apps import AppConfig


class TriggersConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.triggers"
    label = "triggers"
