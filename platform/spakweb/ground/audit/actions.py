"""`record(...)` adds one event; there is nothing that changes or removes one."""

from __future__ import annotations

from typing import Any

from spakweb.ground.audit.middleware import current
from spakweb.ground.audit.models import Event
from spakweb.ground.teams.models import Team


def record(
    actor: Any,
    action: str,
    thing: str = "",
    team: Team | None = None,
    *,
    before: str = "",
    after: str = "",
    **detail: Any,
) -> Event:
    """Call it inside the transaction of what it tells, so that neither exists without the other. Of a program
    `token` in the detail says which."""
    source = current()
    known = actor if getattr(actor, "is_authenticated", False) else None
    if token := getattr(known, "token", None):  # the person's program acts
        detail["token"] = {"id": token.pk, "name": token.name}
    return Event.objects.create(
        team=team,
        actor=known,
        actor_name=(known.username if known else "")[:150],
        action=action,
        thing=thing[:200],
        before=before,
        after=after,
        detail=detail,
        ip=source.ip,
        request=source.request,
    )
