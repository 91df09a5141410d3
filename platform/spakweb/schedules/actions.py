"""Every write to schedules: what people do, and what a time that has come does.

A run that a schedule begins is started by its person, with that person's rights at that moment and by all
rules of the team, as if they had pressed the button. Who has lost the right turns the schedule off.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404

from spakweb import access, clock
from spakweb.audit.actions import record
from spakweb.errors import Refused
from spakweb.runs import actions as runs
from spakweb.runs import start_inputs, unsafe_text
from spakweb.runs.models import ENDED, Run
from spakweb.schedules import times
from spakweb.schedules.models import Schedule
from spakweb.sources import actions as sources
from spakweb.specs.models import Spec
from spakweb.teams.models import Team
from spakweb.text import one_line

MOST = 50
"""Schedules of one team."""
LATE = timedelta(minutes=5)
"""A time that is over for longer was missed."""


def add(
    user: Any,
    spec: Spec,
    name: str,
    cron: str,
    zone: str = "UTC",
    *,
    missed: str = "skip",
    inputs: Mapping[str, str] | None = None,
    source: str = "",
    ref: str = "",
) -> Schedule:
    """A schedule that is on. Its inputs and source are judged at once.

    Raises: Refused `web.schedule_name`, `web.schedule_cron`, `web.schedule_zone`, `web.schedule_missed`,
    `web.schedule_many`, `git.*`, and what inputs that do not fit raise.
    """
    access.require(user, "schedule.edit", spec)
    unsafe_text.require_no_nul(dict(inputs or {}))
    called, line = one_line(name, 60), one_line(cron, 100)
    if not called:
        raise Refused("web.schedule_name", "A schedule needs a name.", "nightly", 422)
    if missed not in Schedule.Missed.values:
        raise Refused(
            "web.schedule_missed", "A missed time is left out or begins one run.", "skip, once", 422
        )
    made = Schedule(
        spec=spec, name=called, cron=line, zone=zone.strip(), missed=missed, inputs=dict(inputs or {}),
        source=source, ref=ref.strip() if source else "", person=user,
        next_at=times.next_after(line, zone.strip(), clock.now()),
    )  # fmt: skip
    _given(user, made)
    try:
        with transaction.atomic():
            list(Team.objects.select_for_update(no_key=True).filter(pk=spec.team_id).values_list("pk"))
            if Schedule.objects.filter(spec__team=spec.team_id).count() >= MOST:
                raise Refused(
                    "web.schedule_many", f"A team has at most {MOST} schedules.", "Remove one.", 409
                )
            made.save(force_insert=True)
            record(user, "schedule.made", called, spec.team, spec=spec.slug, cron=line, zone=made.zone)
    except IntegrityError as error:
        hint = "Choose another name."
        raise Refused("web.schedule_name", f"The spec has a schedule {called}.", hint, 409) from error
    return made


def switch(user: Any, schedule: Schedule, on: bool) -> None:
    """Turn it on, by somebody whose rights its runs have from now on, or off."""
    access.require(user, "schedule.edit", schedule)
    if on:
        access.require(user, "run.start", schedule.spec)
    about = {"person": user, "last_error": ""} if on else {}
    following = times.next_after(schedule.cron, schedule.zone, clock.now())
    with transaction.atomic():
        if Schedule.objects.filter(pk=schedule.pk, active=not on).update(
            active=on, next_at=following, **about
        ):
            record(user, "schedule.on" if on else "schedule.off", schedule.name, schedule.team)


def remove(user: Any, schedule: Schedule) -> None:
    """Remove it. Runs that it began stay."""
    access.require(user, "schedule.edit", schedule)
    with transaction.atomic():
        record(user, "schedule.removed", schedule.name, schedule.team, spec=schedule.spec.slug)
        schedule.delete()


def fire(schedule: Schedule) -> Run | None:
    """Do what is due now, once, whoever else tries: begin a run, or say why there is none."""
    now, due = clock.now(), schedule.next_at
    following = times.next_after(schedule.cron, schedule.zone, now)
    with transaction.atomic():
        mine = Schedule.objects.filter(pk=schedule.pk, active=True, next_at=due)
        if due > now or not mine.update(next_at=following, last_at=now):
            return None
        run, error, on = _begun(schedule, now - due)
        Schedule.objects.filter(pk=schedule.pk).update(last_run=run, last_error=error[:300], active=on)
        action = "schedule.started" if run is not None else "schedule.held" if on else "schedule.off"
        about = {"run": run.key} if run is not None else {"why": error[:200]}
        record(schedule.person, action, schedule.name, schedule.team, **about)
    return run


def _begun(schedule: Schedule, late: timedelta) -> tuple[Run | None, str, bool]:
    """The run, or why there is none, and whether the schedule stays on."""
    if late > LATE and schedule.missed == Schedule.Missed.SKIP:
        return None, "The time passed while the platform was down.", True
    last = schedule.last_run
    if last is not None and last.state not in ENDED and not last.only_shown:
        return None, f"Run {last.key} of the time before has not ended.", True
    if schedule.spec.archived_at is not None:
        return None, "The spec is archived.", False
    try:
        with transaction.atomic():
            given = _given(schedule.person, schedule)
            run = runs.start(schedule.person, schedule.spec, labels=[f"schedule {schedule.name}"], **given)
    except (PermissionDenied, Http404):
        return None, f"{schedule.person} may start no runs of the spec any more. The schedule is off.", False
    except Refused as why:
        return None, f"{why.code}: {why.message}", True
    return run, "", True


def _given(user: Any, schedule: Schedule) -> dict[str, Any]:
    """What its runs are started with, judged now. Raises: Refused, PermissionDenied."""
    version = schedule.spec.head
    if version is None:
        raise Refused("web.run_version", "The spec has no version.", "Save one.", 409)
    known = start_inputs.declared(version)
    if unknown := sorted(schedule.inputs.keys() - known.keys()):
        hint = f"It declares: {', '.join(known) or 'none'}."
        raise Refused("web.run_input", f"The spec has no input {unknown[0][:60]!r}.", hint, 422)
    found: dict[str, Any] = {"inputs": start_inputs.checked(version, dict(schedule.inputs))}
    if schedule.source:
        found["begun_from"] = sources.begin(user, schedule.spec, schedule.source, schedule.ref)
    return found
