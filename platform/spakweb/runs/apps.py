"""The app `runs`."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "spakweb.runs"
    label = "runs"

    def ready(self) -> None:
        from spakweb.runs import news, writer

        writer.writer.listeners.append(news.committed)
