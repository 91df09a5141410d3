"""What a server on standard input and output is: its program, the files that its command names, its package.

Takes a command line and the folder of the project; gives hashes and a version. It starts nothing. A package's
other files are known by its version alone.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from spak import canon
from spak.errors import UsageError
from spak.inputs import open_input

RUNNERS = frozenset({"npx", "bunx", "uvx"})
"""Programs that fetch another one and run it."""
MAX_FILE = 512 << 20
_VERSION = re.compile(r".+(@|==)\d")


def program(word: str, folder: Path, known: Mapping[str, str]) -> Path:
    """The file of a program; `known` are those of the toolchain. Raises: UsageError `mcp.program`."""
    found = folder / word if "/" in word else None
    path = known.get(word) or (found if found is not None and found.is_file() else shutil.which(word))
    if path is None:
        raise UsageError("mcp.program", f"there is no program {word!a}", "install it, or name its file")
    return Path(path).absolute()


def judge(argv: Sequence[str]) -> None:
    """Raises: UsageError `mcp.version` for a command that fetches whatever is the newest."""
    runner = Path(argv[0]).name
    if runner not in RUNNERS:
        return
    package = next((word for word in argv[1:] if not word.startswith("-")), "")
    if not _VERSION.fullmatch(package) and not _VERSION.match(package):
        message = f"{runner} would fetch whatever version of {package or 'a package'} there is"
        hint = f"install it and name its program, or name a version: {runner} {package or 'PACKAGE'}@1.2.3"
        raise UsageError("mcp.version", message, hint)


def files(argv: Sequence[str], folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """The hash of the program, and of each file that another word names. Raises: UsageError `mcp.program`."""
    found = {argv[0]: _hash(program(argv[0], folder, known))}
    for word in argv[1:]:
        if (path := named(word, folder)) is not None and path.is_file():
            found[word] = _hash(path)
    return found


def named(word: str, folder: Path) -> Path | None:
    """The file or folder of the project that a word of a command names, if it names one."""
    path = folder / word
    try:
        return path.absolute() if word and not word.startswith("-") and path.exists() else None
    except (OSError, ValueError):
        return None


def packages(argv: Sequence[str], folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """The package that the program comes from, with its version; empty where it comes from none."""
    path = program(argv[0], folder, known)
    for above in path.resolve().parents:
        about = above / "package.json"
        if above.parent.name == "node_modules" or above.parent.parent.name == "node_modules":
            try:
                found = json.loads(about.read_text(encoding="utf-8"))
                return {str(found["name"]): str(found["version"])}
            except (OSError, ValueError, KeyError, TypeError):
                break
    places = sorted(map(str, path.parent.parent.glob("lib/python3*/site-packages")))
    for one in metadata.distributions(path=places) if places else ():
        if any(point.name == path.name for point in one.entry_points if point.group == "console_scripts"):
            return {one.metadata["Name"]: one.version}
    return {}


def _hash(path: Path) -> str:
    """Raises: UsageError `mcp.program`."""
    try:
        with open_input(path) as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(
            "mcp.program", f"{path.name} cannot be read: {error.strerror or error}", "fix its permissions"
        ) from error
    if len(data) > MAX_FILE:
        raise UsageError("mcp.program", f"{path.name} has more than {MAX_FILE} bytes", "name a smaller file")
    return canon.digest(data)
