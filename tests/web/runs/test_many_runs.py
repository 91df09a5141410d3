"""Pages of a team with many runs: they ask the database as much as of few, by its indexes, and stay small."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from spakweb.face.api.shapes.common import RUN_COLUMNS
from spakweb.face.runs import dashboards
from spakweb.face.runs.filters import RunFilter, with_label
from spakweb.store.runs.models import ENDED, Run, State
from spakweb.work.fleet import actions
from spakweb.work.specs.actions import save_version

STATES = ("succeeded", "failed", "running", "queued", "waiting", "refused")


def add(cast: Any, many: int) -> None:
    versions = list(cast.spec.versions.all())
    now, before = timezone.now(), Run.objects.count()
    for number in range(before, before + many):
        state = STATES[number % len(STATES)]
        Run.objects.create(
            team=cast.team, version=versions[number % len(versions)], key=f"m-{number}", name=f"n {number}",
            state=state, made_by=cast["alice"], labels=["night", f'l{number} "%'], started_at=now,
            enqueued_at=now, ended_at=now if state in ENDED else None, summary={"waiting": {"kind": "x"}},
            reason=f"code.{number}" if state in ("failed", "refused") else "",
        )  # fmt: skip


def test_many_are_asked_for_like_few(cast: Any) -> None:
    actions.heartbeat("one", process="host:one", queues=("default",), devices=())
    client = cast.client("alice")
    team, spec = cast.team.slug, cast.spec.slug
    pages = {
        "home": reverse("spak-team-home", args=[team]),
        "list": reverse("spak-run-list", args=[team]),
        "label": reverse("spak-run-list", args=[team]) + "?label=night",
        "health": reverse("spak-spec-health", args=[team, spec]),
        "fleet": reverse("spak-fleet", args=[team]),
    }

    def asked() -> dict[str, list[str]]:
        found = {}
        for name, address in pages.items():
            with CaptureQueriesContext(connection) as seen:
                assert client.get(address).status_code == 200
            statements = (statement["sql"] for statement in seen)
            found[name] = [
                sql for sql in statements if "clock_timestamp" not in sql
            ]  # now and then, by any page
        return found

    add(cast, 6)
    asked()  # the first of a session keeps its team
    few = asked()
    for number in range(4):
        cast.spec.refresh_from_db()
        save_version(cast["alice"], cast.spec, cast.spec.head.text + "\n" * (number + 1), number + 1)
    add(cast, 54)
    many = asked()
    for page in pages:
        assert len(few[page]) == len(many[page]) <= 25, "\n".join([page, *few[page], "of many:", *many[page]])


def plan(rows: Any) -> str:
    return str(rows.explain())


def test_what_home_asks_goes_by_an_index(cast: Any) -> None:
    rows = Run.objects.filter(team=cast.team)
    for wanted in (
        rows.filter(state=State.WAITING),
        rows.filter(state__in=(State.RUNNING, State.QUEUED)),
        dashboards._ended(cast.team, 14),
    ):
        assert "runs_of_team_by_state (team_id=? AND state=?" in plan(wanted.order_by())
    held = Run.objects.exclude(holder="").filter(lease_until__gte=timezone.now())
    assert "runs_held" in plan(held.order_by())
    assert "runs_of_team " in plan(rows.order_by("-pk"))


FILTERS = ("", "state=failed", "state=unchecked", "spec=small", "version=1", "label=ci", "q=zzz", "mine=1")


@pytest.mark.parametrize("query", FILTERS)
def test_a_filtered_list_of_the_api_goes_by_an_index(cast: Any, query: str) -> None:
    """No filter reads the runs of other teams, nor sorts: the index has them in the list's order."""
    for trials, index in (("", "runs_without_trials"), ("&trials=1", "runs_of_team")):
        asked = RunFilter.of(QueryDict(query + trials))
        found = asked.apply(Run.objects.filter(team=cast.team), cast["alice"])
        wanted = plan(found.order_by("-pk").values(*RUN_COLUMNS)[:101])
        if connection.vendor != "sqlite":
            continue
        assert f"{index} (team_id=?)" in wanted, wanted
        assert "SCAN runs_run" not in wanted and "TEMP B-TREE" not in wanted.replace("UNION", ""), wanted


@pytest.mark.parametrize("label", ["night", 'l3 "%', "l3", "Night", "", "a' OR 1=1 --", "[]"])
def test_a_label_is_asked_for_in_the_database(cast: Any, label: str) -> None:
    add(cast, 5)
    found = with_label(Run.objects.filter(team=cast.team), label).values_list("key", flat=True)
    wanted = {run.key for run in Run.objects.all() if label in run.labels}
    assert set(found) == wanted
    filtered = RunFilter(label=label).apply(Run.objects.filter(team=cast.team), cast["alice"])
    assert {run.key for run in filtered} == (wanted if label else {run.key for run in Run.objects.all()})


def test_a_list_leaves_the_texts_of_specs_alone(cast: Any) -> None:
    add(cast, 3)
    with CaptureQueriesContext(connection) as seen:
        cast.client("vera").get(reverse("spak-run-list", args=[cast.team.slug]))
    assert not any('"specs_specversion"."text"' in query["sql"] for query in seen.captured_queries)


def test_many_versions_go_on_pages(cast: Any) -> None:
    now = timezone.now()
    for number in range(2, 29):
        cast.spec.refresh_from_db()
        save_version(cast["alice"], cast.spec, f"{cast.spec.head.text}\n", number - 1)
    for version in cast.spec.versions.all():
        Run.objects.create(
            team=cast.team, version=version, key=f"v-{version.number}", name="n", state="succeeded",
            started_at=now - timedelta(seconds=1), ended_at=now,
        )  # fmt: skip
    client, address = cast.client("vera"), reverse("spak-spec-health", args=[cast.team.slug, cast.spec.slug])
    first = client.get(address, {"days": 90})
    assert [one.version for one, _ in first.context["health"]] == list(range(28, 3, -1))
    assert "?days=90&amp;page=2" in first.content.decode() and len(first.content) < 60_000
    second = client.get(address, {"days": 90, "page": 2})
    assert [one.version for one, _ in second.context["health"]] == [3, 2, 1]
    assert second.context["newest"].version == 28


def test_what_is_left_out_is_said(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "MOST", 4)
    add(cast, 12)
    for address in (
        reverse("spak-team-home", args=[cast.team.slug]),
        reverse("spak-spec-health", args=[cast.team.slug, cast.spec.slug]),
    ):
        assert "(the newest 4)" in cast.client("vera").get(address).content.decode()
        monkeypatch.setattr(dashboards, "MOST", 40)
        assert "(the newest" not in cast.client("vera").get(address).content.decode()
        monkeypatch.setattr(dashboards, "MOST", 4)
