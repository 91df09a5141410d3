"""Which files of a tree are of secrets, and which hold given contents: what a scan has seen, and no file.

Takes a tree of `spak.workspace.tree`; gives paths. What was found is kept with each folder, so that only what
changed is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spak.secrets import which
from spak.workspace.secret_list import Content
from spak.workspace.tree import Node, at


def secret_files(folder: Node, name: str = "") -> tuple[str, ...]:
    """Paths below a folder of that name that are of secrets by their names (spak.secrets.which) or, where
    they were scanned, by their contents (spak.secrets.contents), in no order."""
    if folder.secrets is None or folder.secrets[0] != name:
        found = set(_files(folder)) if which.secret_folder(name) else set(_inside(folder))
        if name in which.NO_SECRETS_BELOW:
            found = {path for path in found if which.secret(path)}
        for inner, node in folder.children.items():
            if node.kind == "f" and which.secret_below(name, inner):
                found.add(inner)
        if which.keeps_secrets(name):
            found |= {path for path in _files(folder) if not which.is_code(path.rpartition("/")[2])}
        folder.secrets = name, tuple(found)
    return folder.secrets[1]


def _inside(folder: Node) -> Iterator[str]:
    for filename, node in folder.children.items():
        if node.kind == "f":
            if which.secret_name(filename) or (node.holds_secret and which.may_hold(filename)):
                yield filename
        elif node.kind == "d" and not which.of_git(filename):
            yield from (f"{filename}/{path}" for path in secret_files(node, filename))


def secret_contents(root: Node) -> tuple[Content, ...]:
    """What lies in files of secrets, and in no other file of the tree; nothing empty."""
    paths = {path: at(root, path) for path in sorted(secret_files(root))}
    found = {path: node for path, node in paths.items() if node is not None and node.size}
    shown = holding(root, {node.digest: node.size for node in found.values()})
    public = {node.digest for path in shown if path not in found and (node := at(root, path)) is not None}
    return tuple(
        Content(path, node.digest, node.size) for path, node in found.items() if node.digest not in public
    )


def holding(folder: Node, wanted: Mapping[str, int]) -> tuple[str, ...]:
    """Paths of files below a folder whose content is one of these, by digest; fast where it is the same
    mapping again."""
    if folder.holds is None or folder.holds[0] is not wanted:
        found: list[str] = []
        for filename, node in folder.children.items():
            if node.kind == "f" and node.digest in wanted:
                found.append(filename)
            elif node.kind == "d":
                found += [f"{filename}/{path}" for path in holding(node, wanted)]
        folder.holds = wanted, tuple(found)
    return folder.holds[1]


def _files(folder: Node) -> Iterator[str]:
    for filename, node in folder.children.items():
        if node.kind == "f":
            yield filename
        elif node.kind == "d":
            yield from (f"{filename}/{path}" for path in _files(node))
