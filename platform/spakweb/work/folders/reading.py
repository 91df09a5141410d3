"""The .spak files of a folder at a commit, and who made the commit.

Takes a Git that has fetched it. The texts are as git keeps them: nothing is checked out, so no filter and no
attribute has a say. Links, odd names, pointers of Git LFS, texts that are too large and what is no UTF-8 are
reported by their path, and the other files are read all the same.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.conf import settings

from spak.errors import RunError
from spakweb.ground.errors import Refused
from spakweb.ground.text import clean, one_line
from spakweb.ground.unsafe_text import visible
from spakweb.store.sources.git import Git

ENDING = ".spak"
MOST = 200
"""Files of one folder."""
LISTED = 4 << 20
"""Bytes of a list of files that are read."""
LONGEST = 250
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ +-]*(?:/[A-Za-z0-9_][A-Za-z0-9._ +-]*)*\Z")
_LFS = b"version https://git-lfs.github.com/spec/v1"
_PLAIN = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit and its author, as git has the name."""

    digest: str
    author: str
    subject: str


@dataclass(slots=True)
class Files:
    """Texts by their path below the folder, and what is wrong with the others."""

    texts: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)


def commit_of(git: Git, digest: str) -> Commit:
    """Raises: RunError `git.*`."""
    said = git.local("log", "-1", "--no-show-signature", "--format=%an%x00%s", "--end-of-options", digest)
    author, _, subject = said.decode(errors="replace").partition("\0")
    return Commit(digest, one_line(visible(author), 100), one_line(visible(subject), 120))


def files_of(git: Git, commit: str, folder: str) -> Files:
    """Raises: RunError `git.*`, `folder.files`."""
    found, wanted = Files(), []
    for mode, digest, size, path in _listed(git, commit, folder):
        if why := _not_taken(mode, size, path):
            found.wrong[_shown(path)] = why
        else:
            wanted.append((digest, size, path))
    if len(wanted) > MOST:
        hint = "Name a folder with fewer, or split it over several sources."
        raise RunError("folder.files", f"the folder has more than {MOST} files {ENDING}", hint)
    for path, data in _read(git, wanted):
        try:
            if data.startswith(_LFS):
                found.wrong[path] = "It is in Git LFS, whose files are not fetched."
            else:
                found.texts[path] = clean(data, settings.UPLOAD_BYTES)
        except Refused as why:
            found.wrong[path] = f"{why.code}: {why.message}"
    return found


def _listed(git: Git, commit: str, folder: str) -> Iterator[tuple[str, str, int, str]]:
    """Mode, digest, size and path below the folder of each file of that ending."""
    below = ("--", f"{folder}/") if folder else ()
    try:
        said = git.local("ls-tree", "-r", "-z", "-l", "--full-tree", commit, *below, most=LISTED)
    except RunError as error:
        if error.code == "git.huge":
            raise RunError("folder.files", "the folder has too many files to list", "") from error
        raise
    start = len(folder) + 1 if folder else 0
    for line in said.split(b"\0")[:-1]:
        about, _, name = line.partition(b"\t")
        mode, _, digest, size = about.decode().split()
        path = name.decode(errors="surrogateescape")
        if path.lower().endswith(ENDING):
            yield mode, digest, int(size) if size.isdigit() else 0, path[start:]


def _not_taken(mode: str, size: int, path: str) -> str:
    if mode not in _PLAIN:
        return "It is a link or a submodule, and no file."
    if not NAME.match(path) or not path.endswith(ENDING) or len(path) > LONGEST:
        return "Its name has signs that no spec's has: use letters, digits, dots, dashes and underscores."
    if size > 2 * settings.UPLOAD_BYTES:
        return f"It has {size:,} bytes; a spec has at most {settings.UPLOAD_BYTES:,}."
    return ""


def _shown(path: str) -> str:
    return repr(path[:LONGEST])[1:-1]


def _read(git: Git, wanted: list[tuple[str, int, str]]) -> Iterator[tuple[str, bytes]]:
    """The contents of files, with one command. Raises: RunError `git.damaged`."""
    with tempfile.TemporaryFile(dir=git.folder) as asked:
        asked.write(b"".join(f"{digest}\n".encode() for digest, _, _ in wanted))
        asked.seek(0)
        said = git.local("cat-file", "--batch", given=asked) if wanted else b""
    at = 0
    for digest, size, path in wanted:
        end = said.find(b"\n", at)
        head = said[at:end].split()
        if end < 0 or head != [digest.encode(), b"blob", str(size).encode()]:
            raise RunError("git.damaged", "a file of the repository is not there whole", "")
        yield path, said[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
