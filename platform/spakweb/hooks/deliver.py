"""Sending what is in the outbox: `go_on` hands due deliveries to Celery, `attempt` sends one.

Every worker calls `go_on` twice a second; a delivery is claimed by moving its next attempt, one for each
webhook at a time, so that a message of the broker that is lost or comes twice does no harm. At least once: a
worker that dies between the answer and its row sends again, under the same id. An attempt is one request of
`spakweb.outgoing`, to addresses of the kinds of SPAK_WEB_WEBHOOK_REACH.
"""

from __future__ import annotations

import json
import logging
import random
from datetime import datetime, timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from kombu.exceptions import KombuError

from spak.tools.observe.paths import resolve
from spakweb import clock, outgoing
from spakweb.audit.actions import record
from spakweb.hooks import signing
from spakweb.hooks.models import TEST, Delivery, Webhook
from spakweb.outgoing import Answer
from spakweb.runs.leases import is_due

RETRY_S = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
"""Waits between attempts, as Standard Webhooks suggests; a fifth more or less by chance."""
REST_S = 60
"""After a failed attempt nothing else goes to the webhook for so long, or until the retry."""
CLAIM_S, TIMEOUT_S, ANSWER_BYTES = 60, 10.0, 4096
MOST_REST = timedelta(seconds=max(REST_S, CLAIM_S))
AT_A_TIME = 20
KEPT = 200
"""Deliveries of a webhook that stay in its log, besides pending ones."""
GONE = 410

log = logging.getLogger(__name__)


def due(now: datetime) -> list[Delivery]:
    """The next delivery of each webhook that one is due to."""
    rows = Delivery.objects.filter(_is_time(now), state=Delivery.State.DUE, webhook__active=True)
    rows = rows.filter(is_due("webhook__rest_until", now, MOST_REST))
    found: dict[int, Delivery] = {}
    for row in rows.order_by("next_at", "pk")[: 10 * AT_A_TIME]:
        found.setdefault(row.webhook_id, row)
    return list(found.values())[:AT_A_TIME]


def _is_time(now: datetime) -> Q:
    """Deliveries whose next attempt is due, also where the clock was set back since it was put down."""
    found = Q()
    for tries, seconds in enumerate((0, *RETRY_S)):
        found |= Q(tries=tries) & is_due("next_at", now, timedelta(seconds=1.2 * seconds))
    return found


def go_on() -> int:
    """Claim what is due and hand it to Celery; gives how many."""
    from spakweb.celery import app

    now, sent = clock.now(), 0
    for row in due(now):
        free = Webhook.objects.filter(is_due("rest_until", now, MOST_REST), pk=row.webhook_id)
        if not free.update(rest_until=now + timedelta(seconds=CLAIM_S)):
            continue  # another worker has claimed it
        try:
            app.send_task("hooks.deliver", (row.pk,), retry=False)
            sent += 1
        except (OSError, KombuError) as error:
            log.warning("delivery %s was not queued: %s", row.pk, type(error).__name__)
            Webhook.objects.filter(pk=row.webhook_id).update(rest_until=now)
    return sent


@shared_task(name="hooks.deliver", acks_late=True, ignore_result=True)
def deliver(pk: int) -> None:
    """Attempt one delivery, unless it has ended or its webhook is off."""
    rows = Delivery.objects.select_related("webhook__team", "run__version__spec")
    row = rows.filter(pk=pk, state=Delivery.State.DUE, webhook__active=True).first()
    if row is not None:
        attempt(row)


def attempt(row: Delivery) -> None:
    """Send it once and record the outcome."""
    hook = row.webhook
    if not row.body:
        row.body = json.dumps(payload(row), ensure_ascii=False, separators=(",", ":"))
        Delivery.objects.filter(pk=row.pk).update(body=row.body)
    body = row.body.encode()
    now = clock.now()
    done = request(hook.url, signing.headers(hook, row.message, now, body), row.body)
    status = done.status
    good = 200 <= status < 300
    error = "" if good else _why(done, status)
    tries = row.tries + 1
    last = good or tries > len(RETRY_S) or status == GONE
    wait = timedelta(0) if last else timedelta(seconds=RETRY_S[tries - 1] * random.uniform(0.8, 1.2))
    state = Delivery.State.DELIVERED if good else Delivery.State.FAILED if last else Delivery.State.DUE
    now = clock.now()
    Delivery.objects.filter(pk=row.pk, tries=row.tries).update(
        state=state, tries=tries, status=status, error=error[:300], tried_at=now, next_at=now + wait
    )
    rest = None if good else now + min(wait or timedelta(seconds=REST_S), timedelta(seconds=REST_S))
    Webhook.objects.filter(pk=hook.pk).update(rest_until=rest)
    if status == GONE and Webhook.objects.filter(pk=hook.pk, active=True).update(active=False):
        record(None, "webhook.gone", hook.name, hook.team, webhook=hook.pk)
    _prune(hook)


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
            "records": row.count,
            "labels": run.labels,
            "url": f"{next(iter(settings.CSRF_TRUSTED_ORIGINS), '').rstrip('/')}{path}",
        },
    }


def _why(done: Answer, status: int) -> str:
    if 300 <= status < 400:
        return f"The receiver answered {status}, a redirect. Redirects are not followed."
    if status == GONE:
        return "The receiver answered 410 (gone). The webhook is off."
    if status:
        return f"The receiver answered {status}."
    return done.why


def _prune(hook: Webhook) -> None:
    ended = Delivery.objects.filter(webhook=hook).exclude(state=Delivery.State.DUE)
    oldest = ended.order_by("-pk").values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if oldest is not None:
        ended.filter(pk__lte=oldest).delete()
