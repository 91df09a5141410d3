"""The app `runs`."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """The app of runs."""

    name = "spakweb.store.runs"
    label = "runs"
