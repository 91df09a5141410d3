"""Where the files of a run are on this host: its workspace and the store of its contents.

Where hosts share no disk, contents travel through the storage of blobs. It takes no lease.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from spak.files.disk import Disk
from spak.workspace import Workspace
from spak.workspace.pushed import Pushed
from spak.workspace.store import Store
from spakweb.store.ledger.blobs import StoredBlobs
from spakweb.store.runs.models import Run

BUSY_S = 3.0
"""How long the lock of a workspace is waited for; a stopped worker may hold it much longer."""


def folder_of(key: str) -> Path:
    """The folder of a run on this host."""
    return Path(settings.DATA_DIR) / "runs" / key


def workspace_of(key: str) -> Workspace:
    """The workspace of a run, made where there is none yet."""
    folder = folder_of(key)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    travels = settings.STORAGE == "database"
    return Workspace(folder / "workspace", folder / "store", wait_s=BUSY_S, travels=travels)


def store_of(run: Run) -> Store:
    """The contents of the run's workspace, from this host or from where another has put them; what a fork
    took over is in the stores of the runs that it goes back to."""
    store = Store(folder_of(run.key) / "store", Disk())
    parents, parent = [], run.parent
    while parent is not None:
        parents.append(Store(folder_of(parent.key) / "store", Disk()))
        parent = parent.parent
    store.sources = (*parents, Pushed(StoredBlobs(run.pk)))
    return store
