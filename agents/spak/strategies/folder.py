"""A typed request in a folder, as a Situation: what its target is, how many files there are, one of tests.

Takes a folder, a verb with its category and a target as it was typed; reads names, and of at most two files
their content for its hash. It decides nothing.
"""

from __future__ import annotations

from pathlib import Path

from spak import canon, paths
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import walk
from spak.strategies.situation import File, Situation
from spak.world import scan
from spak.world.languages import language_of

MOST, DEPTH = 200_000, 64
SCHEMAS, MANAGE = (".sql",), "manage.py"
SHOWN = 100
"""Characters of a target that a message has."""


def look(folder: Path, verb: str, category: str, target: str) -> Situation:
    """The situation. `target` may name a test of a file: `FILE::TEST`.

    Raises: UsageError `ask.target` for a target outside of the folder, `ask.too_large`.
    """
    path = target.partition("::")[0]
    count, tests = 0, ""
    for entry in walk(folder, ".", DEPTH, lambda inner: scan.skipped(folder, inner)):
        if entry.kind != "file" or entry.name.startswith("."):
            continue
        count += 1
        if count > MOST:
            raise UsageError("ask.too_large", f"more than {MOST} files", "name a smaller folder: --workspace")
        if tests or not language_of(entry.name) or not scan.is_test(entry.path):
            continue
        if entry.path.isprintable() and (folder / entry.path).is_file():  # neither a pipe nor an odd name
            tests = entry.path
    where, kind = _kind(folder, path)
    named = where if kind in ("test_file", "source_file", "models") else ""
    rows = [
        _row(folder, name) for name in dict.fromkeys((named, "" if kind == "test_file" else tests)) if name
    ]
    return Situation(verb, category, where, kind, count, tuple(rows))


def _kind(folder: Path, target: str) -> tuple[str, str]:
    """The path of a target from the folder, and what it is."""
    if not target:
        return "", "none"
    try:
        found = (folder / target).resolve()
        inside = found.relative_to(folder.resolve()).as_posix()
        is_folder, is_file = found.is_dir(), found.is_file()
    except (OSError, RuntimeError, ValueError):  # a path that is too long, a circle of links, a zero byte
        shown = repr(target if len(target) <= SHOWN else f"{target[:SHOWN]}...")
        raise UsageError(
            "ask.target", f"{shown} is no path in the folder", "name a path below --workspace"
        ) from None
    if is_folder:
        return inside, "folder"
    if not is_file:
        return "/".join(paths.normalise(target)), "missing"
    if found.suffix in SCHEMAS:
        return inside, "schema"
    if not language_of(found.name):
        return inside, "other_file"
    if scan.is_test(inside):
        return inside, "test_file"
    return inside, "models" if manage_of(folder, inside) else "source_file"


def manage_of(folder: Path, path: str) -> str:
    """The manage.py of the Django project that a file belongs to as its models; empty of other files."""
    file = Path(path)
    if file.name not in ("models.py", MANAGE) and not (file.suffix == ".py" and file.parent.name == "models"):
        return ""
    found = (parent / MANAGE for parent in file.parents if (folder / parent / MANAGE).is_file())
    return next(found, Path()).as_posix().removeprefix(".")


def _row(folder: Path, path: str) -> File:
    data = beneath.read_beneath(folder, path)
    modified = int((folder / path).stat().st_mtime)
    return File(path, canon.digest(data), language_of(path), modified, scan.is_test(path))
