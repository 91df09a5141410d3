"""The folder of a source that is synced with specs, and the address that its repository reports pushes to."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb.api import shapes_incoming as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.views_sources import find_source
from spakweb.api.views_specs import find_spec
from spakweb.folders import actions
from spakweb.folders.models import Folder
from spakweb.incoming import actions as incoming
from spakweb.incoming.models import Receiver


class SourceFolder(View):
    """The folder of a source."""

    answers = shapes.FolderShape

    @extend_schema(operation_id="get_folder", responses=shapes.FolderShape)
    def get(self, request: Request, team: str, source: str) -> Response:
        """The folder that is synced, with its state and what the latest sync says of each file."""
        found = find_source(request, team, source, "source.view")
        row = Folder.objects.select_related("person").filter(source=found).first()
        if row is None:
            raise Http404
        return Response(shapes.folder_of(row))

    @extend_schema(
        operation_id="set_folder", request=shapes.FolderRequest, responses={200: shapes.FolderShape}
    )
    def post(self, request: Request, team: str, source: str) -> Response:
        """Sync a folder with specs of the team. Needs the scopes admin and edit."""
        found = find_source(request, team, source, "source.manage")
        given = self.given(request, shapes.FolderRequest)
        return Response(shapes.folder_of(actions.set_up(request.user, found, **given)))


class FolderSync(View):
    """A sync."""

    @extend_schema(operation_id="sync_folder", request=None, responses={202: shapes.FolderShape})
    def post(self, request: Request, team: str, source: str) -> Response:
        """Ask for a sync now. Needs the scope edit."""
        found = find_source(request, team, source, "source.sync")
        actions.sync_now(request.user, found)
        return Response(shapes.folder_of(actions.of(found)), status=202)


class FolderInclude(View):
    """A spec for the folder."""

    @extend_schema(
        operation_id="include_in_folder", request=shapes.IncludeRequest, responses={201: shapes.FolderShape}
    )
    def post(self, request: Request, team: str, source: str) -> Response:
        """Put a spec into the folder: the next sync makes its file. Needs the scope edit."""
        found = find_source(request, team, source, "source.sync")
        slug = self.given(request, shapes.IncludeRequest)["spec"]
        spec = find_spec(request, team, slug, "spec.edit")

        def work() -> Response:
            actions.include(request.user, found, spec)
            return Response(shapes.folder_of(actions.of(found)), status=201)

        return once(request, work)


class FolderRemove(View):
    """Ending a sync."""

    @extend_schema(operation_id="remove_folder", request=None, responses={204: None})
    def post(self, request: Request, team: str, source: str) -> Response:
        """Sync the folder no more; specs and files stay. Needs the scope admin."""
        actions.remove(request.user, find_source(request, team, source, "source.manage"))
        return Response(status=204)


class SourceHook(View):
    """The address for pushes."""

    @extend_schema(operation_id="open_source_hook", request=None, responses={201: shapes.SecretShape})
    def post(self, request: Request, team: str, source: str) -> Response:
        """Make the address that the repository reports pushes to. Needs the scope admin."""
        found = find_source(request, team, source, "source.manage")
        return Response(shapes.secret_of(request, *incoming.open_for(request.user, found)), status=201)


class SourceHookRotate(View):
    """The secret of the address for pushes."""

    @extend_schema(operation_id="rotate_source_hook", request=None, responses={200: shapes.SecretShape})
    def post(self, request: Request, team: str, source: str) -> Response:
        """A new secret; the one before is taken for 24 hours. Needs the scope admin."""
        found = find_source(request, team, source, "source.manage")
        secret = incoming.rotate(request.user, found)
        return Response(shapes.secret_of(request, Receiver.objects.get(source=found), secret))


class SourceHookRemove(View):
    """Ending the address for pushes."""

    @extend_schema(operation_id="close_source_hook", request=None, responses={204: None})
    def post(self, request: Request, team: str, source: str) -> Response:
        """Take no more pushes. Needs the scope admin."""
        incoming.close(request.user, find_source(request, team, source, "source.manage"))
        return Response(status=204)


class SourceHookDeliveries(View):
    """Pushes that were reported."""

    answers = shapes.Deliveries

    @extend_schema(operation_id="list_source_deliveries", responses=shapes.Deliveries)
    def get(self, request: Request, team: str, source: str) -> Response:
        """The newest messages that came, with what became of them. Needs the scope admin."""
        found = find_source(request, team, source, "source.manage")
        receiver = Receiver.objects.filter(source=found).first()
        if receiver is None:
            raise Http404
        return Response(shapes.deliveries_of(receiver))
