"""Files of secrets in one workspace: where they are, and what was in those that somebody saw there before.

Takes the store, the scanner, the folder and the lock of the workspace, and the tree with which a step began
that is under way; gives paths and contents. It masks nothing and reads no value (spak.runner.secret_guard).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from spak.errors import UserError
from spak.files.disk import typed
from spak.workspace.secret_files import lying, walk
from spak.workspace.secret_list import Content, SecretList
from spak.workspace.secret_nodes import holding, secret_contents, secret_files
from spak.workspace.store import Store
from spak.workspace.tree import Node, Scanner, load


class Secrets:
    """Those of one workspace, as it is now."""

    def __init__(
        self,
        store: Store,
        scanner: Scanner,
        directory: Path,
        skip: frozenset[str],
        lock: Callable[[], AbstractContextManager[int]],
        begun: Node | None,
    ) -> None:
        self._store, self._scanner, self._directory, self._skip = store, scanner, directory, skip
        self._lock, self._begun = lock, begun

    def _list(self) -> SecretList:
        return SecretList(self._store.folder, self._scanner.disk)

    def files(self, fresh: bool = False) -> tuple[str, ...]:
        """Paths of files that are of secrets by name or content. Within a step that may write as it began;
        else as the last scan saw it, or as it is now if there was none or it must be `fresh`."""
        tree = self._begun
        if tree is None and not fresh:
            tree = self._scanner.last
        return secret_files(tree) if tree is not None else walk(self._directory, self._skip)

    def followed(self, first: str = "") -> tuple[tuple[Content, ...], bool]:
        """What was in files of secrets, and whether whoever worked here before has kept it (`follow`); where
        nobody has, it is what was in them alone under the root that the run began with. A run that was
        imported does not have that root: it begins with what is in them now.

        Raises: RunError `workspace.object`, `workspace.io`.
        """
        with typed("reading which files were masked"):
            kept = self._list().read()
            if kept is not None or not first:
                return kept or (), kept is not None
            self._store.look()
            if not self._store.knows(first):
                return (), False
            last = self._scanner.last
            root = last if last is not None and last.digest == first else load(self._store, first)
        return secret_contents(root), False

    def follow(self, contents: Iterable[Content]) -> None:
        """Keep what is in files of secrets for whoever works here next. Raises: as `Workspace.lock` and
        `followed`; RunError `workspace.full`."""
        with self._lock(), typed("noting which files are masked"):
            self._list().add(contents)

    @property
    def scanned(self) -> bool:
        """Whether the folder was read here, so that `holding` need not read it."""
        return self._scanner.last is not None

    def holding(self, wanted: Mapping[str, int]) -> tuple[str, ...]:
        """The files in which one of these contents lies, by digest and bytes: within a step that may write as
        it began, else as the last scan saw it, or as it is now if there was none."""
        tree = self._begun or self._scanner.last
        return lying(self._directory, wanted, self._skip) if tree is None else holding(tree, wanted)

    def stored(self, digest: str, most: int) -> bytes | None:
        """A content of at most so many bytes, from the store; None where it is not there, or is damaged."""
        try:
            self._store.look()
            data = self._store.read(digest) if self._store.knows(digest) else None
        except (UserError, OSError):
            return None
        return data if data is not None and len(data) <= most else None
