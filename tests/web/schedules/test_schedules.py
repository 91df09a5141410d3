"""Schedules: when they are due, what a missed time does, whose rights a run has, and what cannot be added."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run, State
from spakweb.store.schedules.models import Schedule
from spakweb.store.sources.models import RunSource
from spakweb.work.schedules import actions, jobs, times
from spakweb.work.sources import actions as sources
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker.tasks import after_sweep

HERE = "/t/kernel-tuners/schedules/"
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
WITH_INPUT = """\
AGENT Weather {
  INPUTS { city: string }
  START -> write
  TASK write { step one: tool.write_file { path: "a" content: "{{city}}" } NEXT { success -> end } }
}
"""

Clock = Callable[[datetime], None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """`at(moment)`: it is that time, until it is another."""

    def turn(moment: datetime) -> None:
        monkeypatch.setattr(clock, "now", lambda: moment)

    turn(MONDAY)
    return turn


@pytest.fixture
def nightly(db: None, cast: Any, at: Clock) -> Schedule:
    return actions.add(cast["bob"], cast.spec, "nightly", "0 3 * * *", "Europe/Berlin")


def swept() -> list[Run]:
    """The runs that there are once what is due was begun."""
    after_sweep.send(None)
    return list(Run.objects.order_by("pk"))


def end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=State.SUCCEEDED, ended_at=clock.now())


# ---- times


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("0 3 * * *", "Europe/Berlin", "2026-11-23T12:00", "2026-11-24T02:00"),
        ("0 3 * * *", "UTC", "2026-11-23T03:00", "2026-11-24T03:00"),  # after, not at
        ("0 9 * * 1-5", "America/New_York", "2026-11-27T15:00", "2026-11-30T14:00"),
        ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00", "2027-03-28T01:00"),  # the clock skips 2:30
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30"),  # it comes twice: the first
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30"),  # and once
        ("*/20 2 * * *", "Europe/Berlin", "2027-03-27T12:00", "2027-03-29T00:00"),  # by elapsed time: skipped
        ("*/20 2 * * *", "Europe/Berlin", "2026-10-25T00:40", "2026-10-25T01:00"),  # and in both hours
        ("0 0 29 2 *", "UTC", "2026-03-01T00:00", "2028-02-29T00:00"),
    ],
)
def test_the_next_time_is_the_zones(cron: str, zone: str, after: str, expected: str) -> None:
    found = times.next_after(cron, zone, datetime.fromisoformat(f"{after}+00:00"))
    assert found == datetime.fromisoformat(f"{expected}+00:00")


# ---- what is begun


def test_a_time_begins_one_run_with_the_persons_name(
    cast: Any, nightly: Schedule, at: Clock, django_capture_on_commit_callbacks: Any
) -> None:
    assert nightly.next_at == datetime(2026, 11, 24, 2, 0, tzinfo=UTC)
    assert swept() == []
    at(nightly.next_at + timedelta(seconds=3))
    [run] = swept()
    assert (run.made_by, run.version, run.state) == (cast["bob"], cast.spec.head, "queued")
    assert run.labels == ["schedule nightly"]
    assert swept() == [run]  # another sweep, another worker
    nightly.refresh_from_db()
    assert (nightly.last_run, nightly.last_error) == (run, "")
    assert nightly.next_at == datetime(2026, 11, 25, 2, 0, tzinfo=UTC)
    assert Event.objects.filter(action="schedule.started").count() == 1


def test_who_saw_it_due_at_the_same_moment_begins_none(nightly: Schedule, at: Clock) -> None:
    at(nightly.next_at)
    stale = Schedule.objects.select_related("spec__team", "person").get()
    assert actions.fire(nightly) is not None
    assert actions.fire(stale) is None
    assert Run.objects.count() == 1


@pytest.mark.parametrize(("missed", "begun"), [("skip", 0), ("once", 1)])
def test_times_that_passed_while_the_platform_was_down(
    cast: Any, at: Clock, db: None, missed: str, begun: int
) -> None:
    made = actions.add(cast["bob"], cast.spec, "hourly", "0 * * * *", missed=missed)
    at(made.next_at + timedelta(hours=30))
    assert len(swept()) == begun
    made.refresh_from_db()
    assert made.next_at > clock.now() and made.next_at - clock.now() <= timedelta(hours=1)
    assert ("was down" in made.last_error) == (not begun)
    for run in Run.objects.all():
        end(run)
    at(made.next_at + timedelta(seconds=20))  # the next one is in time
    assert len(swept()) == begun + 1


def test_no_run_beside_one_that_has_not_ended(nightly: Schedule, at: Clock) -> None:
    at(nightly.next_at)
    [run] = swept()
    at(clock.now() + timedelta(days=1))
    assert swept() == [run]
    nightly.refresh_from_db()
    assert run.key in nightly.last_error and nightly.active
    end(run)
    at(clock.now() + timedelta(days=1))
    assert len(swept()) == 2


def test_who_may_start_no_runs_any_more_starts_none(cast: Any, nightly: Schedule, at: Clock) -> None:
    cast.team.memberships.filter(user=cast["bob"]).update(role="viewer")
    at(nightly.next_at)
    assert swept() == []
    nightly.refresh_from_db()
    assert not nightly.active and "may no longer start runs" in nightly.last_error
    actions.switch(cast["alice"], nightly, True)  # now it is hers
    nightly.refresh_from_db()
    at(nightly.next_at)
    [run] = swept()
    assert run.made_by == cast["alice"]


def test_a_spec_that_was_archived(cast: Any, nightly: Schedule, at: Clock) -> None:
    cast.spec.archived_at = clock.now()
    cast.spec.save(update_fields=["archived_at"])
    at(nightly.next_at)
    assert swept() == []
    nightly.refresh_from_db()
    assert not nightly.active


def test_from_a_source_and_one_that_was_removed(cast: Any, at: Clock, db: None) -> None:
    source = sources.add(cast["alice"], cast.team, "app", "https://git.example/app.git", ["main", "v*"])
    made = actions.add(cast["bob"], cast.spec, "weekly", "0 0 * * 0", source="app", ref="v1")
    at(made.next_at)
    [run] = swept()
    assert (RunSource.objects.get(run=run).ref, run.files) == ("v1", None)
    end(run)
    sources.remove(cast["alice"], source)
    at(made.next_at + timedelta(days=7))
    assert len(swept()) == 1
    made.refresh_from_db()
    assert made.active and made.last_error.startswith("git.source_unknown")


def test_inputs_are_judged_when_it_is_added_and_when_it_is_due(cast: Any, at: Clock, db: None) -> None:
    spec = create_spec(cast["alice"], cast.team, "weather", WITH_INPUT)
    for wrong in ({"town": "Ulm"}, {"city": "U\0lm"}):
        with pytest.raises(Refused):
            actions.add(cast["bob"], spec, "daily", "0 0 * * *", inputs=wrong)
    made = actions.add(cast["bob"], spec, "daily", "0 0 * * *", inputs={"city": "Ulm"})
    at(made.next_at)
    [run] = swept()
    assert run.inputs == {"city": "Ulm"}
    end(run)
    Schedule.objects.update(inputs={"town": "Ulm"})
    at(made.next_at + timedelta(days=1))
    assert len(swept()) == 1
    made.refresh_from_db()
    assert made.active and made.last_error


def test_one_that_breaks_keeps_no_other_from_its_time(
    cast: Any, nightly: Schedule, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = actions.add(cast["bob"], cast.spec, "a broken one", "0 3 * * *", "Europe/Berlin")
    Schedule.objects.filter(pk=broken.pk).update(zone="Mars/Olympus")
    at(nightly.next_at)
    assert len(swept()) == 1
    monkeypatch.setattr(jobs, "AT_A_TIME", 0)
    assert len(swept()) == 1


# ---- adding


@pytest.mark.parametrize(
    ("about", "code"),
    [({"name": " "}, "web.schedule_name"), ({"name": "nightly"}, "web.schedule_name"),
     ({"cron": "* * * *"}, "web.schedule_cron"), ({"cron": "* * * * * *"}, "web.schedule_cron"),
     ({"cron": "60 * * * *"}, "web.schedule_cron"), ({"cron": "a b c d e"}, "web.schedule_cron"),
     ({"cron": "0 0 30 2 *"}, "web.schedule_cron"), ({"cron": "@daily"}, "web.schedule_cron"),
     ({"cron": "*/0 * * * *"}, "web.schedule_cron"), ({"cron": "\u0661 * * * *"}, "web.schedule_cron"),
     ({"zone": "Mars"}, "web.schedule_zone"), ({"zone": "../../etc/passwd"}, "web.schedule_zone"),
     ({"zone": ""}, "web.schedule_zone"), ({"missed": "all"}, "web.schedule_missed"),
     ({"source": "none"}, "git.source_unknown"), ({"inputs": {"x": "1"}}, "")],
)  # fmt: skip
def test_what_cannot_be_added(cast: Any, nightly: Schedule, about: dict[str, Any], code: str) -> None:
    given = {"name": "other", "cron": "0 6 * * *", "zone": "UTC", **about}
    with pytest.raises(Refused) as why:
        actions.add(cast["bob"], cast.spec, given.pop("name"), given.pop("cron"), given.pop("zone"), **given)
    assert not code or why.value.code == code
    assert Schedule.objects.count() == 1


def test_a_team_has_so_many(cast: Any, nightly: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MOST", 1)
    with pytest.raises(Refused) as why:
        actions.add(cast["bob"], cast.spec, "second", "0 6 * * *")
    assert why.value.code == "web.schedule_many"


def test_who_only_looks_changes_nothing(cast: Any, nightly: Schedule) -> None:
    for act in (
        lambda: actions.add(cast["vera"], cast.spec, "mine", "0 6 * * *"),
        lambda: actions.switch(cast["vera"], nightly, False),
        lambda: actions.remove(cast["vera"], nightly),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_the_page(cast: Any, db: None) -> None:
    bob = cast.client("bob")
    form = {"spec": "small", "name": "nightly", "cron": "0 3 * * *", "zone": "Europe/Berlin",
            "missed": "once", "inputs": ""}  # fmt: skip
    wrong = bob.post(f"{HERE}new/", {**form, "cron": "61 * * * *"})
    page = wrong.content.decode()
    assert wrong.status_code == 422 and 'value="61 * * * *"' in page and "not a cron line" in page
    assert bob.post(f"{HERE}new/", {**form, "inputs": "a"}).status_code == 422
    assert bob.post(f"{HERE}new/", {**form, "spec": "no\u0000ne"}).status_code in (400, 422)
    assert bob.post(f"{HERE}new/", form).status_code == 302
    made = Schedule.objects.get()
    assert (made.person, made.missed, made.active) == (cast["bob"], "once", True)
    page = bob.get(HERE).content.decode()
    assert "nightly" in page and "Turn off" in page
    assert "Add a schedule" not in cast.client("vera").get(HERE).content.decode()
    assert bob.post(f"{HERE}{made.pk}/do/", {"do": "dance"}).status_code == 400
    assert bob.post(f"{HERE}{made.pk}/do/", {"do": "off"}).status_code == 302
    assert "Turn on" in bob.get(HERE).content.decode()
    assert bob.post(f"{HERE}{made.pk}/do/", {"do": "on"}).status_code == 302
    assert bob.post(f"{HERE}{made.pk}/do/", {"do": "remove"}).status_code == 302
    done = Event.objects.filter(action__startswith="schedule.").order_by("pk")
    assert list(done.values_list("action", flat=True)) == [
        "schedule.made", "schedule.off", "schedule.on", "schedule.removed",
    ]  # fmt: skip
    assert cast.client("charlie").get(HERE).status_code == 404
