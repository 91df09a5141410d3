"""Versions that go out: one commit upon the branch that was fetched, as a push to it or as a pull request.

Only the files of the specs are in the commit. `in_the_way` says which of them have no place: where something
else is than a plain file, or something above that is no folder. A branch that was moved meanwhile stays: the
sync begins again.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

from spak.errors import RunError
from spakweb.folders.models import Folder, FolderFile
from spakweb.sources import changes, fetching, forges, pushing, refs
from spakweb.sources.git import Git
from spakweb.text import one_line, plural

PREFIX = "spak/specs-"
"""Of a branch that a pull request is of."""


@dataclass(frozen=True, slots=True)
class Given:
    """The commit, and where it is: a branch of its own and its pull request, or neither."""

    commit: str
    branch: str = ""
    pull_url: str = ""


def whole(folder: Folder, row: FolderFile) -> str:
    """The path of a file in the repository."""
    return f"{folder.path}/{row.path}" if folder.path else row.path


def give(git: Git, folder: Folder, upon: str, rows: list[FolderFile]) -> Given:
    """Raises: RunError `git.*`; Refused `git.forge`."""
    made = _commit(git, folder, upon, rows)
    if folder.out != Folder.Out.PULL:
        pushing.give(git, made, folder.branch, upon)
        return Given(made)
    branch = f"{PREFIX}{made[:12]}"
    pushing.give(git, made, refs.HEADS + branch)
    title, text = _title(rows), _words(rows)
    pull = forges.Pull(branch, folder.short_branch, title, text)
    return Given(made, branch, forges.open_pull(folder.source, pull))


def in_the_way(git: Git, commit: str, path: str) -> RunError | None:
    """`folder.place` where no file can be made or changed at the path. Raises: RunError `git.*`."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        name = "/".join(parts[:depth])
        found = git.local("ls-tree", "-z", "--full-tree", commit, "--", name)
        if not found:
            break
        wanted = (b"100644 ", b"100755 ") if depth == len(parts) else (b"040000 ",)
        if not found.startswith(wanted):
            return RunError(
                "folder.place", f"the repository has something else than a file at {path[:80]!a}",
                "move it out of the way, or archive the spec",
            )  # fmt: skip
    return None


def _commit(git: Git, folder: Folder, upon: str, rows: list[FolderFile]) -> str:
    versions = [row.spec.head for row in rows if row.spec.head is not None]
    at = max(version.made_at for version in versions)
    with tempfile.TemporaryFile(dir=git.folder) as stream:
        changes.begin(stream, changes.AFTER, upon, at, f"{_title(rows)}\n\n{_words(rows)}")
        for row, version in zip(rows, versions, strict=True):
            data = version.text.encode()
            place = changes.quoted(whole(folder, row))
            stream.write(b"M 100644 inline %s\ndata %d\n%s\n" % (place, len(data), data))
        stream.write(b"\n")
        git.local("fast-import", "--quiet", "--done", given=changes.ended(stream))
    return fetching.commit_of(git, changes.AFTER)


def _title(rows: list[FolderFile]) -> str:
    if len(rows) > 1:
        return f"Update {plural(len(rows), 'spec')}"
    head = rows[0].spec.head
    return one_line(f"{rows[0].spec.slug}: {head.message if head is not None else ''}", 72).rstrip(": ")


def _words(rows: list[FolderFile]) -> str:
    lines = []
    for row in rows:
        head = row.spec.head
        assert head is not None
        lines.append(f"{row.spec.slug} version {head.number}, saved by {head.author}: {head.message}")
    named = ", ".join(f"{row.spec.slug} v{row.spec.head.number}" for row in rows if row.spec.head is not None)
    return "\n".join([*lines, "", f"Spak-Specs: {named}", ""])
