"""The app `folders`; a version that is saved goes out by it."""

from django.apps import AppConfig


class FoldersConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.folders"
    label = "folders"

    def ready(self) -> None:
        from spakweb.folders import queue  # noqa: F401  it listens for saved versions
