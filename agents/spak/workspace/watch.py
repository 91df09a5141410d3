"""What changed in a folder since the last look, without reading it: inotify(7).

Takes a folder; gives yes or no, or the folders below it. A change that the kernel does not report (a write
through mapped memory, after its file was closed) is not seen: code that has to know for certain looks itself.
Where the kernel grants no more watches the answer is yes.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from spak.repository.scratch import GIT

_MODIFY, _ATTRIB, _CLOSE_WRITE, _FROM, _TO, _CREATE, _DELETE, _SELF = (
    0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200, 0x400 | 0x800,
)  # fmt: skip
_ONLY_FOLDERS, _NO_LINKS, _IS_FOLDER = 0x1000000, 0x2000000, 0x40000000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _FROM | _TO | _CREATE | _DELETE | _SELF | _ONLY_FOLDERS | _NO_LINKS
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Dirty:
    """Where something changed, as paths below the folder."""

    above: frozenset[str]
    """The folders, and those that they are in."""
    whole: frozenset[str]
    """Folders that came: all below them may be other than it was."""
    written: frozenset[str]
    """Files that were written by these names."""

    @classmethod
    def of(cls, folders: set[bytes], whole: set[bytes], written: set[bytes], top: bytes) -> Dirty:
        """The same of paths as the kernel has them."""

        def named(paths: set[bytes]) -> set[str]:
            return {path[len(top) + 1 :].decode("utf-8", "surrogateescape") for path in paths}

        above = named(folders | whole)
        for path in tuple(above):
            while path := path.rpartition("/")[0]:
                above.add(path)
        return cls(frozenset(above), frozenset(named(whole)), frozenset(named(written)))


class Watch:
    """Of one folder, but for git's own at its top."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, bytes] = {}
        self.blind: bool = self._fd < 0
        """Nothing is known: every answer is yes."""
        self._folders, self._whole, self._written = set[bytes](), set[bytes](), set[bytes]()
        self._moved: dict[int, bytes] = {}
        self._lost = False
        self._add(self._folder)

    def changed(self) -> bool:
        """Whether anything did since the last call."""
        self._read()
        found = self.blind or self._lost or bool(self._folders)
        self._forget()
        return found

    def quiet(self) -> bool:
        """Whether nothing has changed since `changed` or `take`."""
        self._read()
        return not (self.blind or self._lost or self._folders)

    def take(self) -> Dirty | None:
        """What changed since the last call; None where that is not known."""
        self._read()
        known = not (self.blind or self._lost)
        found = Dirty.of(self._folders, self._whole, self._written, self._folder) if known else None
        self._forget()
        return found

    def _forget(self) -> None:
        self._folders, self._whole, self._written = set(), set(), set()
        self._moved.clear()
        self._lost = False

    def _read(self) -> None:
        """Take what the kernel has to say; folders that came are watched too."""
        came = set[bytes]()
        while not self.blind:
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                watch, mask, cookie, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + size].rstrip(b"\0")
                at += 16 + size
                folder = self._paths.get(watch)
                if folder is None or (mask & _SELF and folder == self._folder):
                    self._lost = True  # events were lost, or it is not known of what they speak
                    came.add(self._folder)
                    continue
                self._folders.add(folder)
                path = folder + b"/" + name
                if mask & _IS_FOLDER and mask & (_CREATE | _TO):
                    came.add(path)
                elif name and not mask & _IS_FOLDER:
                    self._note(path, mask, cookie)
        self._whole |= came
        for folder in came:
            self._add(folder)

    def _note(self, path: bytes, mask: int, cookie: int) -> None:
        """A file was written, or has another name."""
        if mask & (_MODIFY | _CLOSE_WRITE):
            self._written.add(path)
        elif mask & _FROM:
            self._moved[cookie] = path
        elif mask & _TO and (old := self._moved.pop(cookie, None)) in self._written:
            self._written.discard(old or b"")
            self._written.add(path)

    def close(self) -> None:
        """Watch no more."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self.blind = -1, True

    def _add(self, top: bytes) -> None:
        waiting = [top]
        while waiting and not self.blind:
            folder = waiting.pop()
            number = self._libc.inotify_add_watch(self._fd, folder, _MASK)
            if number < 0:
                self.blind = Path(os.fsdecode(folder)).is_dir()
                continue
            self._paths[number] = folder
            try:
                with os.scandir(folder) as entries:
                    waiting += [
                        entry.path
                        for entry in entries
                        if entry.is_dir(follow_symlinks=False)
                        and (folder != self._folder or entry.name != os.fsencode(GIT))
                    ]
            except OSError:
                self.blind = True
