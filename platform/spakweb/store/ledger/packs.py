"""Cases that were brought, in Django's storage: one zip of a case's folder each, under the hash of its bytes.

The commits that a source gave a run are kept so too. `put` keeps one under its `key_of`, `fill` unpacks it
into a folder, `content` gives one file, `answers` the backend of its recording. No upload of a team is one of
them, so that no run can begin with the files of sealed checks.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage

from spak import canon
from spak.errors import RunError
from spak.llm.recorded import Recorded, read
from spak.workspace.unpack import unpack
from spakweb.store.ledger import stored_files, uploads

RECORDING = "recording.jsonl"


def key_of(folder: Path) -> str:
    """The key under which `put` keeps a folder."""
    return canon.digest(zipped(folder))


def put(folder: Path) -> str:
    """Keep the files of a case's folder, durably; gives the key. The same files again are the same key, and
    mend what is damaged. Raises: OSError."""
    data = zipped(folder)
    key = canon.digest(data)
    if _stored(key) != data:
        stored_files.keep(_name(key), [data])
    return key


def zipped(folder: Path) -> bytes:
    """A folder's files as a zip that follows from them alone."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(item for item in folder.rglob("*") if item.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if os.access(path, os.X_OK) else 0o100644) << 16
            archive.writestr(info, path.read_bytes())
    return held.getvalue()


def fill(key: str, folder: Path) -> None:
    """Unpack one into an empty folder. Raises: RunError `upload.changed`, UsageError `upload.*`."""
    unpack(io.BytesIO(_data(key)), folder, uploads.limits())


def answers(key: str) -> Any:
    """The backend that gives the answers of its recording. Raises: RunError `upload.changed`, UsageError."""
    with zipfile.ZipFile(io.BytesIO(_data(key))) as archive:
        lines = archive.read(RECORDING).splitlines() if RECORDING in archive.namelist() else []
    return Recorded(recordings=read(lines), name=RECORDING)


def content(key: str, name: str) -> bytes:
    """One of its files. Raises: RunError `upload.changed`."""
    with zipfile.ZipFile(io.BytesIO(_data(key))) as archive:
        return archive.read(name)


def _stored(key: str) -> bytes | None:
    """What is there under the key, unchecked."""
    try:
        with default_storage.open(_name(key)) as file:
            data: bytes = file.read()
    except FileNotFoundError:
        return None
    return data


def _data(key: str) -> bytes:
    data = _stored(key)
    if data is None:
        raise RunError("upload.changed", "the stored files of the case are gone", "bring it again")
    if canon.digest(data) != key:
        raise RunError("upload.changed", "the stored files of the case were changed", "bring it again")
    return data


def _name(key: str) -> str:
    return f"{uploads.CASES}/{key}{uploads.SUFFIX}"
