"""Names that an unprivileged user can reach for folders that only root can.

A clone in root's home, a Python in root's home: both lie below a folder that the sandbox's user may not
enter, so its bwrap could not even name them. A thread goes into a mount namespace of its own, mounts a small
private folder there, and binds each of the paths to a name in it; what the thread starts sees these names.
Nothing else does, this process's other threads included, and nothing has to be taken down: it goes with the
last process that was started there.

(A first bwrap as root did the same and cost 6 ms. Worse, it drops its privileges and then may not kill the
inner one, which has another user: killed with the runner, it left a whole sandbox behind.)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000


def lay(paths: Sequence[str], folder: Path) -> list[str]:
    """A reachable name for each path, in order. The folder must be empty of what this thread needs.

    Only for a thread that does nothing else afterwards: it can't come back. Raises: OSError.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(libc, name)(*arguments) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"{name}: {os.strerror(error)}")

    def mount(source: str, target: str, kind: bytes | None, flags: int, options: bytes | None) -> None:
        call("mount", os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), options)

    call("unshare", _NEW_MOUNTS)
    mount("none", "/", None, _RECURSIVE | _PRIVATE, None)
    mount("spak", str(folder), b"tmpfs", 0, b"mode=0755,size=64k")
    names = []
    for number, path in enumerate(paths):
        name = folder / str(number)
        if Path(path).is_dir():
            name.mkdir()
        else:
            name.touch()
        mount(path, str(name), None, _BIND | _RECURSIVE, None)
        names.append(str(name))
    return names
