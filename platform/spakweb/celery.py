"""The Celery application: the same tasks embedded (messages as files) and distributed (Redis)."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")

app = Celery("spakweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["spakweb.runs"])
