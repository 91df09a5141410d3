"""Going through a syntax tree in the order of the text, without recursion: handlers by kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spak.world.facts import Maker

if TYPE_CHECKING:
    from tree_sitter import Node


class Walker:
    """One file under way: `stack` holds what is still to be visited, each with the symbol it belongs to."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.maker = Maker()
        self.stack: list[tuple[Node, str]] = []
        self.handlers: dict[str, Callable[[Node, str], object]] = {}

    def walk(self, root: Node) -> None:
        """Visit every node that no handler keeps."""
        self.stack.append((root, ""))
        while self.stack:
            node, caller = self.stack.pop()
            handler = self.handlers.get(node.type)
            if handler is not None:
                handler(node, caller)
            else:
                self.push(node.named_children, caller)

    def push(self, nodes: list[Node], caller: str) -> None:
        """Visit these next, in order."""
        for node in reversed(nodes):
            self.stack.append((node, caller))

    def text(self, node: Node) -> str:
        """The text of a node."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")
