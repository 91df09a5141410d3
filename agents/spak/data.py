"""Where the files that ship with SPAK lie: `path("sandbox/seccomp/x86_64.toml")`, `path("specs/examples")`.

A checkout has them at its root, two folders above this package; a wheel carries them in `spak/_data`. This
is the only module that knows of both.
"""

from __future__ import annotations

from pathlib import Path

from spak.errors import BugError


def path(name: str) -> Path:
    """The shipped file or folder of that name, relative to the root of the project.

    Raises: BugError `bug.data` when it did not ship.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_data", package.parents[1]):
        found = root / name
        if found.exists():
            return found
    raise BugError("bug.data", f"{name} did not ship with spak", "install spak again")


def law(item: str) -> Path | None:
    """The law of specs/laws that `spak:NAME` names; None for any other text. It need not exist."""
    name = item.removeprefix("spak:")
    return None if name == item else path("specs/laws") / f"{Path(name).name}.mg"
