from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "spakweb.fleet"
    label = "fleet"
