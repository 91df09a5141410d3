"""Files of a folder as a zip, for a run on a platform.

Takes a folder; gives what git knows of it (tracked files, and untracked ones that it does not ignore), or
every file where it is in no work tree; never `.git` and `.spak`. A work tree that git cannot list is refused:
sent whole, it would show what git ignores. The same files give the same bytes. Links and devices are refused:
what a link names may not be what was looked at.
"""

from __future__ import annotations

import os
import stat
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from spak.errors import UsageError

LEFT_OUT = frozenset({".git", ".spak"})
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
_SAME_DAY = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, into: IO[bytes]) -> int:
    """Write the archive; gives how many files are in it. Raises: UsageError `client.files`."""
    if not folder.is_dir():
        raise UsageError(
            "client.files", f"{folder} is not a folder", "name the folder that the run shall work on"
        )
    count = 0
    try:
        with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
            listed = _by_git(folder)
            for name in sorted(set(_all(folder) if listed is None else listed)):
                count += LEFT_OUT.isdisjoint(name.split("/")) and _add(archive, folder, name)
    except OSError as error:
        named = error.filename or folder
        raise UsageError(
            "client.files", f"{named}: {error.strerror}", "check the path and its rights"
        ) from error
    if not count:
        hint = "git ignores what is in it, or it is empty: name another folder, or leave it out"
        raise UsageError("client.files", f"{folder} holds no file to send", hint)
    return count


def _add(archive: zipfile.ZipFile, folder: Path, name: str) -> bool:
    """Whether there is such a file: git lists deleted ones too."""
    try:
        fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        if (folder / name).is_symlink():
            raise _special(name) from error
        raise
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise _special(name)
    with os.fdopen(fd, "rb") as file:
        try:
            about = zipfile.ZipInfo(name.encode("utf-8", "strict").decode(), _SAME_DAY)
        except UnicodeEncodeError as error:
            hint = "rename the file, or take it out of the folder"
            raise UsageError("client.files", f"{name!r} is not UTF-8", hint) from error
        about.external_attr = (stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)) << 16
        about.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(about, "w", force_zip64=True) as entry:
            while data := file.read(1 << 20):
                entry.write(data)
    return True


def _special(name: str) -> UsageError:
    hint = "put the file itself there, or have git ignore it"
    return UsageError("client.files", f"{name!r} is a link, a submodule or a device", hint)


def _by_git(folder: Path) -> list[str] | None:
    """What git lists below the folder; None outside of a work tree. Raises: UsageError `client.files`."""
    words = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *_LIST]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        why = f"git: {error.strerror}"
    else:
        if done.returncode == 0:
            return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
        why = done.stderr.decode(errors="replace").strip().partition("\n")[0]
    here = folder.resolve()
    if not any((place / ".git").exists() for place in (here, *here.parents)):
        return None
    hint = "`git status` there says more; without git, send a copy of the files that has no .git above it"
    raise UsageError("client.files", f"git does not list {folder}: {why}", hint)


def _all(folder: Path) -> Iterator[str]:
    def fails(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=fails):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        here = Path(place).relative_to(folder)
        linked = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (str(here / name) for name in (*names, *linked))
