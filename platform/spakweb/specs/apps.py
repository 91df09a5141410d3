"""The app `specs`."""

from django.apps import AppConfig


class SpecsConfig(AppConfig):
    name = "spakweb.specs"
    label = "specs"
