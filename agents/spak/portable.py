"""Names of files for any system: what a folder on Linux holds, as Windows and macOS can write it too.

`Names().of(path)` takes a path with slashes and gives one; other paths get other names, also where a system
does not tell capitals or ways to write an accent apart. What is fine everywhere stays as it is. It knows
nothing of what is on a disk.
"""

from __future__ import annotations

import unicodedata

_NEVER = frozenset('<>:"\\|?*')
_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
    | {f"{name}{number}" for name in ("COM", "LPT") for number in "0123456789\u00b9\u00b2\u00b3"}
)
"""Names that Windows keeps for itself, with any ending."""
_ROOM = 200
"""Bytes of a name that is counted on, so that there is room for the count."""


class Names:
    """The names that were given so far."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, path: str) -> str:
        """The name for a path; for the same path the same."""
        at, found = "", ""
        for part in path.split("/"):
            at = f"{at}/{part}"
            if at not in self._given:
                self._given[at] = self._fresh(found, part)
            found = f"{found}/{self._given[at]}" if found else self._given[at]
        return found

    def fresh(self, path: str) -> str:
        """A name for something that is called so too: none that was given, or is given later."""
        folder, _, part = path.rpartition("/")
        folder = self.of(folder) if folder else ""
        name = self._fresh(folder, part)
        return f"{folder}/{name}" if folder else name

    def _fresh(self, folder: str, part: str) -> str:
        """A name that nothing else in the folder has."""
        name = wanted = plain(part)
        count = 1
        while (key := _key(f"{folder}/{name}")) in self._taken:
            count += 1
            stem, dot, ending = wanted.rpartition(".")
            if not stem:
                stem, dot, ending = wanted, "", ""
            short = stem.encode()[:_ROOM].decode(errors="ignore")
            name = f"{short} ({count}){dot}{ending}"
        self._taken.add(key)
        return name


def plain(part: str) -> str:
    """A name without what some system takes for something else."""
    name = "".join("_" if sign in _NEVER or not sign.isprintable() else sign for sign in part)
    bare = name.rstrip(". ")
    name = bare + "_" * (len(name) - len(bare))
    if name.split(".", 1)[0].rstrip().upper() in _DEVICES:
        name = f"_{name}"
    return name or "_"


def _key(path: str) -> str:
    """The same for names that some system takes for one. Source: Unicode 3.13, D146."""
    folded = unicodedata.normalize("NFD", path).casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", folded))
