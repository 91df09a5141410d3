"""/metrics: what it counts, who may read it, and that reading it often costs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families as parsed

from spakweb.face.home import metrics
from spakweb.ground import clock
from spakweb.store.fleet.models import Runner
from spakweb.store.runs.models import Run, State

TOKEN = "a-token-of-the-operator"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is kept from the test before, and nothing for the next request."""
    monkeypatch.setattr(metrics, "KEPT_S", -1.0)
    counts = metrics.Counts()
    registry = metrics.CollectorRegistry(auto_describe=False)
    registry.register(counts)
    monkeypatch.setattr(metrics, "_registry", registry)
    yield


@pytest.fixture
def seen(db: None) -> Callable[[], dict[tuple[str, ...], float]]:
    """Every figure, by its name and the values of its labels."""

    def read() -> dict[tuple[str, ...], float]:
        answer = Client().get("/metrics", REMOTE_ADDR="127.0.0.1")
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in parsed(answer.content.decode())
            for sample in family.samples
        }

    return read


def run(cast: Any, key: str, state: str, **about: Any) -> Run:
    return Run.objects.create(team=cast.team, key=key, name=key, state=state, **about)


def test_runs_queues_and_lag(cast: Any, seen: Callable[[], dict[tuple[str, ...], float]]) -> None:
    now = clock.now()
    for number in range(3):
        run(cast, f"q{number}", State.QUEUED, queue="gpu", enqueued_at=now - timedelta(seconds=100))
    run(cast, "w", State.WAITING, count=9, projected=4)
    run(cast, "s", State.SUCCEEDED, count=9, projected=1)  # it ended: nobody waits for its page
    run(cast, "gone", State.SUCCEEDED, deleted_at=now)
    Runner.objects.create(name="one", seen_at=now, slots=4)
    Runner.objects.create(name="silent", seen_at=now - timedelta(hours=1), slots=4)
    found = seen()
    assert found["spak_runs", "queued"] == 3
    assert found["spak_runs", "succeeded"] == 1
    assert found["spak_runs", "refused"] == 0
    assert found["spak_queue_depth", "gpu"] == 3
    assert 99 <= found["spak_queue_oldest_seconds", "gpu"] < 200
    assert (found["spak_ledger_lag_records",], found["spak_ledger_lag_runs",]) == (5, 1)
    assert (found["spak_workers",], found["spak_worker_slots",]) == (1, 4)
    assert found["spak_stream_clients",] == 0
    assert any(name[0] == "spak_build_info" for name in found)


def spent(tokens: int, cost: int, taken: int = 0) -> dict[str, Any]:
    return {"tokens": {"used": tokens}, "cost": cost, "taken": {"tokens": {"used": taken}, "cost": taken}}


def test_tokens_and_cost_only_grow(cast: Any, seen: Callable[[], dict[tuple[str, ...], float]]) -> None:
    """Through the end of a run, a deletion, a fork that took some over, and an older summary without any."""
    now = clock.now()
    run(cast, "old", State.SUCCEEDED, ended_at=now - timedelta(days=9), summary=spent(100, 2_000_000_000))
    run(cast, "none", State.FAILED, ended_at=now - timedelta(days=9), summary={})
    run(cast, "fork", State.SUCCEEDED, ended_at=now - timedelta(days=8), summary=spent(60, 50, 50))
    going = run(cast, "going", State.RUNNING, summary=spent(7, 0))
    assert seen()["spak_tokens_total",] == 117
    going.summary = spent(9, 0)
    going.save(update_fields=["summary"])
    assert seen()["spak_tokens_total",] == 119
    Run.objects.filter(pk=going.pk).update(ended_at=clock.now(), state=State.SUCCEEDED)
    assert seen()["spak_tokens_total",] == 119
    Run.objects.filter(key="old").update(deleted_at=now)
    found = seen()
    assert found["spak_tokens_total",] == 119
    assert found["spak_cost_usd_total",] == 2.0


def test_nothing_of_a_team_is_in_it(cast: Any, db: None) -> None:
    run(cast, "secret-key-of-a-run", State.QUEUED)
    text = Client().get("/metrics", REMOTE_ADDR="::1").content.decode()
    assert "spak_runs" in text
    assert not re.search("kernel-tuners|Kernel|alice|secret-key|small", text)


@pytest.mark.parametrize(
    ("about", "status"),
    [({"REMOTE_ADDR": "127.0.0.1"}, 200), ({"REMOTE_ADDR": "::1"}, 200), ({"REMOTE_ADDR": "10.0.0.1"}, 403),
     ({"REMOTE_ADDR": "::ffff:10.0.0.1"}, 403), ({"REMOTE_ADDR": ""}, 403),
     ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403),
     ({"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=10.0.0.1"}, 403),
     ({"REMOTE_ADDR": "127.0.0.1", "HTTP_AUTHORIZATION": "Bearer anything"}, 200)],
)  # fmt: skip
def test_without_a_token_only_this_machine_asks(db: None, about: dict[str, str], status: int) -> None:
    answer = Client().get("/metrics", **about)  # type: ignore[arg-type]
    assert answer.status_code == status
    assert (b"web.metrics" in answer.content) == (status == 403)


def test_behind_a_proxy_nobody_asks_without_a_token(db: None, settings: Any) -> None:
    settings.BEHIND_PROXY = True
    assert Client().get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 403


@pytest.mark.parametrize(
    ("header", "status"),
    [("", 401), ("Bearer", 401), ("Bearer wrong", 401), (f"Basic {TOKEN}", 401), (f"Bearer {TOKEN}x", 401),
     (f"Bearer \u00fc{TOKEN}", 401), (f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN} ", 200)],
)  # fmt: skip
def test_with_a_token_it_is_the_token(db: None, settings: Any, header: str, status: int) -> None:
    settings.METRICS_TOKEN = TOKEN
    answer = Client().get("/metrics", REMOTE_ADDR="127.0.0.1", HTTP_AUTHORIZATION=header)
    assert answer.status_code == status
    assert ("WWW-Authenticate" in answer) == (status == 401)
    assert TOKEN.encode() not in answer.content


def test_the_token_opens_nothing_else(cast: Any, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    answer = Client().get("/api/v1/teams/kernel-tuners/runs/", HTTP_AUTHORIZATION=f"Bearer {TOKEN}")
    assert answer.status_code == 401


def test_it_is_only_read(db: None) -> None:
    assert Client().post("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 405


def test_the_database_is_asked_once_in_a_while(
    db: None, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(metrics, "KEPT_S", 60.0)
    monkeypatch.setattr(metrics, "_kept", (float("-inf"), b""))
    first = metrics.text()
    with django_assert_num_queries(0):
        assert metrics.text() == first


def test_a_short_token_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from spakweb.ground.environment import BadSetting

    monkeypatch.setenv("SPAK_WEB_METRICS_TOKEN", "short")
    with pytest.raises(BadSetting, match="SPAK_WEB_METRICS_TOKEN is too short"):
        _settings()


@pytest.mark.parametrize(
    ("name", "value"), [("SPAK_WEB_LOG", "xml"), ("SPAK_WEB_OTLP_ENDPOINT", "collector:4318")]
)
def test_other_words_stop_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    from spakweb.ground.environment import BadSetting

    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=name):
        _settings()


def _settings() -> None:
    """Read them as a start does."""
    import runpy

    import spakweb.settings as settings

    runpy.run_path(str(settings.__file__))
