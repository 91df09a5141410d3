"""The app `home`; its system check lets no command work on a place that was restored by half."""

from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from spakweb import restoring
from spakweb.errors import Refused


class HomeConfig(AppConfig):
    """The app of the first page and of operating commands."""

    name = "spakweb.home"
    label = "home"

    def ready(self) -> None:
        checks.register(unfinished_restore)


def unfinished_restore(**ignored: Any) -> list[checks.CheckMessage]:
    """A system check: an error while a restore of the data folder is unfinished."""
    try:
        restoring.refuse(Path(settings.DATA_DIR))
    except Refused as why:
        return [checks.Error(why.message, hint=why.hint, id=why.code)]
    return []
