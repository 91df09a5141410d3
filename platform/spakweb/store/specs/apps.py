"""The app `specs`."""

from django.apps import AppConfig


class SpecsConfig(AppConfig):
    """The app of specs."""

    name = "spakweb.store.specs"
    label = "specs"
