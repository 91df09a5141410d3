"""Files of a run that somebody brings as a zip: looked through, hashed, and written into an empty folder.

Takes an open archive and Limits; gives Contents: every file with its size and hash, and the root that a
workspace of these files has (`spak.workspace.tree`). `look` writes nothing, `unpack` writes what `look` read.
An archive is taken whole or refused: sizes are counted while the bytes are read, never believed; names stay
below the folder; devices are refused. Symbolic links are refused too, or with `Limits.links` kept as links
where they stay inside: each is followed by the names of the archive alone, and one that leads out, or into
`.spak`, is refused by its name. They are made last, so that nothing is written by way of a link. A zip in a
zip is a file like any other. Times, owners and all mode bits but "executable" are left.

`.spak` and `__MACOSX` at the top are left out: the first is ours, the second is no part of the files. So is
`.git` wherever it is: its history and its settings may hold secrets, and no run reads them. In an entry that
was made on FAT or NTFS a backslash parts folders, as Windows PowerShell writes it.
`look` with `strip` leaves out a single folder that everything is in, and names it for `unpack`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from spak import canon
from spak.errors import UsageError
from spak.paths import OURS
from spak.workspace.links import Way
from spak.workspace.store import CHUNK, name
from spak.workspace.tree import MAX_DEPTH, Node, encode

GIT = ".git"
_FAT = 0
"""`create_system` of an entry that DOS or Windows made (APPNOTE 4.4.2)."""
LEFT_OUT = frozenset({OURS, "__MACOSX"})
NAME_BYTES, PATH_BYTES = 255, 4000
"""The longest name and path that Linux takes, less some room for the folder around them."""
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_END, _END_64 = b"PK\5\6", b"PK\6\7"
_END_SIZE, _END_64_SIZE, _COMMENT = 22, 20, 1 << 16
_ENCRYPTED = 0x1
_LINE = 46
"""Bytes of an archive's list for each file, besides its name."""
_LOCAL = struct.Struct("<26xHH")
"""What stands before the bytes of an entry: at its end the lengths of a name and of more that follow."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Wrote = Callable[[int, str, str, int, bytes | None], None]
"""Called for each file that was written and is open still: descriptor, digest, size, and its bytes unless
they are more than a CHUNK."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an archive may hold once it is unpacked."""

    files: int = 10_000
    """Files and folders together."""
    size_bytes: int = 256 << 20
    links: bool = False
    """Whether symbolic links that stay inside are taken, as links."""


@dataclass(frozen=True, slots=True)
class Item:
    """One file, or a link with its target as content. `size` in bytes, `digest` as in a workspace's tree."""

    path: str
    size: int
    digest: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of an upload, and what was left out of it."""

    root: str
    """The hash that a workspace of exactly these files has (R3)."""
    items: tuple[Item, ...]
    """In order of their paths."""
    left_out: tuple[str, ...] = ()
    """Paths that are no part of the files."""
    folder: str = ""
    """The folder around all of them that their paths do not name."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(item.size for item in self.items)


def look(archive: BinaryIO, limits: Limits, *, strip: bool = False) -> Contents:
    """Read all of an archive, write nothing. Raises: UsageError `upload.*`."""
    return _read(archive, limits, None, strip)


def unpack(
    archive: BinaryIO, into: Path, limits: Limits, folder: str = "", wrote: Wrote | None = None
) -> Contents:
    """Write the files of that folder of the archive into a folder that is empty and the caller's alone; after
    an error it holds a part. `look` was here before: checksums of the archive are not compared once more.

    Raises: UsageError `upload.*`; OSError, and what `wrote` raises.
    """
    return _read(archive, limits, into, folder, wrote)


def below(path: str, folder: str) -> str:
    """The path as the workspace has it; empty for what is no part of the files."""
    if path.split("/", 1)[0] in LEFT_OUT:
        return ""
    inner = path.removeprefix(f"{folder}/") if folder else path
    if GIT in inner.split("/"):
        return ""
    return "" if inner.split("/", 1)[0] in LEFT_OUT or (folder and path == folder) else inner


def entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The entries of an archive, their names with `/` between folders."""
    for info in archive.infolist():
        if info.create_system == _FAT:
            info.filename = info.filename.replace("\\", "/")
    return archive.infolist()


def _around(archive: zipfile.ZipFile) -> str:
    """The only folder at the top, when everything is in it and it is not empty."""
    paths = [checked_name(info.filename) for info in entries(archive)]
    kept = [path for path in paths if path.split("/", 1)[0] not in LEFT_OUT]
    tops = {path.split("/", 1)[0] for path in kept}
    inside = [path for path in kept if "/" in path]
    files = {checked_name(info.filename) for info in entries(archive) if not info.is_dir()}
    return tops.pop() if len(tops) == 1 and inside and not tops & files else ""


def _read(
    archive: BinaryIO, limits: Limits, into: Path | None, around: bool | str, wrote: Wrote | None = None
) -> Contents:
    _weigh(archive, limits)
    try:
        with zipfile.ZipFile(archive) as found:
            folder = around if isinstance(around, str) else _around(found) if around else ""
            return _Pass(found, archive, limits, into, folder, wrote).contents()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, struct.error) as error:
        raise UsageError(
            "upload.archive",
            "The file is no zip that can be read, or is damaged.",
            "Make the zip again, or choose the files themselves.",
        ) from error


def _weigh(archive: BinaryIO, limits: Limits) -> None:
    """Refuse a list of files that is too long before `zipfile` reads it into memory."""
    size = archive.seek(0, os.SEEK_END)
    archive.seek(max(0, size - _END_SIZE - _COMMENT - _END_64_SIZE))
    tail = archive.read()
    archive.seek(0)
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise UsageError("upload.archive", "The file is no zip.", "Choose a zip, a folder or files.")
    listed, listing = struct.unpack_from("<H", tail, at + 10)[0], struct.unpack_from("<I", tail, at + 12)[0]
    long = tail[max(0, at - _END_64_SIZE) : at].startswith(_END_64)
    if long or listed > limits.files or listing > limits.files * (_LINE + PATH_BYTES):
        raise too_many(limits)


class _Pass:
    """One reading of an archive."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        file: BinaryIO,
        limits: Limits,
        into: Path | None,
        folder: str,
        wrote: Wrote | None,
    ) -> None:
        self._around = folder
        self._archive = archive
        self._bytes = file
        self._limits = limits
        self._into = into
        self._wrote = wrote
        self._root = Node("d", 0o755)
        self._folders = {"": self._root}
        self._entries = 0
        self._left = limits.size_bytes
        self._items: list[Item] = []
        self._left_out: list[str] = []
        self._links: dict[str, str] = {}

    def contents(self) -> Contents:
        for info in entries(self._archive):
            given = checked_name(info.filename)
            path = below(given, self._around)
            if not path:
                self._left_out += [given] if given != self._around else []
                continue
            self._kind(info, path)
            if info.is_dir():
                self._folder(path)
            else:
                self._file(info, path)
        self._make_links()
        self._items.sort(key=lambda item: item.path.encode())
        return Contents(_sealed(self._root), tuple(self._items), tuple(self._left_out), self._around)

    def _kind(self, info: zipfile.ZipInfo, path: str) -> None:
        """Raises: UsageError for what is neither a file nor a folder, and for what cannot be read."""
        mode = info.external_attr >> 16
        if stat.S_ISLNK(mode) and (info.is_dir() or not self._limits.links):
            _refuse(
                "upload.link", f"{_shown(path)} is a link.", "Put the file that it leads to in its place."
            )
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            _refuse("upload.device", f"{_shown(path)} is a device, a pipe or a socket.", "Leave it out.")
        if info.flag_bits & _ENCRYPTED:
            _refuse(
                "upload.archive", f"{_shown(path)} is encrypted.", "Make the zip again without a password."
            )
        if info.compress_type not in _READABLE:
            _refuse("upload.archive", f"{_shown(path)} uses a compression that is not supported.",
                    "Make the zip again with the usual compression (deflate).")  # fmt: skip

    def _folder(self, path: str) -> Node:
        """The node of a folder, made with those above it."""
        if (known := self._folders.get(path)) is not None:
            return known
        above, _, part = path.rpartition("/")
        node = self._folder(above)
        if part in node.children:
            _refuse("upload.twice", f"{_shown(path)} is a file and a folder.", "Leave one of them out.")
        self._count()
        made = self._folders[path] = node.children[part] = Node("d", 0o755)
        if self._into is not None:
            (self._into / path).mkdir(mode=0o755)
        return made

    def _file(self, info: zipfile.ZipInfo, path: str) -> None:
        above, _, filename = path.rpartition("/")
        folder = self._folder(above)
        if filename in folder.children:
            _refuse("upload.twice", f"{_shown(path)} is in the zip twice.", "Leave one of them out.")
        self._count()
        if stat.S_ISLNK(info.external_attr >> 16):
            node = folder.children[filename] = self._link(info, path)
            self._items.append(Item(path, node.size, node.digest))
            return
        runs = bool((info.external_attr >> 16) & 0o100)
        mode = 0o755 if runs else 0o644
        if self._into is None:
            size, digest, _ = self._copied(info, None)
        else:
            size, digest = self._written(info, self._into, path, mode)
        folder.children[filename] = Node("f", mode, digest, size)
        self._items.append(Item(path, size, digest, runs))

    def _written(self, info: zipfile.ZipInfo, into: Path, path: str, mode: int) -> tuple[int, str]:
        """Write a file; gives its size and digest."""
        fd = os.open(f"{into}/{path}", _NEW, mode)
        try:
            size, digest, data = self._copied(info, fd)
            if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
                os.fchmod(fd, mode)
            if self._wrote is not None:
                self._wrote(fd, path, digest, size, data)
        finally:
            os.close(fd)
        return size, digest

    def _link(self, info: zipfile.ZipInfo, path: str) -> Node:
        """The node of a link, whose target is judged when all names are known."""
        with self._archive.open(info) as source:
            target = source.read(PATH_BYTES + 1)
        self._left -= len(target)
        if self._left < 0:
            raise too_large(self._limits)
        try:
            text = target.decode()
        except UnicodeDecodeError:
            text = ""
        if not text or len(target) > PATH_BYTES or any(ord(sign) < 32 or sign == "\x7f" for sign in text):
            _refuse("upload.link", f"{_shown(path)} is a link to no name that is taken.", "Take it out.")
        self._links[path] = text
        return Node("l", 0o777, canon.digest(target), len(target))

    def _make_links(self) -> None:
        """Refuse links that lead out; make the others."""
        way = Way(self._links)
        for path, target in self._links.items():
            if why := way.leaves(path):
                _refuse(
                    "upload.link", f"{_shown(path)} is a link to {_shown(target)}, {why}.",
                    "Put the file that it leads to in its place, or take the link out.",
                )  # fmt: skip
            if self._into is not None:
                (self._into / path).symlink_to(target)

    def _copied(self, info: zipfile.ZipInfo, fd: int | None) -> tuple[int, str, bytes | None]:
        """Read an entry, and write it to an open file; gives its size, its digest, and its bytes if it has
        but one piece of them."""
        hashing, size, pieces, last = hashlib.sha256(), 0, 0, b""
        for last in self._pieces(info):
            size += len(last)
            pieces += 1
            self._left -= len(last)
            if self._left < 0:
                raise too_large(self._limits)
            hashing.update(last)
            if fd is not None:
                _write(fd, last)
        return size, name(hashing), last if pieces <= 1 else None

    def _pieces(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """The bytes of an entry. What is stored as it is, and was looked through, is read straight from the
        archive: `zipfile` takes as long for a small file as it takes to write it."""
        plain = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if self._into is None or not plain:
            with self._archive.open(info) as source:
                while chunk := source.read(CHUNK):
                    yield chunk
            return
        self._bytes.seek(info.header_offset)
        self._bytes.seek(sum(_LOCAL.unpack(self._bytes.read(_LOCAL.size))), os.SEEK_CUR)
        left = info.file_size
        while left:
            chunk = self._bytes.read(min(CHUNK, left))
            if not chunk:
                raise EOFError
            left -= len(chunk)
            yield chunk

    def _count(self) -> None:
        self._entries += 1
        if self._entries > self._limits.files:
            raise too_many(self._limits)


def checked_name(given: str) -> str:
    """The path of an entry, when it stays below the folder. Raises: UsageError `upload.name`."""
    path = given.removesuffix("/")
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        _refuse("upload.name", f"The name {_shown(given)} leads out of the folder.",
                "Zip the folder again from the inside: names are relative, without `..`.")  # fmt: skip
    if any(ord(sign) < 32 or sign in "\x7f\\" for sign in path):
        _refuse(
            "upload.name", f"The name {_shown(given)} has a backslash or a control character.", "Rename it."
        )
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        _refuse("upload.name", f"The name {_shown(given)} is no valid text.", "Rename it.")
    if max(sizes) > NAME_BYTES or sum(sizes) + len(sizes) > PATH_BYTES or len(parts) > MAX_DEPTH:
        _refuse(
            "upload.name", f"The name {_shown(given)} is too long, or too many folders deep.", "Shorten it."
        )
    return path


def items_of(root: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every file and link below a folder with its path, in order of the bytes of the names."""
    for filename in sorted(root.children, key=lambda one: one.encode("utf-8", "surrogateescape")):
        node = root.children[filename]
        if node.kind == "d":
            yield from items_of(node, f"{path}{filename}/")
        else:
            yield f"{path}{filename}", node


def _write(fd: int, data: bytes) -> None:
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


def _sealed(folder: Node) -> str:
    for node in folder.children.values():
        if node.kind == "d":
            _sealed(node)
    folder.digest = canon.digest(encode(folder))
    return folder.digest


def _refuse(code: str, message: str, hint: str) -> NoReturn:
    raise UsageError(code, message, hint)


def too_many(limits: Limits) -> UsageError:
    """The error of an upload with too many files and folders."""
    return UsageError(
        "upload.files", f"There are more than {limits.files:,} files and folders.",
        "Leave out what the run does not need, such as node_modules or build results.",
    )  # fmt: skip


def too_large(limits: Limits) -> UsageError:
    """The error of an upload with too many bytes."""
    return UsageError(
        "upload.size", f"The files are more than {limits.size_bytes >> 20} MiB.",
        "Leave out what the run does not need.",
    )  # fmt: skip


def _shown(given: str) -> str:
    return ascii(given[:80]) if not given[:80].isprintable() else repr(given[:80])
