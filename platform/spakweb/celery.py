"""The entry point of `celery -A spakweb.celery`: the application and its worker (celery_app.py)."""

from spakweb.ground.celery_app import app

__all__ = ["app"]
