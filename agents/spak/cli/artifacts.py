"""What a run has made: files of its workspace that are new or changed, and the files of its best candidate.

Takes the run folder and two roots, R3 at genesis and R3 now; gives JSON rows. It reads the workspace's store,
not the workspace, and so says what is committed. Hidden files and bytecode caches are left out. An imported
run has no store: there only the best candidate is listed.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from spak.files.disk import Disk
from spak.runner import View
from spak.workspace import Copied
from spak.workspace.store import Store
from spak.workspace.tree import at, differences, load


def with_artifacts(seen: View, folder: Path, before: str, workspace: Path | None = None) -> View:
    """The view with its artifacts: files as `{name, path, size, sha256}`, the best `{name, path, blob}`."""
    best = ({**row, "path": _blob(folder, str(row["blob"]))} for row in seen.artifacts)
    now = str(seen.registers["R3"])
    files = tuple(_written(folder, before, now, workspace or folder / "workspace"))
    applies = before != now and Copied.read(folder) is not None
    return replace(seen, artifacts=(*best, *files), applies=applies)


def _written(folder: Path, before: str, now: str, workspace: Path) -> Iterator[dict[str, Any]]:
    store = Store(folder / "store", Disk())
    if before == now or not (store.has(before) and store.has(now)):
        return
    root = load(store, now)
    for path in differences(load(store, before), root):
        node = at(root, path)
        if node is not None and node.kind == "f" and not _is_noise(path):
            digest = urlsafe_b64decode(f"{node.digest}=").hex()
            yield {"name": path, "path": str(workspace / path), "size": node.size, "sha256": digest}


def _is_noise(path: str) -> bool:
    return any(part[0] == "." or part == "__pycache__" for part in path.split("/"))


def _blob(folder: Path, digest: str) -> str:
    return str(folder / "blobs" / digest[:2] / digest)
