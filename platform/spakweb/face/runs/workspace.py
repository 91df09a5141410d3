"""The files of a run for its page: the tree of all of them, one that is looked at, and what changed."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from spak.door import Class
from spak.errors import UserError
from spak.portable import Names
from spakweb.face.runs import record_parts
from spakweb.ground.errors import Refused
from spakweb.ground.unsafe_text import reveal
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run
from spakweb.work.runs import files
from spakweb.work.sources import leaving

MOST = 2_000
"""Files that a page lists."""
MOST_ZIPPED, ZIP_BYTES = 10_000, 256 << 20
RENAMED = "spak-renamed.json"
"""Files of one zip, and their bytes unpacked."""
MOST_COMMENT = 65_535
"""Bytes of a zip's comment."""
SHOWN = 256 * 1024
"""Characters of a file that a page shows; the download has all."""


def pane(run: Run, key: str = "") -> dict[str, Any]:
    """What the tab shows; `key` names the file that is looked at."""
    before, now = files.roots(run)
    try:
        found = files.files_of(run)
        opened = opened_file(run, files.path_of(key)) if key else None
    except (UserError, OSError, ValueError) as error:
        return {"problem": files.problem(error), "files": (), "artifacts": []}
    changed = [file for file in found if file.state]
    return {
        "files": found,
        "tree": files.tree(found, MOST),
        "opened": opened,
        "missing": bool(key) and opened is None,
        "changed": changed,
        "parts": record_parts.changed_files(run, before, now) if changed else [],
        "candidates": [item for item in export.artifacts(run) if item["size"] is None],
    }


def opened_file(run: Run, path: str) -> dict[str, Any] | None:
    """One file with what a page can show of it: `text`, a picture, or neither."""
    found = next((file for file in files.files_of(run) if file.path == path), None)
    if found is None:
        return None
    shown: dict[str, Any] = {"file": found, "name": reveal(path), "kind": "hidden"}
    if not found.readable:
        return shown
    data = files.content(run, found)
    if leaving.hides(run)(path, data):
        return {**shown, "kind": "secret"}
    text = files.as_text(data)
    if text is not None:
        return {**shown, "kind": "text", "text": text[:SHOWN], "cut": len(text) > SHOWN}
    return {**shown, "kind": "image" if files.image_type(data) else "binary"}


def as_zip(run: Run, *, everything: bool = False) -> HttpResponseBase:
    """What the run made or changed, or all its files, as one zip; its best candidates are in `candidates/`.
    Files of secrets are left out; its comment says what of it would run by itself. Names are such as any
    system can write (spak.portable); RENAMED says what those were called that are not as they were. Raises:
    Refused `web.run_zip`."""
    try:
        hides = leaving.hides(run)
        found = [one for one in files.files_of(run) if one.readable and (everything or one.state)]
        if len(found) > MOST_ZIPPED or sum(one.size for one in found) > ZIP_BYTES:
            raise Refused(
                "web.run_zip", f"The files are more than {MOST_ZIPPED:,} or {ZIP_BYTES >> 20} MiB.",
                "Get them one at a time, or export the run.", 413,
            )  # fmt: skip
        stream = tempfile.SpooledTemporaryFile(max_size=export.IN_MEMORY)  # noqa: SIM115  closed when read
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            names, renamed = Names(), {}
            if run.ended:
                archive.comment = leaving.of(run).text().encode()[:MOST_COMMENT]
            for one in found:
                data = files.content(run, one)
                if hides(one.path, data):
                    continue
                name = names.of(one.path)
                if name != one.path:
                    renamed[name] = reveal(one.path)
                archive.writestr(zipfile.ZipInfo(name), data)
            for item in export.artifacts(run):
                if item["key"].startswith("blob/"):
                    name = names.fresh(f"candidates/{Path(item['name']).name}")
                    archive.writestr(zipfile.ZipInfo(name), export.blob(run, item["key"]))
            if renamed:
                archive.writestr(zipfile.ZipInfo(names.fresh(RENAMED)), json.dumps(renamed, indent=1) + "\n")
        stream.seek(0, 2)
    except (UserError, OSError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused("web.run_damaged", files.problem(error), "The operator restores it.", 409) from error
    response: HttpResponseBase = export.attachment(export.sent(stream, "application/zip"), f"{run.key}.zip")
    return response


def listed(run: Run) -> list[dict[str, Any]]:
    """The files that the run made or changed, without those of secrets, each with its class at the door; and
    those of its best candidate, which have none."""
    found = leaving.classes(run)
    rows = [(row, found.get(files.path_of(row["key"]))) for row in export.artifacts(run)]
    return [{**row, "leaves_as": str(of or "")} for row, of in rows if of is not Class.SECRET]


def as_file(run: Run, key: str, *, shown: bool = False) -> HttpResponseBase:
    """The bytes of a file: for the disk, or a picture for a page. Raises: KeyError, RunError."""
    path = files.path_of(key)
    data = files.read(run, path)
    if data is None or leaving.hides(run)(path, data):
        raise KeyError(path)
    kind = files.image_type(data) if shown else ""
    if not kind:
        return export.as_file(data, reveal(path))
    response = HttpResponse(data, content_type=kind)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = export.SANDBOX
    response["Cache-Control"] = "private, no-store"
    return response
