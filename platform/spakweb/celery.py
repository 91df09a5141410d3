"""The Celery application: the same tasks embedded (messages as files) and distributed (Redis)."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")


def make_folders() -> None:
    """Embedded, messages are files in the data folder."""
    from django.conf import settings

    if not settings.REDIS_URL:
        (settings.QUEUE_DIR / "control").mkdir(parents=True, exist_ok=True, mode=0o700)


app = Celery("spakweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["spakweb.runs"])
