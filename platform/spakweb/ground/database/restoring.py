"""Whether a backup is being put back into a data folder, or was, and the command did not come to its end.

`manage.py restore` writes a marker into the folder before it changes anything there, and removes it last.
While it is there nothing starts: `refuse` is asked by `manage.py up`, by workers and, as a system check, by
every other command of manage.py; `/readyz` says so. `manage.py restore` alone works, and begins anew.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from spak.ledger.scan import fsync_folder
from spakweb.ground.errors import Refused

NAME = "restore.unfinished"
CODE = "web.half_restored"


@dataclass(frozen=True, slots=True)
class Marker:
    """What the marker of an unfinished restore says."""

    aside: str
    """The folder that takes what was there before, beside it."""
    moved: bool = False
    """Whether all of it is in there: what is found now is of the restore that was broken off."""


def is_unfinished(data: Path) -> bool:
    """Whether a restore of the data folder is unfinished."""
    return (data / NAME).exists()


def find(data: Path) -> Marker | None:
    """The marker of an unfinished restore; None where there is none."""
    try:
        return Marker(**json.loads((data / NAME).read_text()))
    except FileNotFoundError:
        return None


def write(data: Path, marker: Marker) -> None:
    """On the disk when it returns; at no time is there half of it."""
    aside = data / f".{NAME}"
    with aside.open("w") as file:
        json.dump(asdict(marker), file)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(data / NAME)
    fsync_folder(data)


def remove(data: Path) -> None:
    """Remove the marker, durably. Raises: FileNotFoundError."""
    (data / NAME).unlink()
    fsync_folder(data)


def refuse(data: Path) -> None:
    """Raises: Refused `web.half_restored`."""
    if is_unfinished(data):
        raise Refused(
            CODE,
            f"A restore into {data} did not come to its end, or is under way.",
            "Run the same manage.py restore again; it begins anew and needs no --replace.",
        )
