"""The app `teams`."""

from django.apps import AppConfig


class TeamsConfig(AppConfig):
    """The app of teams and accounts."""

    name = "spakweb.ground.teams"
    label = "teams"
