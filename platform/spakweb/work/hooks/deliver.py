"""Sending what is in the outbox: the job of a webhook sends its next message, one at a time.

`find` names the webhooks that a message is due to, twice a second; the outbox decides, so that a message of
the broker that is lost or comes twice does no harm. At least once: a worker that dies between the answer and
its row sends again, under the same id. An attempt is one request of `ground/outgoing.py`, to addresses of the
kinds of SPAK_WEB_WEBHOOK_REACH.
"""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from spak.tools.observe.paths import resolve
from spakweb.ground import clock, outgoing
from spakweb.ground.audit.actions import record
from spakweb.ground.outgoing import Answer
from spakweb.store.hooks.models import DELIVER, TEST, Delivery, Webhook
from spakweb.store.jobs.leases import APART
from spakweb.work.hooks import follow, signing
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind, decided
from spakweb.work.jobs.queue import to_do

RETRY_S = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
"""Waits between attempts, as Standard Webhooks suggests; a fifth more or less by chance."""
REST_S = 60
"""After a failed attempt nothing else goes to the webhook for so long, or until the retry."""
TIMEOUT_S, ANSWER_BYTES = 10.0, 4096
KEPT = 200
"""Deliveries of a webhook that stay in its log, besides pending ones."""
GONE = 410
MOST_FAILED = 5
"""Messages in a row that failed for good: then the webhook is off."""


def find() -> list[tuple[str, int]]:
    """Webhooks that a message is due to, each with its team."""
    due = Delivery.objects.filter(_is_time(clock.now()), state=Delivery.State.DUE, webhook=OuterRef("pk"))
    return to_do(DELIVER, Webhook.objects.filter(Exists(due), active=True))


def _is_time(now: datetime) -> Q:
    """Deliveries whose next attempt is due, also where the clock was set back since it was put down."""
    return Q(next_at__lte=now) | Q(at__gt=now + APART) | Q(tried_at__gt=now + APART)


def act(hold: Hold) -> dict[str, Any] | None:
    """Attempt the next message of a webhook. Raises: Again, Lost."""
    hook = Webhook.objects.select_related("team", "user").filter(pk=int(hold.key), active=True).first()
    if hook is None:
        return None
    rows = Delivery.objects.select_related("run__version__spec").filter(
        _is_time(clock.now()), webhook=hook, state=Delivery.State.DUE
    )
    row = rows.order_by("next_at", "pk").first()
    if row is None:
        return {}
    row.webhook = hook
    rest_s = attempt(row, hold)
    raise Again(row.error, rest_s, counts=False)  # `find` knows whether there is more; here at once


def attempt(row: Delivery, hold: Hold) -> float:
    """Send it once and record the outcome; gives for how many seconds its webhook rests. Raises: Lost."""
    hook = row.webhook
    if not row.body:
        row.body = json.dumps(payload(row), ensure_ascii=False, separators=(",", ":"))
        Delivery.objects.filter(pk=row.pk).update(body=row.body)
    body = row.body.encode()
    now = clock.now()
    if hook.user_id:
        done = follow.mail(hook, json.loads(body)["data"])
    else:
        done = request(hook.url, signing.headers(hook, row.message, now, body), row.body)
    status = done.status
    good = 200 <= status < 300
    row.error = "" if good else _why(done, status)[:300]
    tries = row.tries + 1
    last = good or tries > len(RETRY_S) or status == GONE
    wait_s = 0 if last else RETRY_S[tries - 1] * random.uniform(0.8, 1.2)
    state = Delivery.State.DELIVERED if good else Delivery.State.FAILED if last else Delivery.State.DUE
    now = clock.now()
    with hold.writing():
        Delivery.objects.filter(pk=row.pk, tries=row.tries).update(
            state=state, tries=tries, status=status, error=row.error, tried_at=now,
            next_at=now + timedelta(seconds=wait_s),
        )  # fmt: skip
        if status == GONE:
            _turn_off(hook, "webhook.gone")
        if state == Delivery.State.FAILED and _is_dead(hook):
            _turn_off(hook, "webhook.dead", failed=MOST_FAILED)
        _prune(hook)
    return 0 if good else min(wait_s or REST_S, REST_S)


def _turn_off(hook: Webhook, action: str, **details: Any) -> None:
    if Webhook.objects.filter(pk=hook.pk, active=True).update(active=False):
        record(None, action, hook.name, hook.team, webhook=hook.pk, **details)


def failed(key: str, error: str) -> None:
    """The message that its workers died with is given up."""
    rows = Delivery.objects.filter(webhook=int(key), state=Delivery.State.DUE).order_by("next_at", "pk")
    first = rows.values_list("pk", flat=True).first()
    rows.filter(pk=first).update(state=Delivery.State.FAILED, error=error[:300], tried_at=clock.now())


KIND = Kind(
    name=DELIVER, title="Webhook messages", act=act, find=find, failed=failed, reopen=decided,
    prompt=True,
    longest=timedelta(minutes=2),
)  # fmt: skip


def request(url: str, headers: dict[str, str], body: str) -> Answer:
    """One POST to the address, judged as the operator set it."""
    return outgoing.request(
        url, headers, body, reach=settings.WEBHOOK_REACH, resolve=resolve, most_bytes=ANSWER_BYTES,
        timeout_s=TIMEOUT_S,
    )  # fmt: skip


def payload(row: Delivery) -> dict[str, Any]:
    """What a receiver reads. It names the run; for more a program asks the platform."""
    at = row.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    team = row.webhook.team
    if row.run is None:
        return {"type": f"webhook.{TEST}", "timestamp": at, "data": {"team": team.slug}}
    run = row.run
    version = run.version
    path = reverse("spak-run", args=[team.slug, run.key])
    return {
        "type": f"run.{row.event}",
        "timestamp": at,
        "data": {
            "team": team.slug,
            "run": run.key,
            "name": run.name,
            "spec": version.spec.slug if version else None,
            "version": version.number if version else None,
            "state": row.event,
            "reason": row.reason,
            "by_own_tests": run.own_tests if row.event == run.state else [],
            "records": row.count,
            "labels": run.labels,
            "url": f"{next(iter(settings.CSRF_TRUSTED_ORIGINS), '').rstrip('/')}{path}",
        },
    }


def _why(done: Answer, status: int) -> str:
    if done.why:
        return done.why
    if 300 <= status < 400:
        return f"The receiver answered {status}, a redirect. Redirects are not followed."
    if status == GONE:
        return "The receiver answered 410 (gone). The webhook is off."
    return f"The receiver answered {status}."


def _is_dead(hook: Webhook) -> bool:
    """Whether the newest messages that ended have all failed."""
    ended = (
        Delivery.objects.filter(webhook=hook).exclude(state=Delivery.State.DUE).order_by("-tried_at", "-pk")
    )
    states = list(ended.values_list("state", flat=True)[:MOST_FAILED])
    return states == [Delivery.State.FAILED] * MOST_FAILED


def _prune(hook: Webhook) -> None:
    ended = Delivery.objects.filter(webhook=hook).exclude(state=Delivery.State.DUE)
    oldest = ended.order_by("-pk").values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if oldest is not None:
        ended.filter(pk__lte=oldest).delete()
