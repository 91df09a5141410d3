"""The files of a workspace's tree as git has them: by path, each with git's mode and the store's digest."""

from __future__ import annotations

from spak.repository.stream import LINK, PLAIN, PROGRAM, File
from spak.workspace.tree import Node
from spak.workspace.unpack import items_of


def git_files(root: Node) -> dict[str, File]:
    """Every file and link below a folder; what has no content (sockets, pipes) is left out."""
    return {path: File(_mode(node), node.digest) for path, node in items_of(root) if node.kind in "fl"}


def _mode(node: Node) -> str:
    if node.kind == "l":
        return LINK
    return PROGRAM if node.mode & 0o100 else PLAIN
