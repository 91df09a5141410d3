"""What differs between two roots of a workspace, read from the lists of the folders that differ and no
others.

Takes what reads an object by its digest; gives paths with what they were and are. It needs no store that is
whole: `spak.workspace.tree.load` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spak.workspace.tree import entries


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a folder's list: kind d, f, x (executable) or l."""

    kind: str
    digest: str
    size: int


def differing(
    read: Callable[[str], bytes], old: str, new: str, path: str = ""
) -> Iterator[tuple[str, Entry | None, Entry | None]]:
    """Files and links that are not the same below two roots, in order of their names, with how they were and
    are. An empty root is one without anything. Raises: what `read` does."""
    before, after = _listed(read, old), _listed(read, new)
    for filename in sorted({*before, *after}):
        pair = before.get(filename), after.get(filename)
        if pair[0] == pair[1]:
            continue
        here = f"{path}{filename}"
        folders = [one.digest if one is not None and one.kind == "d" else "" for one in pair]
        if any(folders):
            yield from differing(read, folders[0], folders[1], f"{here}/")
        was, now = (one if one is not None and one.kind != "d" else None for one in pair)
        if was is not None or now is not None:
            yield here, was, now


def _listed(read: Callable[[str], bytes], digest: str) -> dict[str, Entry]:
    if not digest:
        return {}
    return {filename: Entry(kind, of, size) for kind, of, size, filename in entries(read(digest))}
