"""The facts of a file by its language: the table of extractors.

Takes a language and bytes; gives face and body (`spak.world.facts`), a pure function of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spak.world import c_family, ecma, python
from spak.world.facts import Body, Face, Maker
from spak.world.languages import MANIFESTS, parser
from spak.world.typed import go, manifests, rust

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_ERRORS = 50
EXTRACTORS: dict[str, Callable[[bytes, Node], Maker]] = {
    "python": lambda data, root: python.Walk(data).run(root),
    **dict.fromkeys(("c", "cpp", "cuda"), lambda data, root: c_family.Walk(data).run(root)),
    **dict.fromkeys(("javascript", "typescript", "tsx"), lambda data, root: ecma.Walk(data).run(root)),
    "go": lambda data, root: go.Walk(data).run(root),
    "rust": lambda data, root: rust.Walk(data).run(root),
}
"""One line for each family of languages."""


def extract(language: str, data: bytes) -> tuple[Face, Body]:
    """The facts of a file."""
    if language in MANIFESTS.values():
        return manifests.facts_of(language, data).facts()
    tree = parser(language).parse(data)
    maker = EXTRACTORS[language](data, tree.root_node)
    maker.errors = broken(tree.root_node) if tree.root_node.has_error else []
    return maker.facts()


def broken(root: Node) -> list[int]:
    """The first lines that do not parse."""
    found: set[int] = set()
    stack = [root]
    while stack and len(found) < MAX_ERRORS:
        node = stack.pop()
        if node.is_error or node.is_missing:
            found.add(node.start_point[0] + 1)
        stack += [child for child in node.children if child.has_error]
    return sorted(found)
