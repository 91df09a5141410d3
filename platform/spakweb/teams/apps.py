"""The app `teams`."""

from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "spakweb.teams"
    label = "teams"
