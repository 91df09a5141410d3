"""A workspace for git: its files as git has them, and where its two repositories are (spak.repository)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spak import door
from spak.repository.scratch import GIT
from spak.repository.stream import LINK, PLAIN, PROGRAM, File
from spak.workspace.store import Store
from spak.workspace.tree import Node, load
from spak.workspace.unpack import items_of


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """Of one workspace: `folder` is where its tools work, `begun` the tree of the step under way."""

    store: Store
    folder: Path
    begun: Node | None

    @property
    def repository(self) -> Path:
        """Where the bare repository of the run is (spak.repository.begun)."""
        return self.store.folder / "git"

    @property
    def making(self) -> Path:
        """Where a scratch repository is made (spak.repository.scratch)."""
        return self.store.folder / "scratch.new"

    @property
    def aside(self) -> Path:
        """Where the scratch repository is while no process works here."""
        return self.store.folder / "scratch"

    def files(self, root: str = "") -> dict[str, File]:
        """The files of a root, or those with which the step under way began.

        Raises: RunError `workspace.object`.
        """
        self.store.look()
        found = git_files(load(self.store, root) if root else self.begun or Node("d", 0))
        return {path: file for path, file in found.items() if not path.startswith(f"{GIT}/")}

    def read(self, digest: str) -> bytes:
        """A content of the store. Raises: RunError `workspace.object`."""
        return self.store.read(digest)


def git_files(root: Node) -> dict[str, File]:
    """Every file and link below a folder; what has no content (sockets, pipes) is left out."""
    return {path: git_file(node) for path, node in items_of(root) if node.kind in "fl"}


def git_file(node: door.Node) -> File:
    """One of them."""
    plain = PROGRAM if node.mode & 0o100 else PLAIN
    return File(LINK if node.kind == "l" else plain, node.digest)
