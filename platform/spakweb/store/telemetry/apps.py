"""The app `telemetry`."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """The configuration of the app."""

    name = "spakweb.store.telemetry"
    label = "telemetry"
