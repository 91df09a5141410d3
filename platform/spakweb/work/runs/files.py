"""The files of a run as they are now: which there are, what became of them since the run began, and what is
in them.

Takes a row; reads its workspace's store (on this host, or where another has put it) by the roots that records
name, so that a page shows what the records say and not what happens to lie in a folder. Before the first
record it knows the names of files that were brought. Files that are of secrets by their names are listed and
never read.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from spak.errors import UserError
from spak.records import decode
from spak.secrets import which
from spak.workspace.store import Store
from spak.workspace.tree import Node, load
from spak.workspace.unpack import items_of
from spakweb.store.ledger import uploads
from spakweb.store.ledger.export import key_of
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs.models import Run, RunRecord

State = Literal["", "new", "changed", "removed"]
IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}
"""What a file begins with that is shown as a picture, by what it is."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """One file. `state` is what became of it since the run began; `digest` is empty where nothing is known
    but the name."""

    path: str
    size: int
    digest: str = ""
    state: State = ""
    target: str = ""
    """Where it leads, of a symbolic link, which has nothing else to show."""

    @property
    def key(self) -> str:
        """The path as addresses have it."""
        return key_of(self.path)

    @property
    def secret(self) -> bool:
        """Whether its name says that it holds a secret."""
        return which.secret(self.path)

    @property
    def readable(self) -> bool:
        """Whether its content may be shown."""
        return bool(self.digest) and not self.target and self.state != "removed" and not self.secret


def files_of(run: Run) -> tuple[RunFile, ...]:
    """All files in order of their paths, with those that are gone.

    Raises: UserError, OSError, ValueError when the store cannot be read.
    """
    before, now = roots(run)
    if not now:
        named = uploads.names(run.files) if run.files is not None and not run.count else []
        return tuple(RunFile(path, size) for path, size in named)
    store = store_of(run)
    if not store.knows(now):
        return ()
    return _listed(run.key, before if store.knows(before) else now, now)


def roots(run: Run) -> tuple[str, str]:
    """The workspace that the run began with, and the one that it has now; empty where it has none yet, and of
    a guarded session, whose files are where it runs."""
    if run.agent:
        return "", ""
    first = RunRecord.objects.filter(run=run, seq=0).first()
    begun = (decode(bytes(first.line)).body.get("rules") or {}).get("r3") if first else ""
    now = ((run.summary or {}).get("registers") or {}).get("R3")
    before = begun if isinstance(begun, str) else ""
    return before, now if isinstance(now, str) and now else before


def changed_since(run: Run, root: str) -> list[str] | None:
    """The paths that differ between an earlier workspace of the run and its workspace now; None where the
    earlier one is not known. Raises: as `files_of`."""
    now = roots(run)[1]
    if root == now:
        return []
    if not store_of(run).knows(root):
        return None
    return [file.path for file in _listed(run.key, root, now) if file.state]


def find(run: Run, path: str) -> RunFile | None:
    """The file of that path, if there is one that may be read."""
    return next((file for file in files_of(run) if file.path == path and file.readable), None)


def content(run: Run, file: RunFile) -> bytes:
    """Raises: RunError `workspace.object`."""
    return store_of(run).read(file.digest)


def read(run: Run, path: str) -> bytes | None:
    """The bytes of a file; None when there is none that may be read."""
    file = find(run, path)
    data = b"" if file is None else content(run, file)
    return None if file is None or holds_secret(path, data) else data


def holds_secret(path: str, data: bytes) -> bool:
    """Whether its contents make it a file of secrets, as they do for a job."""
    return which.may_hold_at(path) and bool(which.finds(path, data))


def as_text(data: bytes) -> str | None:
    """What can be shown and edited as text; None for everything else."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def image_type(data: bytes) -> str:
    """The type of a picture that a page may show, by how it begins; else empty. An SVG is a text."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGES.items() if data.startswith(start)), "")


def path_of(key: str) -> str:
    """The path that `key_of` made it from; empty for what names none."""
    kind, _, name = key.partition("/")
    if kind == "file":
        return name
    try:
        return os.fsdecode(urlsafe_b64decode(name)) if kind == "name" else ""
    except ValueError:
        return ""


@lru_cache(maxsize=16)
def _listed(key: str, before: str, now: str) -> tuple[RunFile, ...]:
    """Of two roots, which say what there is: nothing of it changes."""
    store = store_of(Run.objects.get(key=key))
    old, new = _files(store, before), _files(store, now)
    found = [_shown(store, path, node, _state(old.get(path), node)) for path, node in new.items()]
    found += [_shown(store, path, node, "removed") for path, node in old.items() if path not in new]
    return tuple(sorted(found, key=lambda file: os.fsencode(file.path)))


def _files(store: Store, root: str) -> dict[str, Node]:
    return dict(items_of(load(store, root)))


def _shown(store: Store, path: str, node: Node, state: State) -> RunFile:
    target = store.read(node.digest).decode(errors="replace") if node.kind == "l" else ""
    return RunFile(path, node.size, node.digest, state, target)


def _state(before: Node | None, now: Node) -> State:
    if before is None:
        return "new"
    return (
        ""
        if (before.kind, before.digest, before.mode)
        == (
            now.kind,
            now.digest,
            now.mode,
        )
        else "changed"
    )


def tree(files: tuple[RunFile, ...], most: int) -> dict[str, Any]:
    """Folders within folders for a page: `folders` (name, count, changed, closed, inside), `files` of each.
    At most so many files; `more` says how many are left out."""
    top: dict[str, Any] = {"folders": {}, "files": []}
    for file in files[:most]:
        *parents, name = file.path.split("/")
        at = top
        for parent in parents:
            new = {"name": parent, "count": 0, "changed": False, "folders": {}, "files": []}
            at = at["folders"].setdefault(parent, new)
            at["count"] += 1
            at["changed"] |= bool(file.state)
            at["closed"] = parent[0] == "." or parent in ("__pycache__", "node_modules")
        at["files"].append((name, file))
    return {**top, "more": max(0, len(files) - most)}


def problem(error: Exception) -> str:
    """Why the files cannot be shown."""
    return error.message if isinstance(error, UserError) else "the stored files cannot be read"
