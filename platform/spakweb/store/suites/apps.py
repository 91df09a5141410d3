"""The app `suites`."""

from django.apps import AppConfig


class SuitesConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.suites"
    label = "suites"
