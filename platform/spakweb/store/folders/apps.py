"""The app `folders`."""

from django.apps import AppConfig


class FoldersConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.folders"
    label = "folders"
