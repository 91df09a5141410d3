"""Runs of exported specs as resources: the run, its records, its files. Read only; each answer names the run,
how many records it has and the hash of the last one.

Takes the runs that somebody sees; gives texts. Files of secrets, and files that are no text, are not given.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

from django.db.models import QuerySet
from django.http import HttpRequest

from spak.mcp.sdk_server import Content, Resource
from spakweb.face.api.shapes.common import RunShape
from spakweb.ground import access
from spakweb.ground.text import as_number
from spakweb.ground.unsafe_text import reveal
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.specs import reach
from spakweb.work.runs import files
from spakweb.work.sources import leaving

LISTED = 50
MOST_RECORDS = 500
JSON, LINES, TEXT = "application/json", "application/x-ndjson", "text/plain"
FORMS = (
    Resource("spak://runs/{run}", "run", "A run as it is.", JSON),
    Resource(
        "spak://runs/{run}/ledger/{from}", "ledger",
        f"At most {MOST_RECORDS} records of a run, as its ledger has them, from that one on.", LINES,
    ),
    Resource("spak://runs/{run}/files/{+path}", "file", "A text file of a run's workspace.", TEXT),
)  # fmt: skip


def listed(rows: QuerySet[Run]) -> list[Resource]:
    """The newest runs, and the forms of addresses."""
    found = [
        Resource(
            f"spak://runs/{run.key}", run.key, f"{run.name}: {run.shown_state}, {run.count} records", JSON,
            about(run),
        )
        for run in rows.order_by("-pk")[:LISTED]
    ]  # fmt: skip
    return [*found, *FORMS]


def read(request: HttpRequest, user: Any, rows: QuerySet[Run], uri: str) -> Content | None:
    """What is at an address. Raises: Http404, PermissionDenied, UserError."""
    try:
        found = urlsplit(uri)
    except ValueError:
        return None
    if (found.scheme, found.netloc) != ("spak", "runs"):
        return None
    key, _, rest = unquote(found.path).removeprefix("/").partition("/")
    run: Run = access.find(user, "run.view", rows, key=key)
    part, _, name = rest.partition("/")
    if not rest:
        return Content(json.dumps(RunShape.of(request, run), default=str), JSON, about(run))
    reach.require_shown(user, run)
    if part == "ledger" and (begin := as_number(name)) is not None:
        lines = RunRecord.objects.filter(run=run, seq__gte=begin).order_by("seq")[:MOST_RECORDS]
        text = "".join(bytes(row.line).decode() for row in lines)
        return Content(text, LINES, {**about(run), "from": begin})
    data = files.read(run, name) if part == "files" else None
    hidden = data is None or leaving.hides(run)(name, data)
    content = files.as_text(data) if data is not None and not hidden else None
    return None if content is None else Content(reveal(content), TEXT, about(run))


def about(run: Run) -> dict[str, Any]:
    """What each answer says of its run: the id, how many records it has, and the hash of the last one."""
    return {"run": run.key, "head": run.head, "records": run.count}
