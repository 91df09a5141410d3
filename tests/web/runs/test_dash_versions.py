"""The page of a spec's health: each version beside a baseline and the targets, and what it is filtered by."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from spakweb.face.runs import dashboards
from spakweb.store.runs.models import Run
from spakweb.work.specs.actions import save_version

Ended = Callable[..., Run]


@pytest.fixture
def ended(cast: Any) -> Ended:
    """`ended(2, "failed", reason="...")`: a run of version 2 that ended so."""
    while cast.spec.versions.count() < 3:
        head = cast.spec.head
        save_version(cast["alice"], cast.spec, head.text + "\n", base_version=head.number)
        cast.spec.refresh_from_db()

    def make(version: int, state: str = "succeeded", ago: int = 0, **more: Any) -> Run:
        at = timezone.now() - timedelta(days=ago)
        tokens = {"input": more.pop("tokens", 0), "output": 0}
        made: Run = Run.objects.create(
            team=cast.team, version=cast.spec.versions.get(number=version), key=f"h-{Run.objects.count()}",
            name="small", state=state, count=1, reason=more.pop("reason", ""), mode=more.pop("mode", ""),
            labels=more.pop("labels", []), started_at=at - timedelta(seconds=3), ended_at=at,
            summary={"tokens": tokens, **more},
        )  # fmt: skip
        return made

    return make


def page(cast: Any, who: str = "vera", **query: Any) -> str:
    address = reverse("spak-spec-health", args=[cast.team.slug, cast.spec.slug])
    text: str = cast.client(who).get(address, query).content.decode()
    return re.sub(r"\s+", " ", text)


def test_each_version_has_its_own_figures(cast: Any, ended: Ended) -> None:
    ended(1, tokens=1000, permitted=99, denied=1)
    ended(1, "refused", reason="watchdog.loop, other", tokens=1000)
    ended(
        3,
        tokens=800,
        permitted=10,
        axioms=9,
        held=9,
        failures=10,
        healed=9,
        cost=2_000_000,
        answers=2,
        priced=2,
    )
    ended(3, "cancelled")
    three, one = dashboards.versions(cast.spec)
    assert (three.version, three.count, three.rate, three.tokens_each) == (3, 1, 1.0, 800)
    assert (one.version, one.rate, one.tokens_each, one.why) == (1, 0.5, 2000, [("watchdog.loop", 1)])
    assert dashboards.baseline_of([three, one]) is one and three.against(one) == 0.4
    assert one.against(one) is None and dashboards.baseline_of([three, one], 3) is three
    text = page(cast)
    assert "40 % of v1" in text and "watchdog.<wbr>loop" in text and "9 of 10" in text and "1 denied" in text
    assert "v3 and the targets" in text and text.count("</svg>met</span>") == 3
    assert "baseline v1" in text and "$0.0020" in text
    assert "250 % of v3" in page(cast, baseline=3)


def test_what_it_is_filtered_by_stands_in_the_address(cast: Any, ended: Ended) -> None:
    ended(1, labels=["night"], mode="stepwise")
    ended(2, ago=20, labels=["night"])
    ended(2, mode="full_auto")

    def of(**query: Any) -> list[str]:
        return re.findall(r'<a class="mono" href="[^"]+/v/(\d)/">', page(cast, **query))

    assert of() == ["2", "1"] and of(label="night") == ["1"] and of(days=30, label="night") == ["2", "1"]
    assert of(mode="full_auto") == ["2"]
    assert of(days="x", baseline="-1", mode="no such") == ["2", "1"]
    assert "Show every label" in page(cast, label="no such")
    rows = reverse("spak-run-list", args=[cast.team.slug])
    text = cast.client("vera").get(rows, {"spec": cast.spec.slug, "version": 1}).content.decode()
    assert "h-0" in text and "h-2" not in text
    assert cast.client("vera").get(rows, {"version": "1 or 1"}).status_code == 200


def test_without_runs_it_says_what_it_is_for(cast: Any) -> None:
    text = page(cast)
    assert "No completed runs yet" in text and "Look back 90 days" in text
    assert "Run it" not in text and "Run it" in page(cast, "alice")


def test_a_home_page_leads_there(cast: Any, ended: Ended) -> None:
    ended(2)
    text = cast.client("vera").get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    assert reverse("spak-spec-health", args=[cast.team.slug, cast.spec.slug]) in text
