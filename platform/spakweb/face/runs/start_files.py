"""The files of a run that is about to start: brought with the form or before it, kept with the spec, fetched
from a source of the team, or none.

`bring` takes a zip, or what the page's script packed into one (`packed`), and answers with what is
in it; `chosen` reads the form; `offered` is what the form shows. Without a script the form itself brings a
zip or some files.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from spakweb.face.specs.views import find_spec
from spakweb.ground.errors import Refused
from spakweb.ground.unsafe_text import reveal
from spakweb.store.runs.models import Upload
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.runs import actions
from spakweb.work.sources import actions as sources
from spakweb.work.worker.beginning import source_of

SHOWN = 200
"""Names that an answer lists."""
IN_MEMORY = 1 << 20
NONE, GIT = "none", "git"


@require_POST
def bring(request: HttpRequest, team: str, spec: str) -> JsonResponse:
    """Take files for a run of this spec; gives the key that starts one with them, and their names."""
    found = find_spec(request, team, spec, "run.start")
    upload, contents = _taken(request, found, request.FILES.getlist("brought"))
    return JsonResponse(
        {
            "key": upload.key,
            "name": upload.name,
            "files": upload.files,
            "size": upload.size,
            "folder": reveal(contents.folder),
            "left_out": len(contents.left_out),
            "shown": [{"path": reveal(item.path), "size": item.size} for item in contents.items[:SHOWN]],
        }
    )


def chosen(request: HttpRequest, spec: Spec) -> dict[str, Any]:
    """What the form says, as `runs.actions.start` takes it; empty: as it is usual.

    Raises: Refused `web.run_files`, `upload.*`, `git.*`.
    """
    brought = [file for file in request.FILES.getlist("brought") if file.name]
    key = request.POST.get("files", "")
    if brought:
        return {"files": _taken(request, spec, brought)[0]}
    if key == GIT:
        named = (request.POST.get(name, "").strip() for name in ("source", "ref"))
        return {"begun_from": sources.begin(request.user, spec, *named)}
    if key in ("", NONE):
        return {"bare": key == NONE}
    return {"files": find_upload(spec, key)}


def find_upload(spec: Spec, key: str) -> Upload:
    """Raises: Refused `web.run_files`."""
    found = Upload.objects.filter(team=spec.team, key=key).first() if key.isprintable() else None
    if found is None:
        raise Refused(
            "web.run_files", "The files for this run are no longer here.", "Choose them again.", 410
        )
    return found


def offered(spec: Spec, given: Any) -> dict[str, Any]:
    """The choices of the form, with the one that is taken."""
    key = given.get("files", "")
    named = Upload.objects.filter(team=spec.team, key=key).first() if key.isprintable() else None
    example = source_of(spec.slug)
    kept = actions.kept_files(spec)
    return {
        "kept": kept,
        "example": sum(path.is_file() for path in example.rglob("*")) if example and not kept else 0,
        "brought": named,
        "bare": key == NONE,
        "git": key == GIT,
        "sources": list(Source.objects.filter(team=spec.team)),
        "source": given.get("source", ""),
        "ref": given.get("ref", ""),
        "most_files": settings.RUN_FILES,
        "most_bytes": settings.RUN_FILES_BYTES,
        "most_mib": settings.RUN_FILES_BYTES >> 20,
    }


def _taken(request: HttpRequest, spec: Spec, brought: Sequence[UploadedFile]) -> tuple[Upload, Any]:
    if not brought:
        raise Refused("web.run_files", "No file came.", "Choose files, a folder or a zip.")
    first = brought[0]
    if len(brought) == 1 and str(first.name).lower().endswith(".zip"):
        strip = "packed" not in request.POST
        archive: Any = first.file
        return actions.bring_files(request.user, spec, str(first.name), archive, first.size or 0, strip=strip)
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as packed:
        _pack(brought, packed)  # type: ignore[arg-type]
        name = str(first.name) if len(brought) == 1 else f"{first.name} and {len(brought) - 1} more"
        return actions.bring_files(request.user, spec, name, packed, packed.tell())  # type: ignore[arg-type]


def _pack(brought: Sequence[UploadedFile], into: BinaryIO) -> None:
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in brought:
            with archive.open(zipfile.ZipInfo(str(file.name)), "w") as entry:
                for chunk in file.chunks():
                    entry.write(chunk)
