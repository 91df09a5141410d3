"""Whether anything changed in a folder since the last look, without reading it: inotify(7).

Takes a folder; gives yes or no. A change that the kernel does not report (a write through mapped memory,
after its file was closed) is not seen: whoever has to know for certain looks itself. Where the kernel
grants no more watches the answer is yes.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from spak.repository.scratch import GIT

_MODIFY, _ATTRIB, _CLOSE_WRITE, _FROM, _TO, _CREATE, _DELETE, _SELF = (
    0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200, 0x400 | 0x800,
)  # fmt: skip
_ONLY_FOLDERS, _NO_LINKS, _IS_FOLDER = 0x1000000, 0x2000000, 0x40000000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _FROM | _TO | _CREATE | _DELETE | _SELF | _ONLY_FOLDERS | _NO_LINKS
_CHUNK = 1 << 16


class Watch:
    """Of one folder, but for git's own at its top."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, bytes] = {}
        self.blind: bool = self._fd < 0
        """Nothing is known: every answer is yes."""
        self._add(self._folder)

    def changed(self) -> bool:
        """Whether anything did since the last call."""
        found, folders = self.blind, set[bytes]()
        while not self.blind:
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                break
            at, found = 0, True
            while at < len(data):
                watch, mask, _, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + size].rstrip(b"\0")
                at += 16 + size
                if mask & _IS_FOLDER and mask & (_CREATE | _TO):
                    folders.add(self._paths.get(watch, self._folder) + b"/" + name)
                elif watch < 0:  # events were lost
                    folders.add(self._folder)
        for folder in folders:
            self._add(folder)
        return found

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
