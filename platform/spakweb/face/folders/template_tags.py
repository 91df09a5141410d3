"""`{% folder_of source %}`: the folder of a source on its page: its state, its last result and its forms."""

from __future__ import annotations

from typing import Any

from django import template

from spakweb.ground import access
from spakweb.ground.teams.models import Role
from spakweb.store.folders.models import Folder
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.folders import queue
from spakweb.work.jobs import queue as jobs

register = template.Library()

PILLS = {"new": "queued", "same": "succeeded", "look": "waiting", "failed": "failed"}
GLYPHS = {"new": "history", "same": "tick", "look": "warn", "failed": "cross"}
WORDS = {
    "created": "Created",
    "changed": "Changed",
    "removed": "Removed",
    "moved": "Renamed",
    "patch": "In review",
    "conflict": "Conflict",
    "invalid": "Not saved",
    "wrong": "Left out",
    "waits": "Waits",
    "left": "Differs",
    "sent": "Sent",
}
MOST_SPECS = 500


@register.inclusion_tag("folders/_folder.html", takes_context=True)
def folder_of(context: dict[str, Any], source: Source) -> dict[str, Any]:
    """What the section shows, for the person of the page."""
    user = context["request"].user
    found = Folder.objects.select_related("person", "source").filter(source=source).first()
    may_manage, may_sync = access.can_each(user, source, "source.manage", "source.sync")
    specs = Spec.objects.filter(team=source.team, archived_at=None, file=None)
    offered = found is not None and found.active and found.out != Folder.Out.NONE and may_sync
    return {
        "request": context["request"],
        "csrf_token": context.get("csrf_token"),
        "team": source.team,
        "source": source,
        "folder": found,
        "pill": PILLS[found.state] if found else "",
        "glyph": GLYPHS[found.state] if found else "",
        "lines": [(line, WORDS.get(line["what"], line["what"])) for line in found.result] if found else [],
        "syncing": found is not None and found.active and jobs.is_wanted(queue.SYNC, found.pk),
        "lone_admin": source.team.memberships.filter(role=Role.ADMIN).count() == 1,
        "may_manage": may_manage,
        "may_sync": may_sync,
        "outs": [(value, words) for value, words in Folder.Out.choices if value != "pull" or source.forge],
        "specs": specs.order_by("name")[:MOST_SPECS] if offered else (),
        "branch": _branch(source, found),
    }


def _branch(source: Source, found: Folder | None) -> str:
    """What the form begins with: the folder's branch, or the first one of the source that has no star."""
    if found is not None:
        return found.short_branch
    usual = (one for one in source.patterns if one.startswith("refs/heads/") and "*" not in one)
    return next(usual, "").removeprefix("refs/heads/")
