"""The app of the floor `ground`: no command works on a place that was restored by half (a system check)."""

from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from spakweb.ground.database import restoring
from spakweb.ground.errors import Refused


class GroundConfig(AppConfig):
    """Refuses a place that no command may work on; it has no tables."""

    name = "spakweb.ground"
    label = "ground"

    def ready(self) -> None:
        checks.register(unfinished_restore)


def unfinished_restore(**ignored: Any) -> list[checks.CheckMessage]:
    """A system check: an error while a restore of the data folder is unfinished."""
    try:
        restoring.refuse(Path(settings.DATA_DIR))
    except Refused as why:
        return [checks.Error(why.message, hint=why.hint, id=why.code)]
    return []
