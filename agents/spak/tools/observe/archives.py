"""The names in an archive or a patch: what unpacking or applying it would write.

Takes the content of a file; gives names, those that links in it lead to as well. What is no archive that is
understood here, or has too many members, is TOO_MANY: nobody can say what it would write.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import tarfile
import zipfile
import zlib

from spak.commandline.patch_names import MAX_NAMES, is_patch, patched
from spak.commandline.world import TOO_MANY

MAX_BYTES = 32 << 20
MAX_UNPACKED = 64 << 20
"""Bytes of a compressed archive that are looked at."""

_ARCHIVES = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


def names(content: bytes) -> tuple[str, ...]:
    """Every name that unpacking or applying the content may write."""
    try:
        if content[:2] == b"PK":
            found = _zip(content)
        elif is_patch(text := content.decode("utf-8", "replace")):
            found = patched(text)
        else:
            found = _tar(content)
    except (*_ARCHIVES, NotImplementedError, RuntimeError, OverflowError):
        return (TOO_MANY,)
    return tuple(dict.fromkeys(found)) if len(found) <= MAX_NAMES else (TOO_MANY,)


def _zip(content: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = []
        for member in archive.infolist()[: MAX_NAMES + 1]:
            found.append(member.filename)
            if member.external_attr >> 28 == 0xA:  # a link, whose target is its content
                with archive.open(member) as link:
                    found.append(_link_target(member.filename, link.read(4096).decode("utf-8", "replace")))
        return found


def _tar(content: bytes) -> list[str]:
    found: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
        for member in archive:
            found.append(member.name)
            if member.issym():
                found.append(_link_target(member.name, member.linkname))
            elif member.islnk():
                found.append(member.linkname)
            if len(found) > MAX_NAMES or archive.offset > MAX_UNPACKED:
                return [TOO_MANY]
    return found


def _link_target(name: str, target: str) -> str:
    """Where a link leads from where it would lie; far above for what is absolute."""
    return posixpath.join(posixpath.dirname(name), "../" * 64 * target.startswith("/") + target.lstrip("/"))
