"""Where the user's environments hold a copy of the project: it may be of a later version, mended already.

Takes the workspace and the folder that it is a copy of, which shows its environments; gives paths below the
workspace for a launcher to mask. A copy is known by its name: what a program imports from the top of the
project, from a folder with its own settings of a build, or from their `src`. It opens no file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_BUILT = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})
_NOT_CODE = frozenset({"tests", "test", "docs", "doc", "examples", "scripts", "setup", "conftest"})


def copies(workspace: Path, original: Path) -> Iterator[str]:
    """The modules and packages of environments that have the name of one of the project."""
    own: set[str] = set()
    places: list[str] = []
    for folder, folders, files in os.walk(workspace):
        below = os.path.relpath(folder, workspace)
        folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__", "node_modules"))
        if below == "." or not _BUILT.isdisjoint(files):
            own |= _names(Path(folder)) | _names(Path(folder, "src"))
        elif not folders and not files:
            places += _libraries(original, below)
    for place in places:
        for name in _listed(original / place):
            if name == "__pycache__":
                compiled = _listed(original / place / name)
                yield from (f"{place}/{name}/{one}" for one in compiled if one.partition(".")[0] in own)
            elif name.partition(".")[0].partition("-")[0] in own and not name.endswith("-info"):
                yield f"{place}/{name}"


def _listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _names(folder: Path) -> set[str]:
    """What can be imported from a folder."""
    found = set()
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.suffix == ".py" or (path.is_dir() and next(path.rglob("*.py"), None)):
            found.add(path.name.partition(".")[0])
    return found - _NOT_CODE


def _libraries(original: Path, below: str) -> list[str]:
    """The folders of installed packages of an environment."""
    found = (original / below).glob("lib*/*/*-packages")
    return sorted(
        {str(path.resolve().relative_to(original.resolve())) for path in found if _inside(path, original)}
    )


def _inside(path: Path, original: Path) -> bool:
    return path.is_dir() and path.resolve().is_relative_to(original.resolve())
