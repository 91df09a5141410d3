"""Every write that people make to the folder of a source. Each act is an event of the team."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.sources import refs
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.folders import queue
from spakweb.work.folders.reading import ENDING, MOST

PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*\Z")
LONGEST = 200


def set_up(user: Any, source: Source, branch: str, path: str = "", out: str = "none") -> Folder:
    """Sync a folder of the source with specs of the team from now on, with the rights of whoever asks for it.
    Another branch or path starts over: what is known of the files is dropped, the specs are kept.

    Raises: Refused `folder.path`, `folder.out`, `git.ref`, `git.ref_not_allowed`, `git.forge`.
    """
    access.require(user, "source.manage", source)
    access.require(user, "spec.edit", source.team)
    full = _branch(source, branch.strip())
    place = path.strip().strip("/")
    if place and (not PATH.match(place) or len(place) > LONGEST):
        hint = "Letters, digits, dots, dashes and underscores, such as agents/specs; empty for all."
        raise Refused("folder.path", f"{place[:60]!r} is no folder of a repository.", hint, 422)
    if out not in Folder.Out.values:
        hint = f"One of: {', '.join(Folder.Out.values)}."
        raise Refused("folder.out", "Versions go out as a commit, a pull request, or not at all.", hint, 422)
    if out == "pull" and not source.forge:
        hint = "Add the source with GitHub or GitLab."
        raise Refused("git.forge", f"{source.name} opens no pull requests.", hint, 409)
    with transaction.atomic():
        list(Source.objects.select_for_update(no_key=True).filter(pk=source.pk).values_list("pk"))
        Folder.objects.filter(source=source).exclude(branch=full, path=place).delete()
        about = {"out": out, "person": user, "active": True, "error": ""}
        made, _ = Folder.objects.update_or_create(
            source=source, defaults=about, create_defaults={**about, "branch": full, "path": place}
        )
        record(user, "source.folder_set", source.name, source.team, ref=full, path=place, out=out)
        queue.want(Folder.objects.filter(pk=made.pk))
    return made


def _branch(source: Source, branch: str) -> str:
    """The whole name of a branch that the source allows."""
    full = branch if branch.startswith("refs/") else refs.HEADS + (branch or "")
    if not branch or not full.startswith(refs.HEADS):
        raise Refused("git.ref", "A folder is synced with a branch.", "main", 422)
    refs.allowed(full, source.patterns)
    return full


def remove(user: Any, source: Source) -> None:
    """Stop syncing it. Specs, patches and files are kept. Raises: Refused `folder.none`."""
    access.require(user, "source.manage", source)
    with transaction.atomic():
        of(source).delete()
        record(user, "source.folder_removed", source.name, source.team)


def sync_now(user: Any, source: Source) -> Folder:
    """Ask for a sync. Raises: Refused `folder.none`, `folder.off`."""
    access.require(user, "source.sync", source)
    with transaction.atomic():
        found = of(source)
        if not queue.want(Folder.objects.filter(pk=found.pk)):
            hint = "An admin sets it up again."
            raise Refused("folder.off", "The folder is not synced any more.", hint, 409)
        record(user, "source.folder_asked", source.name, source.team)
    return found


def include(user: Any, source: Source, spec: Spec) -> FolderFile:
    """Put a spec of the team into the folder: its next sync makes the file.

    Raises: Refused `folder.none`, `folder.nothing_out`, `folder.taken`, `folder.many`.
    """
    access.require(user, "source.sync", source)
    access.require(user, "spec.edit", spec)
    found = of(source)
    if found.out == Folder.Out.NONE:
        hint = "An admin lets versions go out as commits or pull requests."
        raise Refused("folder.nothing_out", "Nothing goes out to this folder.", hint, 409)
    path = f"{spec.slug}{ENDING}"
    try:
        with transaction.atomic():
            if spec.team_id != source.team_id or FolderFile.objects.filter(folder=found).count() >= MOST:
                hint = "Another source may have a folder too."
                raise Refused("folder.many", f"A folder has at most {MOST} files.", hint, 409)
            made = FolderFile.objects.create(folder=found, path=path, spec=spec)
            queue.want(Folder.objects.filter(pk=found.pk))
            record(user, "source.folder_included", source.name, source.team, spec=spec.slug)
    except IntegrityError as error:
        hint = "Its spec has the file's text already."
        raise Refused("folder.taken", f"{spec.slug} is in a folder already.", hint, 409) from error
    return made


def of(source: Source) -> Folder:
    """The folder of a source. Raises: Refused `folder.none`."""
    found = Folder.objects.select_related("source__team", "person").filter(source=source).first()
    if found is None:
        hint = "An admin names a branch and a folder."
        raise Refused("folder.none", f"No folder of {source.name} is synced.", hint, 409)
    return found
