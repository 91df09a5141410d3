"""The bare repository of a run: where `git_commit` puts its commits, and what `git_push` sends from.
How it begins is in spak.repository.begun.

    Commits(...).make(...)   one commit of what differs from the base or from the commit before
    Commits(...).pack(...)   what a commit has and another repository has not

A commit is made by a stream (spak.repository.stream), from the store's contents: git never reads the files of
the workspace, but for those that say what is ignored and how files are stored. What a file holds is committed
as it is. Ignored files, and files that were not there when the run began (a sparse checkout, a part of a
repository), stay as the base has them. Files of secrets, links that lead out, repositories below and files
that want a filter are refused by name. Where the workspace was no repository the first commit has no parent.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from spak.door import Leaving, look
from spak.errors import UsageError
from spak.repository import ignoring, stream
from spak.repository.begun import ABOUT, BASE, MOST_BYTES, SECONDS, TIP
from spak.repository.git import Git
from spak.repository.leaving import Begun, Look, of_commits
from spak.repository.stream import LINK, PLAIN, PROGRAM, Change, File, Person, Read, blob_id
from spak.secrets import which

MADE = "refs/spak/made"
"""One ref for each commit, by its call."""
MAX_COMMITS = 20_000
AT_ONCE = 64 << 20
"""Bytes of contents after which those that are read at once are enough."""
MOST_NAMED = 3
_SUBMODULE = "160000"


class Secret(Protocol):
    """Whether a path, or what lies there, is of secrets; with `old`, what the commit before has there,
    as the door has it: what was there is no news."""

    def __call__(self, path: str, data: bytes, old: bytes | None = None) -> bool: ...


@dataclass(frozen=True, slots=True)
class Files:
    """What a commit is made of: the workspace's files now and when the run began, and its folder."""

    place: Path
    now: Mapping[str, File]
    begun: Mapping[str, File]
    read: Read


@dataclass(frozen=True, slots=True)
class Order:
    """What to commit: `call` names it, `paths` narrows it."""

    call: str
    message: str
    person: Person
    paths: Sequence[str] = ()
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True)
class Made:
    """A commit that was made."""

    commit: str
    tree: str
    parent: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pack:
    """What a push sends."""

    commits: int
    data: bytes


class Commits:
    """The commits of one run in `folder`; `last` is the call of the last one, as its records have it."""

    def __init__(
        self,
        folder: Path,
        last: str,
        files: Callable[[], Files],
        secret: Secret,
        wanted: Callable[[], bool] = lambda: True,
        looked: Look = look,
    ) -> None:
        self._folder, self._last, self._files, self._secret, self._wanted, self._looked = (
            folder,
            last,
            files,
            secret,
            wanted,
            looked,
        )

    @cached_property
    def _git(self) -> Git:
        """Begun where there is none yet. Raises: RunError `git.*`; UsageError `git_commit.repository`."""
        git = Git(self._folder, time.monotonic() + SECONDS, MOST_BYTES, self._wanted)
        if trouble := self._about.get("trouble"):
            raise UsageError(
                "git_commit.repository",
                f"the workspace's repository cannot be used: {trouble}",
                "a plain repository is wanted: SHA-1, and git can read it",
            )
        if not (self._folder / "HEAD").exists():
            git.begin()
            git.local("symbolic-ref", "HEAD", TIP)
        return git

    @cached_property
    def _about(self) -> Mapping[str, object]:
        try:
            found: dict[str, object] = json.loads((self._folder / ABOUT).read_text())
        except FileNotFoundError:
            return {}
        return found

    @property
    def head(self) -> str:
        """The last commit, else the user's HEAD; empty where there is neither.

        Raises: UsageError `git_commit.away`; RunError `git.*`.
        """
        if self._last:
            found = self._commit_at(f"{MADE}/{self._last}")
            if not found:
                raise UsageError(
                    "git_commit.away",
                    "an earlier commit of this run is on another machine",
                    "continue the run where it began, or start it again",
                )
            return found
        return self._commit_at(BASE)

    def _commit_at(self, name: str) -> str:
        said = self._git.local("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}", accepted=(1,))
        return said.decode().strip()

    # ---- committing --------------------------------------------------------------------------------

    def make(self, order: Order) -> Made:
        """Commit what differs from `head`; the same files, order and head give the same commit.

        Raises: UsageError `git_commit.*`; RunError `git.*`, `workspace.object`.
        """
        self._git.ends = time.monotonic() + min(order.seconds, SECONDS)
        parent, files = self.head, self._files()
        there = self._listed(parent)
        rows = self._changes(files, there)
        chosen = [row for row in rows if _below(row.path, order.paths)]
        if left := [row for row in rows if not _below(row.path, order.paths)]:
            raise UsageError(
                "git_commit.partial",
                f"{_named(left)} changed too and would be left out",
                "what was checked is committed whole: leave `paths` out, or ignore the file",
            )
        if not chosen:
            raise UsageError(
                "git_commit.nothing",
                "nothing changed since the last commit",
                "change something, or go on without a commit",
            )
        self._must_be_fit(chosen, files, there, order)
        ref = f"{MADE}/{order.call}"
        read = self._as_stored(files, there)
        commit = stream.commit(self._git, ref, parent, chosen, read, order.person, order.message)
        self._git.local("update-ref", TIP, commit)
        tree = self._git.local("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()
        return Made(commit, tree, parent, tuple(row.path for row in chosen))

    def _listed(self, commit: str) -> dict[str, tuple[str, str]]:
        """The files of a commit: mode and git's hash by path."""
        said = self._git.local("ls-tree", "-r", "-z", "--full-tree", commit) if commit else b""
        found = {}
        for line in said.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, digest = about.decode().split()
            found[os.fsdecode(path)] = mode, digest
        return found

    def _changes(self, files: Files, there: Mapping[str, tuple[str, str]]) -> list[Change]:
        """What differs from a commit and is not ignored, in order of the paths."""
        modules = {path for path, (mode, _) in there.items() if mode == _SUBMODULE}
        held = [path for path in files.now if not _under(path, modules)]
        new = [path for path in held if path not in there]
        ignored = ignoring.ignored(self._git, files.place, new)
        rows = [
            Change(path, None, files.now[path])
            for path in held
            if path not in ignored and not self._same(files, path, there.get(path))
        ]
        rows = [
            replace(row, after=self._with_mode(row.after, there.get(row.path)))
            for row in self._without_filtered(files, rows, there)
        ]
        began = self._listed(self._commit_at(BASE)) if there.keys() - files.now.keys() else {}
        rows += [
            Change(path, File(mode, ""), None)
            for path, (mode, _) in there.items()
            if path not in files.now and mode != _SUBMODULE and (path in files.begun or path not in began)
        ]
        inside = [
            path for path in files.now if _under(path, modules) and files.begun.get(path) != files.now[path]
        ]
        nested = [row.path for row in rows if any(map(which.of_git, row.path.split("/")))] + inside
        if nested:
            raise UsageError(
                "git_commit.nested", f"{nested[0]!a} is of a repository of its own", "ignore that folder"
            )
        return sorted(rows, key=lambda row: os.fsencode(row.path))

    def _same(self, files: Files, path: str, there: tuple[str, str] | None) -> bool:
        """Whether a commit has the same file; also where its lines end otherwise and the run did not
        change it, as where git was set to end them as Windows does."""
        if there is None:
            return False
        file, (mode, digest) = files.now[path], there
        if (LINK in (mode, file.mode) or self._about.get("file_mode", True)) and mode != file.mode:
            return False
        if self._id(file, files.read) == digest:
            return True
        return file.mode != LINK and _unix(files.read(file.digest), digest) is not None

    def _with_mode(self, file: File | None, there: tuple[str, str] | None) -> File | None:
        """The file as it is committed: where modes do not count with the one that the commit before has."""
        if file is None or file.mode == LINK or self._about.get("file_mode", True):
            return file
        return File(PROGRAM if there is not None and there[0] == PROGRAM else PLAIN, file.digest)

    def _as_stored(self, files: Files, there: Mapping[str, tuple[str, str]]) -> Read:
        """What the store has of a digest; with the ends of lines that the base has, where the run began with
        others."""
        ends = {
            files.now[path].digest
            for path, (_, digest) in there.items()
            if path in files.now and (old := files.begun.get(path)) is not None and old != files.now[path]
            and old.mode != LINK and self._id(old, files.read) != digest
            and _unix(files.read(old.digest), digest) is not None
        }  # fmt: skip

        def read(digest: str) -> bytes:
            data = files.read(digest)
            return data.replace(b"\r\n", b"\n") if digest in ends else data

        return read

    def _without_filtered(
        self, files: Files, rows: Sequence[Change], there: Mapping[str, tuple[str, str]]
    ) -> list[Change]:
        """Without files that a filter made and the run left as they were. Raises: UsageError
        `git_commit.filter` where it did change one: git would store something else than was checked."""
        given = b"".join(os.fsencode(row.path) + b"\0" for row in rows)
        if not given:
            return []
        asked = ("filter", "working-tree-encoding")
        said = self._git.look(files.place, "check-attr", "-z", "--stdin", *asked, given=given).split(b"\0")
        wanted = {
            os.fsdecode(path): (name.decode(), os.fsdecode(value))
            for path, name, value in zip(said[0::3], said[1::3], said[2::3], strict=False)
            if value not in (b"unspecified", b"unset")
        }
        for row in rows:
            changed = row.path not in there or files.begun.get(row.path) != row.after
            if row.path in wanted and changed:
                name, value = wanted[row.path]
                raise UsageError(
                    "git_commit.filter",
                    f"{row.path!a} wants the {name} {value!a}",
                    "other text would be committed than was checked: commit it by hand",
                )
        return [row for row in rows if row.path not in wanted]

    def _must_be_fit(
        self, rows: Sequence[Change], files: Files, there: Mapping[str, tuple[str, str]], order: Order
    ) -> None:
        """Raises: UsageError `git_commit.secret`, `git_commit.link`."""
        if self._secret("", f"{order.message}\n{order.person.name} {order.person.mail}".encode()):
            raise UsageError("git_commit.secret", "the message holds a secret", "take it out")
        new = [(row, row.after) for row in rows if row.after is not None]
        old = dict(blobs(self._git, [there[row.path][1] for row, _ in new if row.path in there]))
        secret = [
            row
            for row, file in new
            if self._secret(row.path, files.read(file.digest), old.get(there.get(row.path, ("", ""))[1], b""))
        ]
        if secret:
            raise UsageError(
                "git_commit.secret",
                f"{_named(secret)} would be committed and holds secrets, by its name or by what it holds",
                "take them out of it, or ignore the file (.gitignore)",
            )
        out = [
            row for row, file in new if file.mode == LINK and _leads_out(row.path, files.read(file.digest))
        ]
        if out:
            raise UsageError(
                "git_commit.link", f"{_named(out)} leads out of the workspace", "make it a link within"
            )

    # ---- the hashes of git -------------------------------------------------------------------------

    def _id(self, file: File, read: Read) -> str:
        """git's hash of a content; remembered by the store's digest."""
        if file.digest not in self._ids:
            self._ids[file.digest] = blob_id(read(file.digest))
        return self._ids[file.digest]

    @cached_property
    def _ids(self) -> dict[str, str]:
        return {}

    # ---- sending -----------------------------------------------------------------------------------

    def leaving(self, wanted: str, old: str = "") -> Leaving:
        """What the run's commits up to `wanted` let out, above `old` where that is one of them.

        Raises: RunError `git.*`, `workspace.object`.
        """
        began = self._commit_at(BASE)
        above = old if old and (not began or self._is_above(old, began)) else began
        files = None if above else self._files()
        begun = None if files is None else Begun(files.begun, files.read)
        return of_commits(self._git, above, wanted, self._looked, begun)

    def pack(
        self, wanted: str, old: str, known: Sequence[str], most: int, allowed: Collection[str] = ()
    ) -> Pack:
        """What `wanted` has and the commits `known` to the other side have not; `old` is where its branch is,
        `allowed` are paths of class runs that the signer named.

        Raises: UsageError `git_push.*`; RunError `git.*`, `door.*`.
        """
        git, head = self._git, self.head
        listed = b"".join(f"{value}\n".encode() for value in (wanted, old or wanted, *known))
        kinds = [
            line.split()[1:2] for line in git.local("cat-file", "--batch-check", given=listed).splitlines()
        ]
        if kinds[0] != [b"commit"] or not head or not self._is_above(head, wanted):
            raise UsageError("git_push.missing", f"{wanted} is no commit of this run or below its first", "")
        if kinds[1] != [b"commit"]:
            raise UsageError(
                "git_push.behind", f"the branch there is at {old}, which the run does not have",
                "fetch it, and start the run again",
            )  # fmt: skip
        if old and not self._is_above(wanted, old):
            raise UsageError(
                "git_push.behind", f"the branch there has commits that {wanted} lacks", "merge them first"
            )
        there = [value for value, kind in zip(known, kinds[2:], strict=True) if kind == [b"commit"]]
        tips = "".join(f"{tip}\n" for tip in (wanted, *(f"^{value}" for value in there))).encode()
        count = int(git.local("rev-list", "--count", "--stdin", given=tips))
        if count > MAX_COMMITS:
            raise UsageError("git_push.size", f"{count} commits are new, at most {MAX_COMMITS} can be")
        self._must_be_clean(tips)
        self.leaving(wanted, old).require(allowed=allowed)
        data = git.local("pack-objects", "--revs", "--stdout", "-q", "--threads=1", given=tips)
        if len(data) > most:
            raise UsageError("git_push.size", f"the pack has {len(data)} bytes, at most {most} are sent")
        return Pack(count, data)

    def _is_above(self, commit: str, other: str) -> bool:
        """Whether a commit is `other` or a descendant."""
        return not self._git.local("rev-list", "--max-count=1", other, "--not", commit, "--")

    def _must_be_clean(self, tips: bytes) -> None:
        """Raises: UsageError `git_push.secret` where a new commit holds or held a file of secrets."""
        seen: dict[str, list[str]] = {}
        for path, blob in self._history(tips):
            if which.secret(path):
                raise _not_sent(path)
            seen.setdefault(blob, []).append(path)
        for blob, data in blobs(self._git, seen):
            for path in seen[blob]:
                if self._secret(path, data):
                    raise _not_sent(path)

    def _history(self, tips: bytes) -> Iterator[tuple[str, str]]:
        """Each file in each new commit: its path, and the hash of what it held, or holds before or after."""
        words = ("log", "--stdin", "-m", "--root", "--raw", "--no-abbrev", "--no-renames", "-z", "--format=")
        items = iter(self._git.local(*words, given=tips).split(b"\0"))
        for item in items:
            row = item.strip()
            if not row.startswith(b":"):
                continue
            _, mode, _, new, *_ = row.decode().split()
            yield os.fsdecode(next(items)), new if mode.startswith(("100", "120")) else ""


def blobs(git: Git, wanted: Iterable[str], most: int = MOST_BYTES) -> Iterator[tuple[str, bytes]]:
    """The contents of these hashes, a few at a time; without those of more bytes and those that the
    repository lacks (a partial clone). Raises: RunError `git.*`."""
    given = b"".join(f"{blob}\n".encode() for blob in dict.fromkeys(wanted) if blob)
    rows = git.local("cat-file", "--batch-check", given=given).decode().splitlines() if given else []
    group: list[str] = []
    size = 0
    for row in rows:
        name, _, *count = row.split()
        if count and int(count[0]) <= most:
            group.append(name)
            size += int(count[0])
        if size > AT_ONCE:
            yield from _contents(git, group)
            group, size = [], 0
    yield from _contents(git, group)


def _contents(git: Git, group: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    given = "".join(f"{blob}\n" for blob in group).encode()
    data = git.local("cat-file", "--batch", given=given) if given else b""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, _, size = data[at:end].decode().split()
        at = end + 1 + int(size) + 1
        yield name, data[end + 1 : at - 1]


def _unix(data: bytes, wanted: str) -> bytes | None:
    """The content with Unix ends of lines, where git's hash of it is the one that is wanted."""
    made = data.replace(b"\r\n", b"\n") if b"\r\n" in data else data
    return made if made is not data and blob_id(made) == wanted else None


def _leads_out(path: str, target: bytes) -> bool:
    parts = list(PurePosixPath(path).parent.parts)
    if target.startswith(b"/"):
        return True
    for part in os.fsdecode(target).split("/"):
        if part == ".." and not parts:
            return True
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return any(map(which.of_git, parts))


def _below(path: str, chosen: Sequence[str]) -> bool:
    return not chosen or any(one in ("", ".", path) or path.startswith(f"{one}/") for one in chosen)


def _under(path: str, folders: set[str]) -> bool:
    parts = path.split("/")
    return bool(folders) and any("/".join(parts[:at]) in folders for at in range(1, len(parts) + 1))


def _named(rows: Sequence[Change]) -> str:
    shown = ", ".join(ascii(row.path) for row in rows[:MOST_NAMED])
    return shown + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")


def _not_sent(path: str) -> UsageError:
    return UsageError(
        "git_push.secret",
        f"a new commit holds or held {path!a}, a file of secrets",
        "take it out of every commit that goes out",
    )
