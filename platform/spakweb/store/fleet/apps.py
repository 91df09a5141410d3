"""The app `fleet`."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """The app of runners."""

    name = "spakweb.store.fleet"
    label = "fleet"
