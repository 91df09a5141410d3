"""The app `oidc`."""

from django.apps import AppConfig


class OidcConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.ground.oidc"
    label = "oidc"
