"""The record of a step that begins: which effect it is, and what to return to if it is not committed.

    <effect id>
    {"format":1,"modes":{"d":493,"f":420,"x":493},"odd":[[path,mode]..],"root":digest,"special":[path..]}

It is in the store (`spak.workspace.store`) and durable, with all objects of its root, before the effect
begins. It names its effect: a record left over from an effect that was committed since must not undo it.
`modes` are the usual permission bits by kind of entry, `odd` the exceptions, `special` the sockets, pipes and
devices that were there before. Paths are base64url, since they may hold any bytes.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.errors import RunError, UserError
from spak.workspace.store import Store
from spak.workspace.tree import Node, Tree, at, load, specials, to_bytes, to_text

FORMAT = 1
"""Version of the record; raise it when an older reader would misread it."""

_USUAL = {"d": 0o755, "f": 0o644, "x": 0o755}


@dataclass(frozen=True, slots=True)
class Preimage:
    """The effect under way and the root to return to."""

    effect: str
    root: str
    modes: Mapping[str, int] = field(default_factory=dict)
    odd: tuple[tuple[str, int], ...] = ()
    special: tuple[str, ...] = ()

    @classmethod
    def of(cls, effect: str, tree: Tree) -> Preimage:
        """What is needed to undo an effect: the tree before it, and the modes that are not the usual ones."""
        modes, seen = dict(_USUAL), dict(tree.modes)
        special = specials(tree.root.children) if seen.pop(("s", 0), 0) else ()
        for (kind, mode), _ in sorted(seen.items(), key=lambda item: item[1]):
            modes[kind] = mode
        exceptional = len(seen) > len({kind for kind, _ in seen})
        odd = tuple(_odd(tree.root, modes)) if exceptional else ()
        return cls(effect, tree.root.digest, modes, odd, tuple(special))

    def target(self, store: Store) -> Node:
        """The tree to return to, with its modes."""
        root = load(store, self.root)
        _set_modes(root, self.modes)
        for path, mode in self.odd:
            node = at(root, path) if path else root
            if node is not None:
                node.mode = mode
        for path in self.special:
            parent, _, filename = path.rpartition("/")
            folder = at(root, parent) if parent else root
            if folder is not None:
                folder.children[filename] = Node("s", 0)
        return root


def encode(preimage: Preimage) -> bytes:
    """The second line of the record: what to return to."""
    return canon.dumps(
        {
            "format": FORMAT,
            "modes": preimage.modes,
            "odd": [[_armour(path), mode] for path, mode in preimage.odd],
            "root": preimage.root,
            "special": [_armour(path) for path in preimage.special],
        }
    )


def decode(data: bytes) -> Preimage:
    """The record read back. Raises: RunError `workspace.pending` when it is of another format."""
    try:
        effect, _, line = data.partition(b"\n")
        return _decode(effect.decode(), canon.loads(line))
    except (KeyError, TypeError, ValueError, AttributeError, UserError) as error:
        raise RunError(
            "workspace.pending",
            f"the record of the step under way cannot be read: {error!r}",
            "resume the run with the version of SPAK that wrote it",
        ) from error


def _decode(effect: str, value: Any) -> Preimage:
    if value["format"] != FORMAT:
        raise ValueError(f"format {value['format']}")
    return Preimage(
        effect,
        str(value["root"]),
        {kind: int(value["modes"][kind]) for kind in _USUAL},
        tuple((_plain(path), int(mode)) for path, mode in value["odd"]),
        tuple(_plain(path) for path in value["special"]),
    )


def _odd(node: Node, modes: Mapping[str, int], path: str = "") -> list[tuple[str, int]]:
    found = []
    if node.kind in ("d", "f") and node.mode != modes[_kind(node)]:
        found.append((path, node.mode))
    for filename, child in node.children.items():
        found += _odd(child, modes, f"{path}/{filename}" if path else filename)
    return found


def _set_modes(node: Node, modes: Mapping[str, int]) -> None:
    if node.kind != "l":
        node.mode = modes[_kind(node)]
    for child in node.children.values():
        _set_modes(child, modes)


def _kind(node: Node) -> str:
    return "x" if node.kind == "f" and node.mode & 0o100 else node.kind


def _armour(path: str) -> str:
    return urlsafe_b64encode(to_bytes(path)).decode()


def _plain(text: str) -> str:
    return to_text(urlsafe_b64decode(text))
