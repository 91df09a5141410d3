"""The app `home`."""

from django.apps import AppConfig


class HomeConfig(AppConfig):
    name = "spakweb.home"
    label = "home"
