"""The files of a repository at a ref: fetched shallow, and packed into a zip as if somebody had brought it.

`find` asks which commit a ref is at, `fetch` gets it, `pack` writes its files. Nothing is ever checked out:
git hands the objects out as they are, so that no filter and no attribute of the repository has a say. Links,
odd names, and what is too much are refused by whoever reads the zip (spak.workspace.unpack), with the same
words as for a zip of a person's; submodules and pointers of Git LFS here.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, BinaryIO

from spak.errors import RunError
from spak.workspace.unpack import NAME_BYTES, PATH_BYTES, Limits, checked_name, too_large, too_many
from spakweb.store.sources.failures import late
from spakweb.store.sources.git import Git, end
from spakweb.store.sources.refs import COMMIT

FETCHED = "refs/spak/fetched"
FETCH = (
    *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
    *("--no-recurse-submodules", "--refmap=", "--"),
)
LISTED = 1 << 20
"""Bytes of a list of refs that are read."""
PEELED = "^{}"
TRIES = 3
_LFS, _LFS_BYTES = b"version https://git-lfs.github.com/spec/v1", 1024
_LINK, _SUBMODULE = "120000", "160000"
_ENTRY = 80
"""Bytes of a line of the list of files, besides the name."""
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A ref by its full name, and the commit that it is at."""

    ref: str
    commit: str


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    digest: str
    size: int
    path: str


def find(git: Git, refs: Sequence[str], wanted: str = "") -> Found:
    """The first of these full names that the repository has; with `wanted` only where it is at that commit.

    Raises: RunError `git.*`.
    """
    known = listed(git, refs)
    for ref in refs:
        commit = known.get(ref + PEELED) or known.get(ref, "")
        if not COMMIT.match(commit):
            continue
        if wanted not in ("", commit):
            raise RunError(
                "git.moved", f"{ref} is at {commit[:12]} and not at {wanted[:12]}",
                "start the run again for the commit that it is at now",
            )  # fmt: skip
        return Found(ref, commit)
    raise RunError("git.ref_unknown", f"the repository has no {' and no '.join(refs)}", "is the name right?")


def listed(git: Git, refs: Sequence[str]) -> dict[str, str]:
    """What the repository has of these refs, by full name; a tag of its own also by what it is of."""
    asked = [*refs, *(ref + PEELED for ref in refs)]
    said = git.remote("ls-remote", "--quiet", "--", git.of.address.url, *asked)[:LISTED]
    lines = (line.partition("\t") for line in said.decode(errors="replace").splitlines())
    return {name: digest for digest, _, name in lines}


def fetch(git: Git, refs: Sequence[str], found: Found, wanted: str = "", depth: int = 1) -> Found:
    """Get the commit of a ref that was found, with those before it to that depth; one that is moved meanwhile
    is looked for again.

    Raises: RunError `git.*`.
    """
    words = [f"--depth={depth}" if word == "--depth=1" else word for word in FETCH]
    for left in reversed(range(TRIES)):
        try:
            git.remote(*words, git.of.address.url, f"+{found.ref}:{FETCHED}")
            if commit_of(git, FETCHED) == found.commit:
                return found
        except RunError as error:
            if error.code not in ("git.moved", "git.ref_unknown") or not left:
                raise
        found = find(git, refs, wanted)
    raise RunError("git.moved", "the ref was moved each time that it was fetched", "start the run again")


def commit_of(git: Git, name: str) -> str:
    """Raises: RunError `git.no_commit`."""
    try:
        said = git.local("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except RunError as error:
        if error.code != "git.failed":
            raise
        raise RunError(
            "git.no_commit", "the ref is at something else than a commit", "name a branch"
        ) from error
    return said.decode().strip()


def pack(git: Git, commit: str, into: BinaryIO, limits: Limits, *, submodules: bool, lfs: bool) -> None:
    """Write the files of a commit as a zip. Raises: RunError `git.*`; UsageError `upload.*`."""
    entries = [one for one in entries_of(git, commit, limits) if not _is_submodule(one, submodules)]
    if sum(one.size for one in entries) > limits.size_bytes:
        raise too_large(limits)
    names = b"".join(f"{one.digest}\n".encode() for one in entries)
    asked = git.folder / "asked"
    asked.write_bytes(names)
    with asked.open("rb") as file:
        process = git.pipe("cat-file", "--batch", given=file)
    assert process.stdout is not None
    try:
        with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as archive:
            for one in entries:
                info = zipfile.ZipInfo(checked_name(one.path))
                info.external_attr = int(one.mode, 8) << 16
                with archive.open(info, "w", force_zip64=True) as entry:
                    _copy(process.stdout, one, entry, lfs)
                git.left_s()
                if not git.wanted():
                    raise RunError("git.cancelled", "the run was cancelled while its files came", "")
    finally:
        end(process)


def entries_of(git: Git, commit: str, limits: Limits) -> Iterator[_Entry]:
    """The files of a commit, and what it has besides files. Raises: UsageError `upload.files`."""
    most = limits.files * (_ENTRY + NAME_BYTES) + PATH_BYTES
    try:
        said = git.local("ls-tree", "-r", "-z", "-l", "--full-tree", commit, most=most)
    except RunError as error:
        if error.code == "git.huge":
            raise too_many(limits) from error
        raise
    listed = said.split(b"\0")[:-1]
    if len(listed) > limits.files:
        raise too_many(limits)
    for line in listed:
        about, _, path = line.partition(b"\t")
        mode, _, digest, size = about.decode().split()
        yield _Entry(mode, digest, int(size) if size.isdigit() else 0, path.decode(errors="surrogateescape"))


def _is_submodule(entry: _Entry, allowed: bool) -> bool:
    if entry.mode != _SUBMODULE:
        return False
    if not allowed:
        raise RunError(
            "git.submodules", f"{checked_name(entry.path)!r} is a submodule, and the source takes none",
            "add the source so that it takes repositories without their submodules",
        )  # fmt: skip
    return True


def _copy(stream: IO[bytes], entry: _Entry, into: IO[bytes], lfs: bool) -> None:
    head = stream.readline().split()
    if len(head) != 3 or head[0].decode() != entry.digest or int(head[2]) != entry.size:
        raise (
            late() if not head else RunError("git.damaged", "a file of the repository is not there whole", "")
        )
    left = entry.size
    while left:
        piece = stream.read(min(left, CHUNK))
        if not piece:
            raise late()
        if not lfs and left == entry.size <= _LFS_BYTES and piece.startswith(_LFS) and entry.mode != _LINK:
            raise RunError(
                "git.lfs", f"{checked_name(entry.path)!r} is in Git LFS, whose files are not fetched",
                "keep the file in git, or add the source so that it takes the pointers as they are",
            )  # fmt: skip
        into.write(piece)
        left -= len(piece)
    stream.read(1)
