"""The app `runs`."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "spakweb.runs"
    label = "runs"
