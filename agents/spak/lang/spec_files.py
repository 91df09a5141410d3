"""Files beside a spec: the reader that `imports.resolve` takes where a spec lies on a disk.

It is apart from the rest of the language, which opens no file. Links are followed as long as they end beneath
the spec's folder; only regular files are read, and no more of them than a spec may be long.
"""

from __future__ import annotations

from pathlib import Path

from spak.inputs import read_at_most
from spak.lang.imports import Reader, Unreadable
from spak.lang.limits import MAX_BYTES


def folder_reader(spec: Path) -> Reader:
    """A reader of the files in a spec's folder and below. It raises Unreadable for what it will not give."""
    folder = spec.parent.resolve()

    def read(path: str) -> bytes | None:
        try:
            found = (folder / path).resolve(strict=True)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError) as error:
            raise Unreadable(
                f"can not be read: {getattr(error, 'strerror', None) or 'links in a circle'}"
            ) from error
        if not found.is_relative_to(folder):
            raise Unreadable("is a link that leads out of the spec's folder")
        if not found.is_file():
            raise Unreadable("is not a file")
        try:
            data = read_at_most(found, MAX_BYTES)
        except OSError as error:
            raise Unreadable(f"can not be read: {error.strerror}") from error
        if data is None:
            raise Unreadable(f"is larger than {MAX_BYTES // 1024} KB")
        return data

    return read
