"""What of a user's folder a run's copy holds, and what of it is only shown or left out.

Takes a folder and the settings `[workspace]`; gives names, and opens none of the files. In a repository these
are the files that git tracks, or would track, and that exist: uncommitted and untracked work is included,
ignored files are not. Repositories below (submodules, clones) are asked in turn. git runs on the host and
obeys no program of the repository: no filter, hook or monitor, and nothing is fetched. Elsewhere it is all
but `.spak` and the folders of dependencies. `.git` is never brought.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePosixPath

from spak.errors import RunError, UsageError
from spak.files.faults import SHORT
from spak.paths import OURS
from spak.repository.git import Git
from spak.repository.scratch import GIT
from spak.secrets import which
from spak.workspace.tree import MAX_DEPTH, Bounds

READONLY = (".venv", "venv", "node_modules")
SCRATCH = ("node_modules/.cache", ".vite", "target", "build")
GIT_S = 120.0
"""Seconds that git has to list a folder."""
MOST_BYTES = 1 << 30
"""Bytes of names that git may print."""
_SHUT = re.compile(r"could not open directory '(.*?)/?': Permission denied")
_NO_REPOSITORY = "not a git repository"

Names = dict[str, "Names | None"]
"""What is below a folder: a folder's own names, None for all else."""


WAIT_S = 10.0
"""Where [workspace] says nothing."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The settings `[workspace]`: paths and names of folders below the folder that is copied.

    Raises: UsageError `usage.config` for one that leads elsewhere.
    """

    bring: tuple[str, ...] = ()
    """Patterns of ignored files that are brought all the same."""
    readonly: tuple[str, ...] = READONLY
    """Ignored folders, by name or path, that are shown read-only."""
    only: tuple[str, ...] = ()
    """The paths that are brought; all where there are none."""
    scratch: tuple[str, ...] = SCRATCH
    """Ignored folders, by name or path, that are empty and writable."""
    home: str = ""
    """The user's, where git finds their own list of what to ignore."""
    bounds: Bounds = field(default_factory=Bounds)
    wait_s: float = WAIT_S
    """How long a run waits for whatever still works in its workspace."""

    def __post_init__(self) -> None:
        for path in (*self.bring, *self.readonly, *self.only, *self.scratch):
            odd = not isinstance(path, str) or not path.strip("/.") or "\0" in path
            if odd or path.startswith("/") or ".." in path.split("/"):
                raise UsageError(
                    "usage.config",
                    f"[workspace] names {path!r}, which is not below the folder",
                    "paths such as `build/generated`, relative to the folder",
                )


USUAL = Wanted()


@dataclass(frozen=True, slots=True)
class Brought:
    """The names of a copy: `files` by folder; `shown` and `scratch` are folders of the original that the copy
    has empty, `left_out` the topmost files and folders that it has not."""

    files: Names
    shown: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def choose(source: Path, wanted: Wanted) -> Brought:
    """What is brought of a folder. Raises: RunError `git.*`, `workspace.unreadable`."""
    listed = _of_git(source, wanted)
    if listed is None:
        listed = _without_git(source, wanted)
    paths, ignored = listed
    names: Names = {}
    for path in (*paths, *_asked_for(source, wanted.bring)):
        if _is_plain(path):
            _add(names, path)
    shown = tuple(path for path in ignored if _named(path, wanted.readonly) and _is_folder(source / path))
    scratch = tuple(path for path in ignored if path not in shown and _named(path, wanted.scratch))
    scratch = tuple(path for path in scratch if _is_folder(source / path) and not _holds(names, path))
    inner = tuple(path for path in _below(shown, wanted.scratch) if _is_folder(source / path))
    for path in (*shown, *scratch, *inner):
        _add(names, path, {})
    left = [path for path in ignored if path not in shown and path not in scratch and not _holds(names, path)]
    return Brought(names, shown, (*scratch, *inner), _topmost(left))


def _of_git(source: Path, wanted: Wanted) -> tuple[list[str], list[str]] | None:
    """Paths to bring, and ignored ones; None where the folder belongs to no repository."""
    try:
        found = _listed(source, wanted, wanted.only, 0)
    except RunError as error:
        here = source.resolve()
        marks = ((place / GIT, place / GIT / "HEAD") for place in (here, *here.parents))
        broken = any(top.is_file() or head.exists() for top, head in marks)
        none = error.code == "git.missing" or (error.code == "git.failed" and _NO_REPOSITORY in error.message)
        if none and not broken:
            return None
        raise
    if not found[0] and not wanted.only and not (source / GIT).exists() and any(source.iterdir()):
        return None  # a folder that the repository around it ignores
    return found


def _listed(source: Path, wanted: Wanted, only: tuple[str, ...], depth: int) -> tuple[list[str], list[str]]:
    git = _UsersGit(source, time.monotonic() + GIT_S, MOST_BYTES, home=wanted.home)
    words = ("ls-files", "-z", "--exclude-standard")
    paths, ignored = [], []
    dependency = cache(partial(_dependency, readonly=wanted.readonly))
    folders = cache(partial(_folders, source))
    for line in _split(git.local(*words, "-t", "-c", "-o", "--", *only)):
        kind, path = line[:1], line[2:]
        above, _, name = path.rpartition("/")
        if kind == "?" and (found := dependency(above if name else above.rpartition("/")[0])):
            ignored.append(found)
        elif not name or name in folders(above):
            below = _listed(source / path, wanted, (), depth + 1) if depth < MAX_DEPTH else ([], [])
            paths += [f"{path.rstrip('/')}/{one}" for one in below[0]]
            ignored += [f"{path.rstrip('/')}/{one}" for one in below[1]]
        else:
            paths.append(path)
    for path in _split(git.local(*words, "-o", "-i", "--directory", "--", *only)):
        ignored.append(path.rstrip("/"))
    ours = (path for path in dict.fromkeys(ignored) if path.split("/")[0] != OURS)
    return [path for path in paths if path.split("/")[0] != OURS], list(ours)


@dataclass(slots=True)
class _UsersGit(Git):
    """git in the repository of a user's folder, with the user's own list of what to ignore in `home`."""

    home: str = ""

    def settings(self) -> dict[str, str]:
        """Nothing of the repository runs; the user's list counts."""
        found = {**Git.settings(self), "core.untrackedCache": "false", "safe.directory": "*"}
        if self.home:
            del found["core.excludesFile"]
        return found

    def warned(self, text: str) -> None:
        """Raises: RunError `workspace.unreadable` for a folder that git may not read, and left out."""
        if found := _SHUT.search(text):
            raise unreadable(found[1])

    def environment(self) -> dict[str, str]:
        """Without a place: git finds the repository around the folder."""
        found = {**Git.environment(self), "GIT_LITERAL_PATHSPECS": "1"}
        del found["GIT_DIR"]
        if self.home:
            del found["GIT_CONFIG_GLOBAL"]
            found["HOME"] = self.home
        return found


def _without_git(source: Path, wanted: Wanted) -> tuple[list[str], list[str]]:
    """All but the folders of dependencies, which come second."""
    paths, ignored = [], []
    for top in wanted.only or ("",):
        for path, is_empty_folder in _walk(source, top.rstrip("/"), wanted.readonly):
            if is_empty_folder and _named(path, wanted.readonly):
                ignored.append(path)
            else:
                paths.append(f"{path}/" if is_empty_folder else path)
    return paths, ignored


def _walk(source: Path, path: str, closed: tuple[str, ...] = ()) -> Iterator[tuple[str, bool]]:
    """What is below a path, and whether it is a folder that holds nothing, or is one of the `closed`."""
    parts = path.split("/") if path else []
    if GIT in parts or parts[:1] == [OURS] or len(parts) > MAX_DEPTH:
        return
    if not _is_folder(source / path):
        if os.path.lexists(source / path):
            yield path, False
        return
    if path and _named(path, closed):
        yield path, True
        return
    try:
        names = sorted(entry.name for entry in os.scandir(source / path))
    except PermissionError as error:
        raise unreadable(path) from error
    if not names and path:
        yield path, True
    for name in names:
        yield from _walk(source, f"{path}/{name}" if path else name, closed)


def _asked_for(source: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    """Files that a pattern of `bring` names, and those in the folders that it names."""
    for pattern in patterns:
        try:
            named = sorted(source.glob(pattern))
        except (ValueError, OSError, RecursionError) as error:
            raise UsageError(
                "usage.config",
                f"`bring` in [workspace] has {pattern[:80]!r}, which is no pattern of paths",
                "`**` is the whole name of a folder: `build/**/*.py`",
            ) from error
        for found in named:
            path = "" if found == source else str(found.relative_to(source))
            yield from (one for one, _ in _walk(source, path))


def unreadable(path: str) -> RunError:
    """The error for a file or folder that may not be read."""
    return RunError(
        "workspace.unreadable",
        f"a file or folder may not be read: {path!r}",
        "give the user who runs SPAK the right to read it, or leave it out of the folder",
    )


def _is_plain(path: str) -> bool:
    """Whether it lies below the folder and in no repository's own: the index of a repository that somebody
    else made may list anything."""
    parts = path.rstrip("/").split("/")
    return not any(part in ("", ".", "..") or which.of_git(part) for part in parts)


def _add(names: Names, path: str, last: Names | None = None) -> None:
    """Put a path there; one that ends with a slash is a folder."""
    *above, name = path.rstrip("/").split("/")
    for part in above:
        inner = names.setdefault(part, {})
        if inner is None:  # what was a file is a folder now: the list is older
            inner = names[part] = {}
        names = inner
    names.setdefault(name, {} if path.endswith("/") else last)


def _holds(names: Names, path: str) -> bool:
    at: Names | None = names
    for part in path.split("/"):
        if at is None or part not in at:
            return False
        at = at[part]
    return True


def _named(path: str, wanted: Iterable[str]) -> bool:
    """Whether a name or a path of several names is the path, or its end."""
    return any(f"/{path}".endswith(f"/{one.strip('/')}") for one in wanted)


def _topmost(paths: Sequence[str]) -> tuple[str, ...]:
    """Those that lie below no other: git names a folder of ignored files, and the files too."""
    known = set(paths)
    return tuple(
        path for path in paths if not any(str(above) in known for above in PurePosixPath(path).parents)
    )


def _dependency(folder: str, readonly: tuple[str, ...]) -> str:
    """The topmost of those folders that it is or lies in; empty where there is none."""
    here = PurePosixPath(folder)
    above = [str(one) for one in (here, *here.parents)][-2::-1]
    return next((one for one in above if _named(one, readonly)), "")


def _folders(source: Path, folder: str) -> frozenset[str]:
    """The names of the folders right below one; none where it is gone, or is no folder."""
    try:
        with os.scandir(source / folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        if error.errno in SHORT:
            raise
        return frozenset()


def _below(shown: tuple[str, ...], scratch: tuple[str, ...]) -> Iterator[str]:
    """The folders of `scratch` that lie in one that is shown."""
    for path in shown:
        for one in scratch:
            first, _, rest = one.strip("/").partition("/")
            if rest and path.rpartition("/")[2] == first:
                yield f"{path}/{rest}"


def _is_folder(path: str | Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _split(printed: bytes) -> Iterator[str]:
    return (os.fsdecode(line) for line in printed.split(b"\0") if line)
