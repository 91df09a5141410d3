"""An ordinary user, as whom an attack or its victim runs; a process becomes one and cannot go back.

Takes a number of a user that root may take. It decides nothing, and mounts nothing that others see.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_NEW_MOUNTS, _BIND, _PRIVATE = 0x20000, 0x1000, 0x44000
"""CLONE_NEWNS; MS_BIND; MS_PRIVATE and MS_REC. Source: mount(2)."""


def become(uid: int) -> None:
    """An ordinary user, who may read this Python wherever it lies."""
    _open_way(Path(sys.prefix), Path(sys.base_prefix))
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _open_way(*places: Path) -> None:
    """In a mount namespace of this process, folders on the way to these places that others may not enter
    have nothing but the way. Raises: OSError where root may not mount here."""
    closed: dict[Path, list[Path]] = {}
    for place in places:
        above = [folder for folder in place.parents if not folder.stat().st_mode & 0o001]
        if above:
            closed.setdefault(above[-1], []).append(place)
    if closed:
        _libc("unshare", _NEW_MOUNTS)
        _libc("mount", b"none", b"/", None, _PRIVATE, None)
    for folder, below in closed.items():
        held = {place: os.open(place, os.O_PATH) for place in below}
        _libc("mount", b"none", os.fsencode(folder), b"tmpfs", 0, b"mode=755")
        for place, fd in held.items():
            place.mkdir(parents=True, mode=0o755)
            _libc("mount", b"/proc/self/fd/%d" % fd, os.fsencode(place), None, _BIND, None)
            os.close(fd)


def _libc(name: str, *words: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*words):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
