"""Trees for the door, from texts by path: `x:` before a text makes a program, `->` a link, None a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spak import canon
from spak.door import Leaving, look
from spak.workspace.tree import Node, encode

Files = Mapping[str, str | bytes | None]


def tree(files: Files, kept: dict[str, bytes]) -> Node:
    """The tree of these files; their contents go into `kept` by digest."""
    root = Node("d", 0o755)
    for path, text in files.items():
        *folders, name = path.split("/")
        at = root
        for folder in folders:
            at = at.children.setdefault(folder, Node("d", 0o755))
        at.children[name] = _leaf(text, kept)
    return _sealed(root)


def leaving(before: Files, after: Files, **options: Any) -> Leaving:
    """What the door says of these two."""
    kept: dict[str, bytes] = {}
    return look(tree(before, kept), tree(after, kept), kept.__getitem__, **options)


def changed(before: Files, changes: Files, **options: Any) -> Leaving:
    """What it says of changes to these files."""
    return leaving(before, {**before, **changes}, **options)


def holding(value: str) -> Callable[[bytes], bool]:
    """Whether bytes hold that value."""
    return lambda data: value.encode() in data


def _leaf(text: str | bytes | None, kept: dict[str, bytes]) -> Node:
    if text is None:
        return Node("s", 0o644)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    kind, mode = "f", 0o644
    if data.startswith(b"->"):
        kind, mode, data = "l", 0o777, data[2:]
    elif data.startswith(b"x:"):
        mode, data = 0o755, data[2:]
    digest = canon.digest(data)
    kept[digest] = data
    return Node(kind, mode, digest, len(data))


def _sealed(folder: Node) -> Node:
    for node in folder.children.values():
        if node.kind == "d":
            _sealed(node)
    folder.digest = canon.digest(encode(folder))
    return folder
