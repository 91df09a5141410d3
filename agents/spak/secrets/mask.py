"""What to hide from a job: the paths of files of secrets, those of a folder of secrets as one."""

from __future__ import annotations

from collections.abc import Iterable

from spak.secrets import which


def masks(paths: Iterable[str]) -> tuple[str, ...]:
    """What a job does not see: a folder of secrets as a whole."""
    found: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")
        at = next((at for at, name in enumerate(parts[:-1], 1) if which.secret_folder(name)), len(parts))
        found["/".join(parts[:at])] = None
    return tuple(found)
