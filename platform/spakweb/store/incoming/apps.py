"""The app `incoming`."""

from django.apps import AppConfig


class IncomingConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.incoming"
    label = "incoming"
