"""Files below a folder, opened by what the kernel resolves and never by what a path says.

Takes the descriptor walk from the root folder, one component at a time, no component followed as a link by
the kernel: a link is read and its target walked in the same way, so that a link that stays inside works, one
that leaves is refused, and swapping one in between two looks changes nothing (the descriptor that was judged
is the one that is used; the last open refuses links). Writes go to a new file in the same folder, which is
renamed over the name: a hard link to a file elsewhere is cut, not written through.

What a path can do wrong is a UsageError `path.*`; an OSError that is left means that the host is in trouble.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from spak import paths
from spak.errors import UsageError

_JUDGED: ContextVar[Mapping[str, str]] = ContextVar("judged", default=MappingProxyType({}))
"""Where paths led when the action at hand was judged, by their text."""

MAX_LINKS = 40
MAX_READ = 64 << 20

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: an open folder and a name in it that is not a link, or is not there."""

    fd: int
    name: str
    """Empty when the path is the folder itself."""
    parts: tuple[str, ...]
    """From the root, links resolved."""
    linked: bool = False
    """True when the last component was a link."""
    missing: bool = False
    """True when a folder on the way is not there; `fd` is the last one that is."""

    def status(self) -> os.stat_result | None:
        """The status of what is there, or None."""
        if self.missing:
            return None
        if not self.name:
            return os.fstat(self.fd)
        try:
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    @property
    def path(self) -> str:
        """The path from the workspace."""
        return paths.join(self.parts)


@contextmanager
def locate(root: Path, text: str, folders: Literal["must", "make", "may"] = "must") -> Iterator[Place]:
    """The place of a path. Folders on the way must be there, are made, or may be missing.

    Raises: UsageError `path.outside`, `path.loop`, `path.missing`, `path.not_a_folder`, `path.denied`,
    `path.moved` when it leads elsewhere than it did when it was judged (`as_judged`), and what
    `paths.components` raises.
    """
    with _trouble(text), _Walk(root, text, folders) as walk:
        place = walk.place(paths.components(text))
        if _JUDGED.get().get(text, place.path) != place.path:
            raise UsageError(
                "path.moved", f"{text!a} leads elsewhere than when it was permitted", "ask again"
            )
        yield place


@contextmanager
def as_judged(observed: Mapping[str, Any]) -> Iterator[None]:
    """Within it a path that was observed leads where it was seen, or is refused; `observed` are the facts."""
    seen = {item[0]: item[2] for item in observed.get("paths", ()) if item[1] == "inside"}
    token = _JUDGED.set(seen)
    try:
        yield
    finally:
        _JUDGED.reset(token)


def open_beneath(
    root: Path, text: str, flags: int = os.O_RDONLY, mode: int = 0o644
) -> tuple[int, tuple[str, ...]]:
    """A descriptor of the file or folder at the path, and its parts with links resolved.

    Only regular files and folders are opened. Raises: as `locate`; `path.missing`, `path.not_a_file`.
    """
    with locate(root, text) as place, _trouble(text):
        status = place.status()
        if status is None and not flags & os.O_CREAT:
            raise _missing(text)
        if status is not None and stat.S_ISDIR(status.st_mode):
            fd = os.open(place.name or ".", os.O_RDONLY | os.O_DIRECTORY | _FILE, dir_fd=place.fd)
            return fd, place.parts
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise _not_a_file(text)
        fd = os.open(place.name, flags | _FILE, mode, dir_fd=place.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise _not_a_file(text)
        return fd, place.parts


def read_beneath(root: Path, text: str, limit: int = MAX_READ) -> bytes:
    """The content of a regular file. Raises: as `open_beneath`; `path.too_large` beyond the limit."""
    fd, _ = open_beneath(root, text)
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise _not_a_file(text)
    with _trouble(text), os.fdopen(fd, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise UsageError("path.too_large", f"{text!a} has more than {limit} bytes", "read a part of it")
    return data


def content(root: Path, text: str) -> bytes | None:
    """The content of a regular file below the root, None where there is none that can be read."""
    try:
        return read_beneath(root, text)
    except UsageError:
        return None


def write_beneath(root: Path, text: str, data: bytes, mode: int | None = None) -> str:
    """Put a file there, whole or not at all, and give its path with links resolved.

    Folders on the way are made. A new file gets 0644 unless a mode is given, an old one keeps its own; both
    belong to the owner of the root, so that a sandboxed tool may write them again.
    Raises: as `locate`; `path.not_a_file`.
    """
    with locate(root, text, folders="make") as place, _trouble(text):
        status = place.status()
        if not place.name or (status is not None and not stat.S_ISREG(status.st_mode)):
            raise _not_a_file(text)
        if mode is None:
            mode = 0o644 if status is None else stat.S_IMODE(status.st_mode) & 0o777
        aside = f".spak-{secrets.token_hex(8)}"
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=place.fd)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                _give(root, fd)
                os.fchmod(fd, mode)
            os.rename(aside, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except BaseException:
            os.unlink(aside, dir_fd=place.fd)
            raise
        return place.path


def remove_beneath(root: Path, text: str) -> None:
    """Take a regular file away. Raises: as `locate`; `path.missing`, `path.not_a_file`."""
    with locate(root, text) as place, _trouble(text):
        status = place.status()
        if status is None:
            raise _missing(text)
        if not stat.S_ISREG(status.st_mode):
            raise _not_a_file(text)
        os.unlink(place.name, dir_fd=place.fd)


class _Walk:
    """The open folders from the root to where the walk stands; the last is the top."""

    def __init__(self, root: Path, text: str, missing: str) -> None:
        self.root = root
        self.text = text
        self.missing = missing
        self.folders: list[tuple[int, str]] = []

    def __enter__(self) -> _Walk:
        self.folders = [(os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), "")]
        return self

    def __exit__(self, *unused: object) -> None:
        while self.folders:
            os.close(self.folders.pop()[0])

    def place(self, parts: tuple[str, ...]) -> Place:
        queue, links, linked = list(reversed(parts)), 0, False
        while queue:
            part = queue.pop()
            if part == "..":
                self._up()
                continue
            target = self._link(part)
            if target is not None:
                linked = not queue or linked
                links += 1
                if links > MAX_LINKS:
                    raise UsageError("path.loop", f"too many links on the way to {self.text!a}")
                queue.extend(reversed(self._target(target)))
            elif queue and not self._enter(part):
                if ".." in queue:
                    raise _missing(self.text)
                parts = (*self._parts(), part, *reversed(queue))
                return Place(self.folders[-1][0], "", parts, linked, missing=True)
            elif queue:
                continue
            else:
                return Place(self.folders[-1][0], part, (*self._parts(), part), linked)
        return Place(self.folders[-1][0], "", self._parts(), linked)

    def _parts(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.folders[1:])

    def _up(self) -> None:
        if len(self.folders) == 1:
            raise self._outside()
        os.close(self.folders.pop()[0])

    def _link(self, name: str) -> str | None:
        """The target when the name is a link."""
        top = self.folders[-1][0]
        try:
            return os.readlink(name, dir_fd=top)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise

    def _target(self, target: str) -> list[str]:
        """The components of a link's target; from the root when it names the workspace as tools see it."""
        if target.startswith("/"):
            if target != paths.GUEST_ROOT and not target.startswith(paths.GUEST_ROOT + "/"):
                raise self._outside()
            while len(self.folders) > 1:
                os.close(self.folders.pop()[0])
            target = target[len(paths.GUEST_ROOT) :]
        return [part for part in target.split("/") if part not in ("", ".")]

    def _enter(self, name: str) -> bool:
        """Go into the folder; False when there is none and that may be."""
        top = self.folders[-1][0]
        try:
            fd = os.open(name, _FOLDER, dir_fd=top)
        except FileNotFoundError:
            if self.missing == "may":
                return False
            if self.missing == "must":
                raise
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=top)
            fd = os.open(name, _FOLDER, dir_fd=top)
            made = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
            try:
                _give(self.root, made)
                os.fchmod(made, 0o755)
            finally:
                os.close(made)
        self.folders.append((fd, name))
        return True

    def _outside(self) -> UsageError:
        return UsageError(
            "path.outside",
            f"{self.text!a} leads out of the workspace",
            "use files below the workspace; a link to the outside is not followed",
        )


def _give(root: Path, fd: int) -> None:
    """Hand the file to the owner of the root, where we may and need to."""
    owner = root.stat()
    own = os.fstat(fd)
    if os.geteuid() == 0 and (own.st_uid, own.st_gid) != (owner.st_uid, owner.st_gid):
        os.fchown(fd, owner.st_uid, owner.st_gid)


@contextmanager
def _trouble(text: str) -> Iterator[None]:
    """What the system says about a path as UsageError; an error of the host's own passes."""
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(text) from error
    except NotADirectoryError as error:
        raise UsageError("path.not_a_folder", f"a file is on the way to {text!a}") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_a_file(text) from error
        if error.errno in (errno.EACCES, errno.EPERM):
            raise UsageError(
                "path.denied", f"{text!a} may not be opened", "check its owner and mode"
            ) from error
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError("path.too_long", f"{text[:80]!a} is too long a path") from error
        raise


def _missing(text: str) -> UsageError:
    return UsageError("path.missing", f"there is no file {text!a}", "list_files shows what is there")


def _not_a_file(text: str) -> UsageError:
    return UsageError("path.not_a_file", f"{text!a} is not a regular file")
