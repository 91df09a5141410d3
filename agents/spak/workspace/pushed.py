"""A workspace on its way to another host: what a root needs, put into `ports.Blobs` and read out of them.

The digest of a root is that of its list, which names all that is below by digest: R3 itself is the manifest.
A folder's list is put after everything that it names, so that a reader of a list in the blobs finds its
contents too, and what is there already is not looked at again. (Only a tool that writes a folder's list into
a file could break that, and only for its own run.)
"""

from __future__ import annotations

from collections.abc import Iterator

from spak.ports import Blobs
from spak.workspace.store import Store
from spak.workspace.tree import entries


class Pushed:
    """Blobs as a place to read objects from (`store.Source`)."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def has(self, digest: str) -> bool:
        """Whether the blobs have a content."""
        return self._blobs.has(digest)

    def pieces(self, digest: str) -> Iterator[bytes]:
        """A content in pieces."""
        yield self._blobs.get(digest)


def push(store: Store, digest: str, blobs: Blobs, kind: str = "d") -> None:
    """Put an object, and first all that it names. Raises: RunError `workspace.object`, LedgerError."""
    if blobs.has(digest):
        return
    data = store.read(digest)
    if kind == "d":
        for below, of, _, _ in entries(data):
            push(store, of, blobs, below)
    blobs.put(data)
