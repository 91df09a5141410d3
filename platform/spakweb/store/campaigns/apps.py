"""The app `campaigns`."""

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.campaigns"
    label = "campaigns"
