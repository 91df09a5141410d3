"""The app `jobs`."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.jobs"
    label = "jobs"
