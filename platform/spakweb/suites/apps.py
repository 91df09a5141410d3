"""The app `suites`."""

from django.apps import AppConfig


class SuitesConfig(AppConfig):
    name = "spakweb.suites"
    label = "suites"
