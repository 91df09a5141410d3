"""Which tests the changes of a folder need, for the option `tests: affected` of PyTest.

Takes a folder and the paths in it that changed; gives the files whose tests need not run. A file depends on a
Python file whose name it holds as a word, in an import, a string or anywhere, and on what that one depends
on: code that reaches a module by any other way computes its name. `conftest.py` and `__init__.py` stand for
all that is below their folder. A change of another kind of file, a new or a removed one leads to all tests.

Where the folder is a copy of one with a recording of coverage, it gives tests instead: those that neither ran
what differs from the recorded text, nor are in a file that depends on what the recording cannot judge. A test
without a recording always runs.

It asks for names and not for the edges between functions (`spak.world.rank`): fixtures, decorators,
registries and code that runs at import lead further than these show, and a test that is left out by mistake
costs more than one that runs for nothing.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from spak.cancel import Cancel, check
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import walk
from spak.paths import CODE, OURS
from spak.world import rank, scan
from spak.world.selection import recorded
from spak.world.selection.recording import File, Recording
from spak.world.store import Store

MAX_FILES = 20_000
MAX_FILE_BYTES = 2 << 20
SHOWN = 20
FOR_FOLDER = ("conftest.py", "__init__.py")
SETTINGS = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")
"""Where pytest takes its options from; a module that one of them names is loaded for every test."""
_SKIPPED = frozenset({".git", "__pycache__", "node_modules"})
_WORD = re.compile(r"\w+")


class Affected(NamedTuple):
    """The files and tests that may be left out, and what the record says of the choice."""

    left: tuple[str, ...]
    selection: Mapping[str, object]


def affected(
    folder: Path,
    changes: Mapping[str, bytes | None],
    cancel: Cancel | None = None,
    original: Path | None = None,
) -> Affected:
    """What to leave out. `changes` has what each file held before, None where it was not there; `original` is
    the folder that may have a recording. Raises: Cancelled."""
    if not changes:
        return _all("nothing changed")
    for path, before in changes.items():
        if not path.endswith(".py") or not path.isprintable():
            return _all(f"{path!a} may concern any test")
        if before is None or not (folder / path).is_file():
            return _all(f"{path!a} is new or gone")
    try:
        words = _words(folder, cancel)
    except (OSError, UsageError) as error:
        return _all(f"the folder cannot be read whole: {error}")
    if len(words) > MAX_FILES:
        return _all(f"there are over {MAX_FILES:,} files")
    by = _by_recording(folder, words.keys(), changes, original) if original is not None else None
    settings = {word for name in SETTINGS for word in _of(folder, name) or ()}
    reached = _reached(words, set(changes) if by is None else by.unknown)
    for path in sorted(reached):
        if not settings.isdisjoint(_names(path)) and path.rpartition("/")[2] not in FOR_FOLDER:
            return _all(f"the settings of pytest name {path!a}")
    if by is not None:
        return by.affected(reached, changes)
    left = tuple(sorted(words.keys() - reached))
    shown = {"rule": "names", "changed": sorted(changes)[:SHOWN], "files": len(words) - len(left)}
    return Affected(left, shown)


class _ByRecording(NamedTuple):
    """What a recording says of a folder: all tests that it knows, those that ran what differs, and the files
    for which names decide, with the reasons."""

    tests: frozenset[str]
    chosen: set[str]
    unknown: set[str]
    without: list[str]

    def affected(self, reached: set[str], changes: Mapping[str, bytes | None]) -> Affected:
        """What to leave out: tests, since others of their files may be new."""
        left = {rank.node(test) for test in self.tests - self.chosen}
        left = {test for test in left if test.partition("::")[0] not in reached}
        shown = {
            "rule": "recorded" if not self.unknown else "recorded and names",
            "changed": sorted(changes)[:SHOWN],
            "recorded": len(self.chosen),
            "left": len(left),
            "by_names": sorted(self.without)[:SHOWN],
        }
        return Affected(tuple(sorted(left)), shown)


def _by_recording(
    folder: Path, paths: Iterable[str], changes: Mapping[str, bytes | None], original: Path
) -> _ByRecording | None:
    """What differs from the recorded texts, now or where the run began; None without a recording."""
    if not (original / OURS / CODE).is_file():
        return None
    try:
        store = Store(original / OURS / CODE)
    except UsageError:
        return None
    with closing(store):
        try:
            recording = Recording(store, original)
            if not recording:
                return None
            found = _ByRecording(recording.tests, set(), set(), [])
            for path in sorted({*paths, *recording.hashes}):
                now = beneath.content(folder, path)
                for data in {now, changes.get(path, now)}:
                    if data is None or recording.hashes.get(path) != _hash(data):
                        _compared(found, recording.file(path), path, data)
        except (UsageError, ValueError, zlib.error):  # it is a cache, and this one is damaged
            return None
    return found


def _compared(found: _ByRecording, file: File | None, path: str, data: bytes | None) -> None:
    """One text of a file that is not the recorded one."""
    if file is None or data is None or scan.is_test(path):
        found.unknown.add(path)
        found.without.append(f"{path}: {'a file of tests' if scan.is_test(path) else recorded.UNKNOWN}")
        return
    for piece in recorded.pieces(file, data.decode("utf-8", "replace")):
        found.chosen.update(piece.tests)
        if piece.why:
            found.unknown.add(path)
            found.without.append(f"{path}:{piece.line}: {piece.why}")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def _all(reason: str) -> Affected:
    return Affected((), {"rule": "all", "reason": reason})


def _reached(words: Mapping[str, frozenset[str] | None], changed: set[str]) -> set[str]:
    """The files that depend on files, and these."""
    holding: dict[str, set[str]] = defaultdict(set)
    unknown = {path for path, found in words.items() if found is None}
    names = {name for path in words for name in _names(path)}
    for path, found in words.items():
        for name in names & (found or frozenset()):
            holding[name].add(path)
    reached, front = set(changed), [*changed]
    while front:
        path = front.pop()
        near = {other for name in _names(path) for other in holding[name]} | unknown
        folder, _, name = path.rpartition("/")
        if name in FOR_FOLDER:
            near |= {other for other in words if not folder or other.startswith(f"{folder}/")}
        front += near - reached
        reached |= near
    return reached


def _names(path: str) -> set[str]:
    """The words of the name by which a file is imported or started: its own, or its folder's."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".py")
    if stem in ("__init__", "__main__"):
        stem = folder.rpartition("/")[2] or stem
    return set(_WORD.findall(unicodedata.normalize("NFKC", stem)))


def _words(folder: Path, cancel: Cancel | None) -> dict[str, frozenset[str] | None]:
    """The words of each Python file; None of one that cannot be read. Raises: OSError, UsageError."""
    found: dict[str, frozenset[str] | None] = {}
    for entry in walk(folder, ".", skip=lambda path: path.rpartition("/")[2] in _SKIPPED):
        if entry.kind == "folder" and entry.trouble:
            raise UsageError("world.unreadable", entry.trouble)
        if entry.kind != "folder" and entry.name.endswith(".py") and len(found) <= MAX_FILES:
            check(cancel)
            found[entry.path] = _of(folder, entry.path)
    return found


def _of(folder: Path, path: str) -> frozenset[str] | None:
    try:
        text = beneath.read_beneath(folder, path, MAX_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, UsageError):
        return None
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text)))
