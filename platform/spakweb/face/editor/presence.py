"""Who has a spec open: a WebSocket that tells each page of the others, and when a version was saved.

All of it is hints. Nobody is locked out and nothing depends on it: saving compares versions by itself. A page
that joins asks the others to name themselves, so that no list is kept anywhere. A page whose person has left
the team or signed out is closed: at once, or before it would hear anything more.
"""

from __future__ import annotations

import time
from typing import Any, Literal, TypedDict

from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import get_channel_layer
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import Http404

from spakweb.face.streams.stream import CROWDED, Crowded, hub
from spakweb.face.streams.viewers import SIGNED_OUT, Viewer, over
from spakweb.ground import access
from spakweb.ground.teams.models import Membership
from spakweb.store.specs.models import Spec, SpecVersion

NOT_YOURS = 4404
ASK_S = 2.0
"""For how long what was found of a membership holds."""


class Here(TypedDict):
    """A page says who is looking at it; `ask` wants the others to say so too."""

    type: Literal["spec.here"]
    channel: str
    id: int
    name: str
    ask: bool


class Gone(TypedDict):
    """Somebody closed the editor of a spec."""

    type: Literal["spec.gone"]
    channel: str


class Saved(TypedDict):
    """Somebody saved a version of a spec."""

    type: Literal["spec.saved"]
    version: int
    base: int
    by: str


class Look(TypedDict):
    """A membership or a session of the person ended."""

    type: Literal["spec.look"]


class Presence(AsyncJsonWebsocketConsumer):
    """The stream of who has a spec open in the editor."""

    group = ""
    over = False
    placed = False

    async def connect(self) -> None:
        """Accept a person who may see the spec, and say that they are here."""
        await self.accept()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        named = self.scope["url_route"]["kwargs"]
        spec = await self._find(user, named["team"], named["spec"])
        if spec is None:
            await self.close(NOT_YOURS)
            return
        try:
            await hub().take_place(user.pk)
        except Crowded:
            await self.close(CROWDED)
            return
        self.placed = True
        self.people: dict[str, tuple[int, str]] = {}
        self.sure_until = time.monotonic() + ASK_S
        self.own = f"spec.person.{user.pk}"
        await self.channel_layer.group_add(self.own, self.channel_name)
        pk, self.team = spec
        self.viewer = Viewer.of(user, self.scope.get("session"), named=False)
        self.group = f"spec.{pk}"
        await self.channel_layer.group_add(self.group, self.channel_name)
        await self.channel_layer.group_send(self.group, self._here(ask=True))

    @database_sync_to_async
    def _find(self, user: Any, team: str, spec: str) -> tuple[int, int] | None:
        try:
            found: Spec = access.find(user, "spec.view", Spec, team__slug=team, slug=spec)
        except (Http404, PermissionDenied):
            return None
        return found.pk, found.team_id

    @database_sync_to_async
    def _ended(self) -> int | None:
        return over([(self.viewer, self.team)]).get((self.viewer, self.team))

    def _here(self, ask: bool) -> Here:
        user = self.scope["user"]
        return {
            "type": "spec.here",
            "channel": self.channel_name,
            "id": user.pk,
            "name": str(user)[:80],
            "ask": ask,
        }

    async def disconnect(self, code: int) -> None:
        """Say that the person has gone."""
        if self.placed:
            self.placed = False
            hub().give_place(self.scope["user"].pk)
        if self.group:
            for group in (self.group, self.own):
                await self.channel_layer.group_discard(group, self.channel_name)
            gone: Gone = {"type": "spec.gone", "channel": self.channel_name}
            await self.channel_layer.group_send(self.group, gone)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any
    ) -> None:
        """A page has nothing to say here."""

    async def spec_here(self, event: Here) -> None:
        """Take that somebody is here, and answer where they ask."""
        self.people[event["channel"]] = event["id"], event["name"]
        if event["ask"] and event["channel"] != self.channel_name:
            await self.channel_layer.send(event["channel"], self._here(ask=False))
        await self._show()

    async def spec_gone(self, event: Gone) -> None:
        """Take that somebody has gone."""
        self.people.pop(event["channel"], None)
        await self._show()

    async def spec_saved(self, event: Saved) -> None:
        """Send on that somebody saved."""
        await self._send({"type": "saved", **{key: event[key] for key in ("version", "base", "by")}})

    async def _show(self) -> None:
        people = sorted(set(self.people.values()), key=lambda person: person[1])
        await self._send({"type": "people", "people": [{"id": key, "name": name} for key, name in people]})

    async def spec_look(self, event: Look) -> None:
        """Check again that the person may still see the spec."""
        self.sure_until = 0.0
        await self._still()

    async def _still(self) -> bool:
        """False, and the page is closed, when the spec is none of the person's any more."""
        if self.over or time.monotonic() < self.sure_until:
            return not self.over
        if code := await self._ended():
            self.over = True
            await self.close(code)
            return False
        self.sure_until = time.monotonic() + ASK_S
        return True

    async def _send(self, news: dict[str, Any]) -> None:
        if await self._still():
            await self.send_json(news)


@receiver(post_delete, sender=Membership, dispatch_uid="spak-editor-look-Membership")
@receiver(post_delete, sender=Session, dispatch_uid="spak-editor-look-Session")
def look(sender: type[Membership | Session], instance: Membership | Session, **kwargs: Any) -> None:
    """The pages of whoever left a team or signed out look whether they may stay."""
    layer = get_channel_layer()
    user = (
        instance.user_id if isinstance(instance, Membership) else instance.get_decoded().get("_auth_user_id")
    )
    if layer is not None and user:
        group, news = f"spec.person.{user}", Look(type="spec.look")
        transaction.on_commit(lambda: async_to_sync(layer.group_send)(group, news), robust=True)


@receiver(post_save, sender=SpecVersion, dispatch_uid="spak-editor-presence")
def announce_version(sender: type[SpecVersion], instance: SpecVersion, created: bool, **kwargs: Any) -> None:
    """A hint to whoever has the spec open, once the version is there for all to see."""
    layer = get_channel_layer()
    if layer is None or not created or instance.number == 1:
        return
    news: Saved = {
        "type": "spec.saved",
        "version": instance.number,
        "base": instance.number - 1,
        "by": instance.saved_by[:80],
    }
    transaction.on_commit(
        lambda: async_to_sync(layer.group_send)(f"spec.{instance.spec_id}", news), robust=True
    )
