"""The app `runs`."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """The app of runs."""

    name = "spakweb.runs"
    label = "runs"

    def ready(self) -> None:
        from spakweb.ledger import writer
        from spakweb.live import news

        writer.writer.listeners.append(news.committed)
