"""What git ignores of the files of a tree, by the `.gitignore` files of the tree before it.

Takes trees as the door has them, or a folder with its own rules; gives paths. Settings of the machine and of
a user say nothing here. Where there is no git nothing is ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from spak.door import Node
from spak.errors import RunError
from spak.files.scratch import Scratch
from spak.repository.git import Git
from spak.repository.stream import Read

RULES = ".gitignore"
SECONDS, MOST_BYTES = 60.0, 1 << 30
MOST_RULES = 1 << 20
"""Bytes of a file of rules that are read."""


def new_and_ignored(before: Node, after: Node, read: Read) -> Collection[str]:
    """The files that are there after and were not before, as far as git ignores them. Raises: RunError."""
    new = list(_new(before, after, ""))
    rules = (
        {path: node for path, node in _files(before, "") if path.rpartition("/")[2] == RULES} if new else {}
    )
    if not rules:
        return frozenset()
    with Scratch("ignored") as folder:
        for path, node in rules.items():
            if node.kind == "f" and node.size <= MOST_RULES:
                place = folder / "work" / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(read(node.digest))
        git = Git(folder / "git", time.monotonic() + SECONDS, MOST_BYTES)
        try:
            git.begin()
            return ignored(git, folder / "work", new)
        except RunError as error:
            if error.code != "git.missing":
                raise
            return frozenset()


def ignored(git: Git, work: Path, paths: Sequence[str]) -> set[str]:
    """Those that a folder's rules ignore. Raises: RunError `git.*`."""
    given = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)  # no magic of a pathspec
    if not given:
        return set()
    said = git.look(work, "check-ignore", "--no-index", "-z", "--stdin", given=given, accepted=(1,))
    return {os.fsdecode(item[2:]) for item in said.split(b"\0")[:-1]}


def _new(before: Node, after: Node, above: str) -> Iterator[str]:
    """Files that are there after and were not before."""
    for name, node in after.children.items():
        old = before.children.get(name)
        if node is old:
            continue
        if node.kind == "d" and old is not None and old.kind == "d":
            yield from _new(old, node, f"{above}{name}/")
        elif node.kind == "d":
            yield from (path for path, _ in _files(node, f"{above}{name}/"))
        elif old is None or old.kind == "d":
            yield f"{above}{name}"


def _files(folder: Node, above: str) -> Iterator[tuple[str, Node]]:
    for name, node in folder.children.items():
        if node.kind == "d":
            yield from _files(node, f"{above}{name}/")
        else:
            yield f"{above}{name}", node
