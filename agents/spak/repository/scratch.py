"""The scratch repository of a workspace: `.git` at its top, for the jobs that work there.

It has one commit of the files that the run began with, after the commits of the user's history that the spec
asks for, and no file of secrets. Jobs may do with it what they like: it is no part of the workspace's tree, a
commit in it leaves nowhere, and no process outside of the sandbox obeys it. While nothing runs it is next to
the store (`put_aside`), since a person who goes into the folder may have a git that looks around.

`begin` makes it by a stream of files with settings of our own; `ready` says whether it is there. What a job
puts in its place is never read by git here.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from spak.files.disk import Disk
from spak.repository import stream
from spak.repository.begun import MOST_BYTES, SECONDS
from spak.repository.commits import Secret
from spak.repository.git import Git
from spak.repository.past import LARGE
from spak.repository.stream import File, Person, Read

GIT, BRANCH = ".git", "refs/heads/main"
PERSON = Person("SPAK", "spak@localhost", 0)
MESSAGE = "The files that the run began with\n"
NOTE = (
    "spak: that commit stays in the scratch repository of the run; git_commit makes one that can leave it\n"
)
_SETTINGS = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
\tcheckStat = minimal
[user]
\tname = SPAK
\temail = spak@localhost
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
"""
_LOG = 1 << 20
_COMMITTED = re.compile(rb"\t(?:commit|merge|cherry-pick|revert|rebase|am|pull)\b")
_SPECIAL = re.compile(r"([\\*?\[\]#! ])")

Files = Mapping[str, File]


def begin(
    workspace: Path, making: Path, files: Files, read: Read, secret: Secret, past: Callable[[Git], str]
) -> None:
    """Make it in `making`, a folder that no job sees, and put it in its place. `past` brings commits that go
    before and gives the last of them, or an empty text. Raises: RunError `git.*`, `workspace.object`."""
    _remove(making)
    git = Git(making, time.monotonic() + SECONDS, MOST_BYTES)
    git.begin()
    git.local("symbolic-ref", "HEAD", BRANCH)
    parent = past(git)
    hidden = []
    with tempfile.TemporaryFile(dir=making) as file:
        stream.begin(file, BRANCH, parent, PERSON, MESSAGE)
        if parent:
            file.write(b"deleteall\n")
        for path, one in files.items():
            data = read(one.digest)
            if len(data) > LARGE or secret(path, data):
                hidden.append(path)
            else:
                stream.inline(file, path, one.mode, data)
        file.write(b"\n")
        words = ("-c", "core.compression=1", "fast-import", "--depth=0", "--quiet", "--done")
        git.local(*words, given=stream.ended(file))
    git.local("read-tree", BRANCH)
    (making / "info").mkdir(exist_ok=True)
    (making / "info/exclude").write_text("".join(map(_pattern, hidden)), errors="surrogateescape")
    (making / "config").write_text(_SETTINGS)
    making.chmod(0o755)
    making.rename(workspace / GIT)


def ready(workspace: Path, aside: Path) -> bool:
    """Whether it is in its place; one that was put aside is brought back."""
    if _is_folder(workspace / GIT):
        return True
    _remove(workspace / GIT)
    if _is_folder(aside):
        aside.rename(workspace / GIT)
        return True
    return False


def put_aside(workspace: Path, aside: Path, *, ended: bool) -> None:
    """Take it out of the workspace, for nobody works there; of a run that ended, permanently."""
    _remove(aside)
    with suppress(FileNotFoundError):
        (workspace / GIT).rename(aside)
    if ended:
        _remove(aside)


def log_of(workspace: Path) -> bytes:
    """The end of what its log says of HEAD; nothing for what is no plain file."""
    found = workspace / GIT / "logs/HEAD"
    try:
        fd = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        info = os.fstat(fd)
        plain = stat.S_ISREG(info.st_mode)
        return os.pread(fd, _LOG, max(0, info.st_size - _LOG)) if plain else b""
    finally:
        os.close(fd)


def note(before: bytes, after: bytes) -> str:
    """What to say of a step that committed there; empty for any other."""
    new = after[len(before) :] if after.startswith(before) else after
    return NOTE if _COMMITTED.search(new) else ""


def _pattern(path: str) -> str:
    """A line of `info/exclude` for one path; nothing for a name that no line can have."""
    return "" if "\n" in path else "/" + _SPECIAL.sub(r"\\\1", path) + "\n"


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    if os.path.lexists(path):
        disk = Disk()
        with disk.folder(str(path.parent)) as at:
            disk.remove(path.name, at)
