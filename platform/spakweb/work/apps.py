"""The app of the floor `work`: what listens to others is connected when Django starts."""

from django.apps import AppConfig


class WorkConfig(AppConfig):
    """Has the commands of `manage.py`, and no tables."""

    name = "spakweb.work"
    label = "work"

    def ready(self) -> None:
        from spakweb.work.fleet import beats  # noqa: F401  a worker of Celery begins and ends
        from spakweb.work.folders import queue  # noqa: F401  a version is saved
        from spakweb.work.reviews import history  # noqa: F401  a tag moves
