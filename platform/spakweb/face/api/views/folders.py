"""The folder of a source that is synced with specs, and the address that its repository reports pushes to."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from spakweb.face.api.operations import get, post
from spakweb.face.api.shapes import incoming as shapes
from spakweb.face.api.views.sources import SOURCE, find_source
from spakweb.face.api.views.specs import find_spec
from spakweb.store.folders.models import Folder
from spakweb.store.incoming.models import Receiver
from spakweb.work.folders import actions
from spakweb.work.incoming import actions as incoming
from spakweb.work.incoming import log

FOLDER, HOOK = f"{SOURCE}folder/", f"{SOURCE}hook/"


@get("spak-api-folder", FOLDER, gives=shapes.FolderShape)
def get_folder(request: Request, team: str, source: str) -> Any:
    """The folder that is synced, with its state and what the latest sync says of each file."""
    found = find_source(request, team, source, "source.view")
    return get_object_or_404(Folder.objects.select_related("person"), source=found)


@post("spak-api-folder", FOLDER, takes=shapes.FolderRequest, gives=shapes.FolderShape)
def set_folder(request: Request, team: str, source: str, body: Any) -> Any:
    """Sync a folder with specs of the team. Needs the scopes admin and edit."""
    found = find_source(request, team, source, "source.manage")
    return actions.set_up(request.user, found, **body())


@post("spak-api-folder-sync", f"{FOLDER}sync/", gives=shapes.FolderShape, status=202)
def sync_folder(request: Request, team: str, source: str) -> Any:
    """Ask for a sync now. Needs the scope edit."""
    found = find_source(request, team, source, "source.sync")
    actions.sync_now(request.user, found)
    return actions.of(found)


@post(
    "spak-api-folder-include", f"{FOLDER}include/",
    takes=shapes.IncludeRequest, gives=shapes.FolderShape, status=201,
)  # fmt: skip
def include_in_folder(request: Request, team: str, source: str, body: Any) -> Any:
    """Put a spec into the folder: the next sync makes its file. Needs the scope edit."""
    found = find_source(request, team, source, "source.sync")
    spec = find_spec(request, team, body()["spec"], "spec.edit")

    def work() -> Folder:
        actions.include(request.user, found, spec)
        return actions.of(found)

    return work


@post("spak-api-folder-remove", f"{FOLDER}remove/", status=204)
def remove_folder(request: Request, team: str, source: str) -> None:
    """Sync the folder no more; specs and files stay. Needs the scope admin."""
    actions.remove(request.user, find_source(request, team, source, "source.manage"))


@post("spak-api-hook", HOOK, gives=shapes.SecretShape, status=201)
def open_source_hook(request: Request, team: str, source: str) -> Any:
    """Make the address that the repository reports pushes to. Needs the scope admin."""
    return incoming.open_for(request.user, find_source(request, team, source, "source.manage"))


@post("spak-api-hook-rotate", f"{HOOK}rotate/", gives=shapes.SecretShape)
def rotate_source_hook(request: Request, team: str, source: str) -> Any:
    """A new secret; the one before is taken for 24 hours. Needs the scope admin."""
    found = find_source(request, team, source, "source.manage")
    secret = incoming.rotate(request.user, found)
    return Receiver.objects.get(source=found), secret


@post("spak-api-hook-remove", f"{HOOK}remove/", status=204)
def close_source_hook(request: Request, team: str, source: str) -> None:
    """Take no more pushes. Needs the scope admin."""
    incoming.close(request.user, find_source(request, team, source, "source.manage"))


@get("spak-api-hook-deliveries", f"{HOOK}deliveries/", gives=shapes.Deliveries)
def list_source_deliveries(request: Request, team: str, source: str) -> Any:
    """The newest messages that came, with what became of them. Needs the scope admin."""
    found = find_source(request, team, source, "source.manage")
    receiver = get_object_or_404(Receiver, source=found)
    return [row for row, _, _ in log.deliveries(receiver)]
