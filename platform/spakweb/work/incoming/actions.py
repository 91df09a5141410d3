"""Every write to receivers: an admin's acts, each an event of the team, and `receive`, which takes a message.

Whoever has no secret learns nothing: a message without a right signature is answered the same whether or not
there is such a receiver. A message that was done is known again by what its signature covers, and nothing is
done twice. Each message that came to a receiver is in its log, with the reason; nothing of its body is.
"""

from __future__ import annotations

import base64
import hmac
import secrets as randomness
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.database.lock_wait import short_lock_wait
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import one_line
from spakweb.store.incoming.models import Received, Receiver
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Source
from spakweb.work.incoming import payloads, signatures
from spakweb.work.incoming.signatures import Judged

OVERLAP = timedelta(hours=24)
"""For so long after a rotation the secret before is taken too."""
PER_MINUTE = 60
"""Messages of one receiver in a minute that may do something, and ignored ones that are logged."""
REMEMBERED, LOGGED, WRONG = 1000, 200, 20
"""Messages of a receiver that stay in its log: those that were done, which are known again, others, and those
whose signature or time was wrong. Who has no secret pushes none of the others out."""

State = Received.State


@dataclass(frozen=True, slots=True)
class Message:
    """A message whose signature held."""

    event: str
    payload: Any
    push: payloads.Push


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message."""

    state: Any
    """A Received.State."""
    reason: str = ""
    run: Run | None = None


Handle = Callable[[Receiver, Message], Outcome]
Pointers = Callable[[Receiver], tuple[str, str]]
"""Where messages to a receiver name a ref and a commit."""


# ---- people


def open_for(user: Any, source: Source) -> tuple[Receiver, str]:
    """The address that the repository of a source reports pushes to, and its secret, shown this once.

    Raises: Refused `web.hook_there`.
    """
    access.require(user, "source.manage", source)
    with transaction.atomic():
        list(Source.objects.select_for_update(no_key=True).filter(pk=source.pk).values_list("pk"))
        if Receiver.objects.filter(source=source).exists():
            raise Refused("web.hook_there", f"{source.name} takes pushes already.", "Rotate its secret.", 409)
        made, secret = make(user, source.team, source)
        record(user, "source.hook_made", source.name, source.team)
    return made, secret


def make(user: Any, team: Team, source: Source | None = None) -> tuple[Receiver, str]:
    """A new receiver, for an action that has asked for the rights."""
    salt, key = randomness.token_hex(24), randomness.token_hex(16)
    return Receiver.objects.create(team=team, source=source, key=key, salt=salt, made_by=user), secret_of(
        salt
    )


def rotate(user: Any, source: Source) -> str:
    """A new secret of a source's receiver, shown this once; the one before is taken too for OVERLAP.

    Raises: Refused `web.hook_none`.
    """
    access.require(user, "source.manage", source)
    with transaction.atomic():
        secret = renew(_of(source))
        record(user, "source.hook_rotated", source.name, source.team)
    return secret


def renew(receiver: Receiver) -> str:
    """The same, for an action that has asked for the rights."""
    found = Receiver.objects.select_for_update(no_key=True).get(pk=receiver.pk)
    now = clock.now()
    found.old_salt, found.old_until, found.rotated_at = found.salt, now + OVERLAP, now
    found.salt = randomness.token_hex(24)
    found.save(update_fields=["salt", "old_salt", "old_until", "rotated_at"])
    return secret_of(found.salt)


def close(user: Any, source: Source) -> None:
    """Take no more pushes. The log goes too. Raises: Refused `web.hook_none`."""
    access.require(user, "source.manage", source)
    with transaction.atomic():
        _of(source).delete()
        record(user, "source.hook_removed", source.name, source.team)


def _of(source: Source) -> Receiver:
    found = Receiver.objects.filter(source=source).first()
    if found is None:
        raise Refused("web.hook_none", f"{source.name} takes no pushes.", "Reload the page.", 409)
    return found


# ---- messages


def secret_of(salt: str) -> str:
    """The secret as the sender keeps it: `whsec_` and base64 of 32 bytes."""
    key = hmac.digest(settings.SECRET_KEY.encode(), b"spak incoming webhook\0" + salt.encode(), "sha256")
    return signatures.PREFIX + base64.b64encode(key).decode()


def receive(
    key: str,
    headers: Mapping[str, str],
    body: bytes,
    handle: Handle,
    pointers: Pointers = lambda receiver: payloads.PUSHED,
) -> Outcome:
    """Take one message; `handle` does what it asks for. Header names are small.

    Raises: Refused `web.hook_signature` (401), `web.hook_time` (400), `web.hook_rate` (429), `web.hook_body`
    (400), and what `handle` raises, which is logged.
    """
    now = clock.now()
    rows = Receiver.objects.select_related("team", "source")
    receiver = rows.filter(key=key).first() if "\0" not in key else None  # PostgreSQL takes no NUL
    judged = signatures.judge(headers, body, _secrets(receiver, now), now.timestamp())
    if receiver is None or not judged.holds:
        if receiver is not None:
            _log_wrong(receiver, judged, now)
        raise _late(judged) if receiver is not None and judged.late else _unsigned()
    _require_calm(receiver, judged, now)
    push = payloads.Push()
    event = judged.event
    refused: Refused | None = None
    with short_lock_wait():
        list(Receiver.objects.select_for_update(no_key=True).filter(pk=receiver.pk).values_list("pk"))
        try:
            payload = payloads.read(body)
            push = payloads.pushed(payload, *pointers(receiver))
            done = _repeated(receiver, judged)
            signed = _type(payload)
            event = (signed or event) if signatures.STANDARD in headers else (event or signed)
            if done is None:
                with transaction.atomic():
                    done = handle(receiver, Message(event, payload, push))
        except Refused as why:
            refused, done = why, Outcome(State.REFUSED, f"{why.code}: {why.message}")
        if _is_news(receiver, judged, done, now):
            _log(receiver, judged, done, push, event)
    if refused is not None:
        raise refused
    return done


def _secrets(receiver: Receiver | None, now: datetime) -> list[str]:
    """Those that it is signed with; as much work where there is no receiver."""
    if receiver is None:
        return [secret_of("none")]
    salts = [receiver.salt]
    if receiver.old_salt and receiver.old_until is not None and now < receiver.old_until:
        salts.append(receiver.old_salt)
    return [secret_of(salt) for salt in salts]


def _unsigned() -> Refused:
    hint = (
        "Is the address right, and the secret the newest one? docs/webhooks.md has the forms of signatures."
    )
    return Refused("web.hook_signature", "No receiver here takes this message.", hint, 401)


def _late(judged: Judged) -> Refused:
    return Refused("web.hook_time", f"The message is not taken. {judged.why}", "Set the sender's clock.", 400)


def _lately(receiver: Receiver, now: datetime) -> QuerySet[Received]:
    """What was logged in the last minute."""
    return receiver.deliveries.filter(at__gte=now - timedelta(minutes=1))


def _log_wrong(receiver: Receiver, judged: Judged, now: datetime) -> None:
    """The first of a minute whose signature is wrong, and the first that is late, which alone has an id."""
    same = ~Q(message="") if judged.late else Q(message="")
    if not _lately(receiver, now).filter(same, known_by="").exists():
        with short_lock_wait():
            _log(receiver, judged, Outcome(State.REFUSED, judged.why))


def _require_calm(receiver: Receiver, judged: Judged, now: datetime) -> None:
    """Late, repeated and ignored ones are not counted, and each other one when it first comes: neither
    replays nor events that nothing is for hold a sender up.

    Raises: Refused `web.hook_rate`; the first one of a minute is logged.
    """
    lately = _lately(receiver, now).exclude(known_by="")
    counted = lately.exclude(state__in=(State.REPEATED, State.IGNORED))
    before = receiver.deliveries.filter(at__lt=now - timedelta(minutes=1)).values("known_by")
    if counted.exclude(known_by__in=before).order_by().values("known_by").distinct().count() < PER_MINUTE:
        return
    words = f"More than {PER_MINUTE} messages came in a minute."
    if not lately.filter(state=State.REFUSED, reason=words).exists():
        _log(receiver, judged, Outcome(State.REFUSED, words))
    why = Refused("web.hook_rate", words, "Wait a minute.", 429)
    why.headers = {"Retry-After": "60"}  # type: ignore[attr-defined]
    raise why


def _is_news(receiver: Receiver, judged: Judged, done: Outcome, now: datetime) -> bool:
    """Whether an outcome is logged: of replays the first one of a minute, so that they push nothing out."""
    lately = _lately(receiver, now).filter(state=done.state)
    if done.state == State.REPEATED:
        return not lately.exists()
    if done.state == State.IGNORED and lately.count() >= PER_MINUTE:
        return False
    same = {"known_by": judged.known_by, "reason": one_line(done.reason, 300)}
    return done.state == State.DONE or not lately.filter(**same).exists()


def _repeated(receiver: Receiver, judged: Judged) -> Outcome | None:
    """What is said of a message that was done already."""
    same = Q(known_by=judged.known_by)
    if judged.message:
        same |= Q(message=judged.message)
    found = receiver.deliveries.filter(same, state=State.DONE).select_related("run").first()
    if found is None:
        return None
    return Outcome(State.REPEATED, f"It came before, at {found.at:%Y-%m-%d %H:%M:%S} UTC.", found.run)


def _type(payload: Any) -> str:
    """What Standard Webhooks call an event."""
    found = payload.get("type") if isinstance(payload, dict) else None
    return one_line(found, 100) if isinstance(found, str) else ""


def _log(
    receiver: Receiver,
    judged: Judged,
    done: Outcome,
    push: payloads.Push = payloads.Push(),  # noqa: B008  it is frozen
    event: str = "",
) -> None:
    Received.objects.create(
        receiver=receiver, known_by=judged.known_by, message=judged.message,
        event=one_line(event or judged.event, 100), ref=push.ref, commit=push.commit, state=done.state,
        reason=one_line(done.reason, 300), run=done.run, at=clock.now(),
    )  # fmt: skip
    rows = Received.objects.filter(receiver=receiver).order_by("-pk")
    was_done, wrong = Q(state=State.DONE), Q(known_by="")
    for kept, which in ((REMEMBERED, was_done), (WRONG, wrong), (LOGGED, ~was_done & ~wrong)):
        oldest = rows.filter(which).values_list("pk", flat=True)[kept : kept + 1].first()
        if oldest is not None:
            rows.filter(which, pk__lte=oldest).order_by().delete()
