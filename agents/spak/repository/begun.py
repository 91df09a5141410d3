"""How the bare repository of a run begins: upon the repository that the run's folder belongs to.

Takes the folder of the bare repository and the top of the user's; the user's objects become read-only
alternates, the user's HEAD the base. Nothing of the user's settings is taken but whether modes count, and
nothing of theirs is written. Commits are made in spak.repository.commits.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from spak.errors import RunError
from spak.inputs import read_at_most
from spak.repository.git import Git

BASE, TIP = "refs/spak/base", "refs/heads/spak"
"""The user's HEAD when the run began, and the last commit of the run."""
SECONDS = 120.0
MOST_BYTES = 4 << 30
"""Of a file that git writes."""
MOST_SMALL = 16 << 20
"""Bytes of a file of the user's repository that is read as a whole."""
ABOUT = "spak.json"
"""What is noted of the user's repository: whether modes count, and why it cannot be used."""


def follow(folder: Path, source: Path) -> None:
    """Begin the bare repository of a run upon the repository whose top is `source`; nothing where it is none.

    What cannot be used (SHA-256, damage) is noted, and said when something is to be committed.
    """
    own = git_folder(source / ".git")
    if own is None:
        return
    about: dict[str, object] = {"file_mode": True}
    try:
        _begin_upon(folder, Git(own, time.monotonic() + SECONDS, MOST_BYTES), about)
    except RunError as error:
        if error.code == "git.missing":
            return
        about["trouble"] = error.message
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ABOUT).write_text(json.dumps(about))


def compares_modes(folder: Path) -> bool:
    """Whether modes count in the repository that `follow` noted there (core.fileMode)."""
    try:
        return bool(json.loads((folder / ABOUT).read_text()).get("file_mode", True))
    except (OSError, ValueError):
        return True


def _begin_upon(folder: Path, users: Git, about: dict[str, object]) -> None:
    asked = ("objects", "shallow", "info/exclude")
    paths = [word for name in asked for word in ("--git-path", name)]
    said = users.local("rev-parse", "--path-format=absolute", *paths, "--show-object-format")
    objects, shallow, exclude, *kind = os.fsdecode(said).rstrip("\n").split("\n")
    if len(kind) != 1:
        raise RunError("git.failed", "the name of its folder has a line feed")
    if kind != ["sha1"] or not Path(objects).is_dir():
        raise RunError("git.failed", f"its objects are named by {kind[0]}, and SHA-1 is wanted")
    head = users.local("rev-parse", "--quiet", "--verify", "HEAD^{commit}", accepted=(1,)).decode().strip()
    mode = users.local("config", "--type=bool", "--get", "core.fileMode", accepted=(1,))
    about["file_mode"] = mode.strip() != b"false"
    made = Git(folder, users.ends, MOST_BYTES)
    made.begin()
    (folder / "info").mkdir(exist_ok=True)
    (folder / "objects/info/alternates").write_bytes(os.fsencode(f"{objects}\n"))
    for path, name in ((shallow, "shallow"), (exclude, "info/exclude")):
        if data := _small(Path(path)):
            (folder / name).write_bytes(data)
    made.local("symbolic-ref", "HEAD", TIP)
    if head:
        made.local("update-ref", BASE, head)


def git_folder(path: Path) -> Path | None:
    """The folder that `.git` is or, of a worktree, names; None where there is no repository."""
    if path.is_dir():
        return path if (path / "HEAD").exists() else None
    text = os.fsdecode(_small(path))
    if not text.startswith("gitdir:") or "\0" in text:
        return None
    found = path.parent / text.removeprefix("gitdir:").strip()
    return found.resolve() if found.is_dir() else None


def _small(path: Path) -> bytes:
    """What a file of the user's repository holds; nothing where it is none, or larger than such a file is."""
    try:
        return read_at_most(path, MOST_SMALL) or b""
    except OSError:
        return b""
