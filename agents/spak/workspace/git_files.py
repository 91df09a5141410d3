"""The files of a workspace's tree as git has them: by path, each with git's mode and the store's digest."""

from __future__ import annotations

from spak import door
from spak.repository.stream import LINK, PLAIN, PROGRAM, File
from spak.workspace.tree import Node
from spak.workspace.unpack import items_of


def git_files(root: Node) -> dict[str, File]:
    """Every file and link below a folder; what has no content (sockets, pipes) is left out."""
    return {path: git_file(node) for path, node in items_of(root) if node.kind in "fl"}


def git_file(node: door.Node) -> File:
    """One of them."""
    plain = PROGRAM if node.mode & 0o100 else PLAIN
    return File(LINK if node.kind == "l" else plain, node.digest)
