"""Where the files that ship with SPAK lie: `path("sandbox/seccomp/x86_64.toml")`, `path("specs/examples")`.

A checkout has them at its root, two folders above this package; a wheel carries them in `spak/_data`. This
is the only module that knows of both. `kernel_code` names the code that decides.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from spak.errors import BugError

DECIDING = (
    "canon", "commandline", "costs", "datalog", "diagnostics", "door", "errors", "exclusive", "incoming",
    "kept", "kernel", "lang", "merge", "patch", "paths", "policy", "portable", "program", "records",
    "schema_parts", "secrets", "shell", "templates", "unseen", "word_lists",
)  # fmt: skip
"""The modules of this package that a replay is derived with, and those that they import."""


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


@cache
def kernel_code() -> str:
    """The hash of the code that decides, in hex: that of the list which `sha256sum` prints of its files.

    A record of a run names it. Two installations with the same hash decide alike; with other hashes they may,
    too: a comment changes it.
    """
    package = Path(__file__).resolve().parent
    files = [
        file
        for name in DECIDING
        for file in (package / f"{name}.py", *(package / name).rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    ]
    names = sorted((file.relative_to(package).as_posix(), file) for file in files)
    lines = (f"{sha256(file.read_bytes()).hexdigest()}  {name}\n" for name, file in names)
    return sha256("".join(lines).encode()).hexdigest()
