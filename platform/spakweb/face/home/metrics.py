"""`/metrics` for Prometheus: what an operator watches, counted in the database when it is asked for.

The database is asked at most once in KEPT_S, however often and by however many `/metrics` is read. Nothing of
a team, a person, a spec or a run is in it: labels are states, queues and numbers of this installation alone.
Whoever asks brings the token of SPAK_WEB_METRICS_TOKEN; without one only this machine itself may ask, and
nobody by way of a proxy.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from hmac import compare_digest

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import BigIntegerField, Count, F, Min, Q, Sum
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as PLAIN
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from spak import __version__
from spakweb.face.streams import stream
from spakweb.ground import clock
from spakweb.store.fleet.models import SILENT, Runner
from spakweb.store.hooks.models import Delivery
from spakweb.store.runs.models import ENDED, Run, State
from spakweb.work.worker.queue import ready

KEPT_S = 5.0
QUEUES = 50
"""Queues that are shown, the fullest ones."""
SETTLED = timedelta(seconds=10)
"""Runs that ended so long ago are added up once."""
NANO = 1_000_000_000


class Spent:
    """Tokens and cost of all runs, without what forks took over. Runs that ended are added up once in the
    life of a process, those that go on each time."""

    def __init__(self) -> None:
        self._until: datetime | None = None
        self._done = (0, 0)

    def now(self) -> tuple[int, int]:
        """Tokens, and billionths of a US dollar."""
        until = clock.now() - SETTLED
        ended = Run.objects.filter(ended_at__lte=until)
        if self._until is not None:
            ended = ended.filter(ended_at__gt=self._until)
        tokens, cost = _sums(ended)
        self._until, self._done = until, (self._done[0] + tokens, self._done[1] + cost)
        going = _sums(Run.objects.filter(Q(ended_at=None) | Q(ended_at__gt=until)))
        return self._done[0] + going[0], self._done[1] + going[1]


def _sums(rows: object) -> tuple[int, int]:
    taken = KeyTransform("taken", "summary")
    found = rows.aggregate(  # type: ignore[attr-defined]
        tokens=Sum(_number(KeyTransform("tokens", "summary"), "used")),
        cost=Sum(_number("summary", "cost")),
        taken_tokens=Sum(_number(KeyTransform("tokens", taken), "used")),
        taken_cost=Sum(_number(taken, "cost")),
    )
    have = {name: int(value or 0) for name, value in found.items()}
    return have["tokens"] - have["taken_tokens"], have["cost"] - have["taken_cost"]


def _number(where: object, name: str) -> Cast:
    return Cast(KeyTextTransform(name, where), BigIntegerField())


class Counts(Collector):
    """What is counted in the database, and in this process."""

    def __init__(self) -> None:
        self._spent = Spent()

    def collect(self) -> Iterator[Metric]:
        """The metrics, counted now, as the client library asks for them."""
        now = clock.now()
        yield from _queues(now)
        states = GaugeMetricFamily("spak_runs", "Runs that are not deleted, by state.", labels=["state"])
        rows = Run.objects.filter(deleted_at=None).order_by().values_list("state")
        found = dict(rows.annotate(Count("pk")))
        for state in State.values:
            states.add_metric([state], found.get(state, 0))
        yield states
        behind = Run.objects.exclude(state__in=ENDED).filter(projected__lt=F("count"))
        lag = behind.aggregate(runs=Count("pk"), records=Sum(F("count") - F("projected")))
        yield _gauge("spak_ledger_lag_records", "Records that no page shows yet.", lag["records"] or 0)
        yield _gauge("spak_ledger_lag_runs", "Runs with such records.", lag["runs"])
        yield _gauge("spak_stream_clients", "Open streams and sockets of this process.", stream.clients())
        living = Runner.objects.filter(seen_at__range=(now - SILENT, now + SILENT))
        workers = living.aggregate(number=Count("pk"), slots=Sum("slots"))
        yield _gauge("spak_workers", "Workers that were heard of lately.", workers["number"])
        yield _gauge("spak_worker_slots", "Runs that these may advance at a time.", workers["slots"] or 0)
        waiting = Delivery.objects.filter(state=Delivery.State.DUE, webhook__active=True).count()
        yield _gauge("spak_webhook_deliveries_due", "Messages of webhooks that wait to be sent.", waiting)
        tokens, cost = self._spent.now()
        yield CounterMetricFamily("spak_tokens", "Tokens that models used.", tokens)
        yield CounterMetricFamily("spak_cost_usd", "What these cost, where it is known.", cost / NANO)
        about = GaugeMetricFamily("spak_build_info", "The version that runs.", labels=["version"])
        about.add_metric([__version__], 1)
        yield about


def _queues(now: datetime) -> Iterator[Metric]:
    depth = GaugeMetricFamily("spak_queue_depth", "Runs that wait for a slot.", labels=["queue"])
    oldest = GaugeMetricFamily(
        "spak_queue_oldest_seconds", "How long the first of them has waited.", labels=["queue"]
    )
    rows = Run.objects.filter(ready(now)).order_by().values_list("queue")
    found = rows.annotate(Count("pk"), Min("enqueued_at")).order_by("-pk__count", "queue")
    seen = list(found[:QUEUES])
    for queue, number, first in seen or [("default", 0, None)]:
        depth.add_metric([queue], number)
        oldest.add_metric([queue], max(0.0, (now - first).total_seconds()) if first else 0.0)
    yield depth
    yield oldest


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value)


_registry = CollectorRegistry(auto_describe=False)
_registry.register(Counts())
ProcessCollector(registry=_registry)
PlatformCollector(registry=_registry)
_lock = threading.Lock()
_kept = (float("-inf"), b"")


def text() -> bytes:
    """The page, KEPT_S old at most. Raises: DatabaseError."""
    global _kept
    with _lock:
        if time.monotonic() - _kept[0] > KEPT_S:
            _kept = time.monotonic(), generate_latest(_registry)
        return _kept[1]


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures, for who may have them."""
    given = getattr(request, "bearer", None) or ""
    request.bearer = ""
    wanted = settings.METRICS_TOKEN
    if wanted and not compare_digest(given.encode(), wanted.encode()):
        words = "web.metrics: send the token of SPAK_WEB_METRICS_TOKEN: Authorization: Bearer ...\n"
        refused = HttpResponse(words, content_type="text/plain", status=401)
        refused["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    if not wanted and not _from_here(request):
        words = (
            "web.metrics: only this machine may ask; the operator sets SPAK_WEB_METRICS_TOKEN for others\n"
        )
        return HttpResponse(words, content_type="text/plain", status=403)
    response = HttpResponse(text(), content_type=PLAIN)
    response["Cache-Control"] = "no-store"
    return response


metrics.own_token = True


def _from_here(request: HttpRequest) -> bool:
    """Whether this machine itself asks: a proxy on it would ask for anybody."""
    if settings.BEHIND_PROXY or any(
        name in request.headers for name in ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")
    ):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
