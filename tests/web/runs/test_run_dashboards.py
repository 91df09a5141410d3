"""Rates with their intervals, health by spec, the home page, two runs compared, the timeline's axis."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from spakweb.face.runs import compare, dashboards, timeline
from spakweb.face.runs.template_tags import percent
from spakweb.face.runs.timeline import FOLDED, Axis, Bar
from spakweb.store.runs.models import Run, State
from spakweb.work.runs import actions
from spakweb.work.runs.actions import request_control
from spakweb.work.worker import execute

Ran = Callable[..., Run]
ASKING = 'task Talk {\n  step hear: llm.query { prompt: "Say a word." output_var: word }\n}\n'


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (5, 10, 0.237, 0.763), (1, 1, 0.207, 1.0)],
)
def test_wilson(hits: int, count: int, low: float, high: float) -> None:
    found = dashboards.wilson(hits, count)
    assert found is not None
    assert [round(bound, 3) for bound in found] == [low, high]


def test_wilson_of_nothing() -> None:
    assert dashboards.wilson(0, 0) is None


@pytest.mark.parametrize(
    ("figures", "shown"),
    [
        ({"tokens": {"input": 9}, "answers": 1, "priced": 1}, "$0.00"),
        ({"tokens": {"input": 9}, "answers": 2, "priced": 1, "cost": 5_000_000}, "not available"),
        ({"tokens": {"input": 9}, "answers": 2, "priced": 2, "cost": 5_000_000}, "$0.0050"),
        ({"tokens": {"input": 9}}, "not available"),
        ({}, "no model"),
    ],
)
def test_a_cost_is_all_of_it_or_none(
    cast: Any, ended: Callable[..., Run], figures: dict[str, Any], shown: str
) -> None:
    ended("succeeded", **figures)
    text = cast.client("vera").get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    cell = text.partition('data-label="Cost">')[2].partition("</td>")[0]
    assert shown in cell


@pytest.mark.parametrize(
    ("share", "shown"),
    [(None, "not available"), (0, "0 %"), (0.254, "25 %"), (0.9885, "98.8 %"), (0.98999, "98.9 %"),
     (0.9901, "99.0 %"), (0.9999, "99.9 %"), (1, "100 %"), (2.5, "250 %")],
)  # fmt: skip
def test_no_share_is_rounded_up_to_its_target(share: float | None, shown: str) -> None:
    assert percent(share) == shown


@pytest.fixture
def ended(cast: Any) -> Callable[..., Run]:
    def make(state: str, ago: int = 0, **summary: Any) -> Run:
        at = timezone.now() - timedelta(days=ago)
        return Run.objects.create(
            team=cast.team, version=cast.spec.head, key=f"run-{Run.objects.count()}", name="small",
            state=state, reason="" if state == "succeeded" else "run.watchdog, other", count=1,
            started_at=at, ended_at=at, summary={"elapsed_ms": 2_000, **summary},
        )  # fmt: skip

    return make


def test_health_counts_what_ended(cast: Any, ended: Callable[..., Run]) -> None:
    tokens = {"input": 100, "output": 20}
    ended(
        "succeeded",
        tokens=tokens,
        permitted=9,
        denied=1,
        axioms=40,
        held=39,
        scored=10,
        micronats=7_000_000,
        failures=4,
        healed=3,
        guided=2,
        cost=6,
        answers=1,
        priced=1,
    )
    ended("succeeded", ago=1, tokens=tokens, permitted=10)
    ended("failed", ago=1, tokens=tokens)
    ended("refused", ago=20)
    ended("cancelled")
    (one,) = dashboards.health(cast.team)
    assert (one.count, one.succeeded, round(one.rate or 0, 2)) == (3, 2, 0.67)
    assert (one.correction, one.consistency, one.permission) == (0.75, 0.975, 0.95)
    assert round(one.perplexity or 0, 3) == 2.014
    assert (one.tokens_each, one.cost_each, one.took) == (180, 3, 2000)
    assert one.why == [("run.watchdog", 1)] and one.meets == {"consistency": False, "correction": False}
    assert "2 of 3 runs succeeded" in one.trend
    assert dashboards.health(cast.other_team) == []
    assert [item["met"] for item in dashboards.metrics([one])] == [False, None, False, None, None]
    assert [item["met"] for item in dashboards.metrics([])] == [None] * 5


@pytest.mark.parametrize(
    ("figures", "consistency", "perplexity"),
    [
        ({"axioms": 200, "held": 199, "scored": 4, "micronats": 2_772_589}, "99.5 %", "2"),
        ({"permitted": 9}, "not available", "not reported"),
        ({"axioms": 2}, "0 %", "not reported"),
    ],
)
def test_consistency_is_about_artifacts_and_perplexity_about_what_was_reported(
    cast: Any, ended: Callable[..., Run], figures: dict[str, Any], consistency: str, perplexity: str
) -> None:
    ended("succeeded", **figures)
    address = reverse("spak-spec-health", kwargs={"team": cast.team.slug, "spec": cast.spec.slug})
    text = cast.client("vera").get(address).content.decode()
    cards = dict(re.findall(r'<div class="card"><dt>([^<]*)<.*?<b class="big">(.*?)</b>', text))
    assert cards["Consistency"] == consistency and cards["Perplexity"] == perplexity
    assert cards["Permitted"] == ("100 %" if "permitted" in figures else "not available")


def test_home_says_what_needs_somebody(cast: Any, ended: Callable[..., Run]) -> None:
    waits, broke = ended("waiting", waiting={"kind": "llm.query"}), ended("failed")
    running = ended("running")
    client, address = cast.client("bob"), reverse("spak-team-home", args=[cast.team.slug])
    text = client.get(address).content.decode()
    needs, moving = text.index("Needs you"), text.index("Running now")
    assert (
        needs < text.index(f"runs/{waits.key}/") < moving
        and needs < text.index(f"runs/{broke.key}/") < moving
    )
    assert text.index(f"runs/{running.key}/") > moving
    assert "Queued" in text[moving:]  # nobody holds it: it does not run
    assert "0 of 1" in text and "95 %: 0 % to 79 %" in text and "Health by spec" in text
    part = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part and "Needs you" in part
    assert "Needs somebody" in cast.client("vera").get(address).content.decode()
    places = client.get(reverse("spak-api-places"), {"team": cast.team.slug}).json()["places"]
    assert {"Run", "Spec", "Page"} <= {place["kind"] for place in places}


def test_what_failed_alike_is_told_once(cast: Any, ended: Callable[..., Run]) -> None:
    keys = [ended("failed").key for _ in range(4)]
    other = ended("refused")
    Run.objects.filter(pk=other.pk).update(reason="policy.denied")
    ended("failed", ago=2)
    found = [(run.key, count) for run, count in dashboards.home(cast.team)["went_wrong"]]
    assert found == [(other.key, 1), (keys[-1], 4)]
    text = cast.client("vera").get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    assert "4 similar" in text and "state=failed&amp;q=small" in text and "policy.<wbr>denied" in text


def test_what_runs_stands_before_what_waits(cast: Any, ended: Callable[..., Run]) -> None:
    for number in range(dashboards.SHOWN + 2):
        queued = ended("queued")
        at = timezone.now() - timedelta(minutes=number)
        Run.objects.filter(pk=queued.pk).update(enqueued_at=at, started_at=None, reason="")
    running = ended("running", tokens={"input": 1200, "output": 34})
    now = timezone.now()
    Run.objects.filter(pk=running.pk).update(
        holder="host:one", lease_until=now + timedelta(seconds=60), ended_at=None,
        started_at=now - timedelta(seconds=2),
    )  # fmt: skip
    client, home = cast.client("vera"), reverse("spak-team-home", args=[cast.team.slug])
    found = client.get(home).context
    assert [run.pk for run in found["moving"]][:2] == [running.pk, queued.pk]
    assert (
        found["moving_more"] == 3
        and found["moving"][1].waits_for == "first in the default queue, which no runner serves"
    )
    assert found["moving"][0].elapsed >= 2000 and found["moving"][0].tokens_used == 1234
    text = client.get(reverse("spak-run-list", args=[cast.team.slug])).content.decode()
    assert "number 10 in the default queue" in text


def test_home_without_runs(cast: Any) -> None:
    text = cast.client("vera").get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    assert "No runs in progress." in text and "Health by spec" not in text


@pytest.mark.django_db(transaction=True)
def test_two_runs_are_compared(cast: Any, ran: Ran) -> None:
    one, two, other = ran(), ran(), ran(ASKING, mode="stepwise")
    assert compare.first_difference(one, two) is None
    client, address = cast.client("vera"), reverse("spak-run-compare", args=[cast.team.slug])
    text = client.get(address, {"one": one.key, "two": two.key}).content.decode()
    assert "No record differs" in text and "The same spec" in text
    found = compare.first_difference(one, other)
    assert found is not None and [side["record"].seq for side in found["sides"]] == [1, 1]
    text = client.get(address, {"one": one.key, "two": other.key}).content.decode()
    assert "The first record that differs" in text and "Their specs differ" in text
    assert client.get(address).status_code == 200
    assert client.get(address, {"one": one.key, "two": "none"}).status_code == 404
    told = [ran(ASKING, mode="stepwise") for _ in range(2)]
    for run, word in zip(told, ("a long line\nleft", "a long line\nright"), strict=True):
        actions.ask(cast["alice"], run, "answer", run.summary["waiting"]["id"], text=word)
        execute.advance(run.key)
    text = client.get(address, {"one": told[0].key, "two": told[1].key}).content.decode()
    shown = re.findall(r'<span class="(added|removed)">([^<]*)\n', text)
    assert shown == [("removed", "-left"), ("added", "+right")]
    cut = compare.first_difference(one, Run.objects.create(team=cast.team, key="cut", name="cut"))
    assert cut is not None and cut["missing"]


@pytest.mark.django_db(transaction=True)
def test_two_of_the_list_are_compared(cast: Any, ran: Ran) -> None:
    keys = [ran(advance=False).key for _ in range(2)]
    address = reverse("spak-run-bulk", args=[cast.team.slug])
    answer = cast.client("vera").post(address, {"run": keys, "do": "compare"})
    assert answer["Location"].endswith(f"?one={keys[1]}&two={keys[0]}")
    assert cast.client("vera").post(address, {"run": keys[:1], "do": "compare"}).status_code == 400


def bar(start: int, end: int, ask: bool = False) -> Bar:
    return Bar(1, "t", "s", start, end, ask=ask)


def test_idle_time_is_folded() -> None:
    axis = Axis([bar(0, 1_000), bar(3_600_000, 3_601_000)])
    assert [idle for _, idle in axis.folds] == [3_599_000]
    assert axis.x(3_600_000) - axis.x(1_000) == pytest.approx(FOLDED)
    assert axis.x(0) < axis.x(500) < axis.x(1_000)
    assert axis.x(1_000) - axis.x(0) == pytest.approx(axis.x(3_601_000) - axis.x(3_600_000))


def test_waiting_for_a_person_is_idle_time() -> None:
    axis = Axis([bar(0, 1_000), bar(1_000, 7_200_000, ask=True), bar(7_200_000, 7_201_000)])
    assert len(axis.folds) == 1
    assert axis.x(7_200_000) - axis.x(1_000) == pytest.approx(FOLDED)


def test_the_time_that_a_backend_took_is_work() -> None:
    asked = bar(0, 600_000, ask=True)
    asked.worked = 5_000
    axis = Axis([asked])
    assert [idle for _, idle in axis.folds] == [595_000]
    assert axis.x(600_000) - axis.x(595_000) > 300


def test_an_axis_without_time_has_places() -> None:
    axis = Axis([bar(5, 5)])
    assert axis.x(5) == axis.x(0) == timeline.LEFT


def test_many_gaps_stay_in_the_picture() -> None:
    axis = Axis([bar(place * 10_000, place * 10_000 + 10) for place in range(500)])
    assert axis.x(499 * 10_000 + 10) <= timeline.WIDTH


def test_the_scale_has_places_that_can_be_read() -> None:
    axis = Axis([bar(0, 40_000), bar(400_000, 460_000)])
    ticks = list(axis.ticks())
    assert ticks[:2] == [(timeline.LEFT, "0"), (pytest.approx(axis.x(20_000)), "20 s")]
    assert [said for _, said in ticks][-1] == "7 min 40 s"
    assert all(
        two - one >= timeline.LETTER * len(said) for (one, _), (two, said) in itertools.pairwise(ticks)
    )
    assert list(Axis([bar(5, 5)]).ticks()) == [(timeline.LEFT, "0")]


def test_a_key_goes_from_step_to_step_and_not_over_all_attempts() -> None:
    bars = [bar(place * 100, place * 100 + 50) for place in range(30)]
    for place, one in enumerate(bars):
        one.step = f"s{place % 3}"
    text = str(timeline.svg(Run(), "/r/", bars))
    assert (text.count("<a "), text.count('tabindex="-1"')) == (30, 27)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("state", "work"), [("running", True), ("waiting", False)])
def test_a_question_that_is_open_is_work_while_a_backend_is_asked(
    cast: Any, ran: Ran, state: str, work: bool
) -> None:
    run = ran(ASKING, mode="stepwise")
    run.state = state
    (asked,) = timeline.bars_of(run)
    assert (asked.state, asked.worked > 0) == (state, work and asked.end > asked.start)


@pytest.mark.django_db(transaction=True)
def test_the_bar_of_a_step_that_was_broken_off_is_no_success(cast: Any, ran: Ran) -> None:
    run = ran(ASKING, mode="stepwise")
    request_control(cast["alice"], run, "cancel")
    execute.advance(run.key)
    run.refresh_from_db()
    assert [bar.state for bar in timeline.bars_of(run)] == ["cancelled"]


@pytest.mark.django_db(transaction=True)
def test_attempts_stand_apart(cast: Any, ran: Ran) -> None:
    text = """\
AGENT Again LEVEL 3 {
  START -> once
  TASK once {
    step first: tool.run { cmd: "false" }
    success: exit_code(first) == 0
    NEXT { success -> done, fail -> once }
  }
  TASK done {
    step last: tool.list_files { path: "." }
  }
}
"""
    run = ran(text)
    assert run.state in (State.FAILED, State.REFUSED)
    lines = {(line.task, line.step): line for line in timeline.lines_of(timeline.bars_of(run))}
    first = lines["once", "first"]
    assert len(first.bars) >= 2 and first.failed >= 1
    assert len({one.seq for one in first.bars}) == len(first.bars)
