"""Files that a run of a platform made, written into a folder.

Takes the list of files and how one is fetched; writes each aside and puts it in its place when it is whole. A
platform is not trusted with names: nothing is written outside of the folder, and no link in it is followed.
Names are such as any system can write (spak.portable), as in the zip that the platform gives.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from spak.client.platform import RemoteFile
from spak.errors import UsageError
from spak.portable import Names

Fetch = Callable[[RemoteFile, IO[bytes]], None]
LONGEST = 4000


def download(files: Iterable[RemoteFile], folder: Path, fetch: Fetch) -> int:
    """Write them; gives how many. Raises: UsageError `client.artifacts`, and what `fetch` raises."""
    count, names = 0, Names()
    for one in files:
        try:
            _write(one, _place(folder, one.name, names), fetch)
        except OSError as error:
            raise _bad(f"{one.name!r}: {error.strerror}") from error
        count += 1
    return count


def _place(folder: Path, name: str, names: Names) -> Path:
    """Where a file goes; its folders are made. Raises: UsageError `client.artifacts`, OSError."""
    parts = name.split("/")
    if not name.isprintable() or len(name) > LONGEST or {"", ".", ".."} & set(parts):
        raise _bad(f"the platform names a file {name[:200]!r}, which would not be in the folder")
    parts = names.of(name).split("/")
    folder.mkdir(parents=True, exist_ok=True)
    here = folder
    for part in parts[:-1]:
        here = here / part
        if here.is_symlink():
            raise _bad(f"{here} is a link")
        here.mkdir(exist_ok=True)
    place = here / parts[-1]
    if place.is_dir() and not place.is_symlink():
        raise _bad(f"{place} is a folder")
    return place


def _write(one: RemoteFile, place: Path, fetch: Fetch) -> None:
    aside = place.with_name(f".spak-{secrets.token_hex(8)}")
    try:
        with aside.open("xb") as opened:
            fetch(one, opened)
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)


def _bad(why: str) -> UsageError:
    return UsageError("client.artifacts", why, "name another folder, or fetch the files on the run's page")
