"""The names in an archive or a patch: what unpacking or applying it would write.

Takes the content of a file; gives names, those that links in it lead to as well. What is no archive that is
understood here, or has too many members, is TOO_MANY: nobody can say what it would write.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import re
import tarfile
import zipfile
import zlib

from spak.commandline.world import TOO_MANY

MAX_BYTES = 32 << 20
MAX_NAMES = 20_000
MAX_UNPACKED = 64 << 20
"""Bytes of a compressed archive that are looked at."""

_NAMED = re.compile(
    rb"^(?:---|\+\+\+|\*\*\*|Index:|(?:rename|copy) (?:from|to)|diff --git|diff -\S+) +([^\r\n]*)",
    re.MULTILINE,
)
_ARCHIVES = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


def names(content: bytes) -> tuple[str, ...]:
    """Every name that unpacking or applying the content may write."""
    try:
        if content[:2] == b"PK":
            found = _zip(content)
        elif _NAMED.search(content):
            found = _patch(content)
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
                    found.append(_beside(member.filename, link.read(4096).decode("utf-8", "replace")))
        return found


def _tar(content: bytes) -> list[str]:
    found: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
        for member in archive:
            found.append(member.name)
            if member.issym():
                found.append(_beside(member.name, member.linkname))
            elif member.islnk():
                found.append(member.linkname)
            if len(found) > MAX_NAMES or archive.offset > MAX_UNPACKED:
                return [TOO_MANY]
    return found


def _beside(name: str, target: str) -> str:
    """Where a link leads from where it would lie; far above for what is absolute."""
    return posixpath.join(posixpath.dirname(name), "../" * 64 * target.startswith("/") + target.lstrip("/"))


def _patch(content: bytes) -> list[str]:
    """The names of a patch with any number of leading folders taken away: patch guesses too."""
    found = []
    for line in _NAMED.findall(content)[: MAX_NAMES + 1]:
        for name in re.split(r"[\t ]+", line.decode("utf-8", "replace")):
            parts = name.strip('"').split("/")
            if name not in ("", "/dev/null", "----", "****"):
                found += ["/".join(parts[at:]) for at in range(len(parts))]
    return found
