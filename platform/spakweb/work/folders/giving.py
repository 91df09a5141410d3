"""Versions that go out: one commit of all upon the branch that was fetched, or a pull request for each spec.

Only the files of the specs are in the commit. The branch of a pull request has the same name for every
version of a spec: a newer one takes the place of what this platform pushed there, and the pull request that
is open follows. A branch that somebody else pushed to is left. `in_the_way` says which of them have no place:
where something else is than a plain file, or something above that is no folder. A branch that was moved
in the meantime is left alone: the sync starts over.
"""

from __future__ import annotations

from spak.errors import RunError
from spak.repository import stream
from spakweb.ground.text import one_line, plural
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.sources import fetching, refs
from spakweb.store.sources.git import Git
from spakweb.work.folders.queue import renew
from spakweb.work.jobs.hold import Hold
from spakweb.work.sources import changes, forges, pushing

CHANGED = "folder.pull_changed"
PREFIX = "spak/specs-"
"""Of a branch that a pull request is of."""


def whole(folder: Folder, row: FolderFile) -> str:
    """The path of a file in the repository."""
    return f"{folder.path}/{row.path}" if folder.path else row.path


def give(git: Git, folder: Folder, upon: str, rows: list[FolderFile]) -> str:
    """The commit of all, on the folder's branch. Raises: RunError `git.*`."""
    made = _commit(git, folder, upon, rows)
    pushing.give(git, made, folder.branch, upon)
    return made


def propose(git: Git, folder: Folder, upon: str, row: FolderFile, hold: Hold) -> None:
    """Bring a spec's version into its pull request: the one that is open, or a new one. What the branch may
    be at is kept before it is pushed, so that a worker that follows knows it.

    Raises: Lost; RunError `folder.pull_changed`, `git.*`; Refused `git.forge`.
    """
    branch = f"{PREFIX}{folder.team.slug}-{row.spec.slug}"
    ref = refs.HEADS + branch
    made = _commit(git, folder, upon, [row])
    tip = fetching.listed(git, [ref]).get(ref, "")
    if tip not in ("", made, *row.pull_commits):
        raise RunError(
            CHANGED, f"somebody else pushed to {branch}",
            "merge or close its pull request, and delete the branch",
        )  # fmt: skip
    row.pull_commits = [*filter(None, [tip]), made]
    with hold.writing():
        row.save(update_fields=["pull_commits"])
    pushing.give(git, made, ref, tip)
    renew(hold)
    pull = forges.Pull(branch, folder.short_branch, _title([row]), _words([row]))
    row.pull_url = forges.open_pull(folder.source, pull, follow=True)


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
                "folder.place", f"the repository has something else than a file at {path[:80]!r}",
                "move it out of the way, or archive the spec",
            )  # fmt: skip
    return None


def _commit(git: Git, folder: Folder, upon: str, rows: list[FolderFile]) -> str:
    versions = [row.spec.head for row in rows if row.spec.head is not None]
    at = max(version.made_at for version in versions)
    writers = {version.writer for version in versions}
    if len(writers) > 1:
        writers.clear()  # the message names each
    texts = {whole(folder, row): version.text for row, version in zip(rows, versions, strict=True)}
    files = [stream.Change(path, None, stream.File(stream.PLAIN, path)) for path in texts]
    message = f"{_title(rows)}\n\n{_words(rows)}"
    return stream.commit(
        git,
        changes.AFTER,
        upon,
        files,
        lambda path: texts[path].encode(),
        changes.author(at, *writers),
        message,
    )


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
        lines.append(f"{row.spec.slug} version {head.number}, saved by {head.writer}: {head.message}")
    named = ", ".join(f"{row.spec.slug} v{row.spec.head.number}" for row in rows if row.spec.head is not None)
    return "\n".join([*lines, "", f"Spak-Specs: {named}", ""])
