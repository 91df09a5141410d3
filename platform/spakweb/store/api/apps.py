"""The app of the API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Idempotency keys are its only table."""

    name = "spakweb.store.api"
    label = "api"
