"""The app `sources`."""

from django.apps import AppConfig


class SourcesConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.sources"
    label = "sources"
