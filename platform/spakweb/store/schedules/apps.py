"""The app `schedules`."""

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.schedules"
    label = "schedules"
