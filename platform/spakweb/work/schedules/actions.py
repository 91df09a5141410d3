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

from spakweb.ground import access, clock, unsafe_text
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import one_line
from spakweb.store.runs.models import ENDED, Run
from spakweb.store.schedules.models import Schedule
from spakweb.store.specs.models import Spec
from spakweb.work.runs import actions as runs
from spakweb.work.runs import start_inputs
from spakweb.work.schedules import times
from spakweb.work.sources import actions as sources

MOST = 50
"""Schedules of one team."""
FIELDS = ("cron", "zone", "missed", "inputs", "source", "ref")
"""What of one can be changed."""
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
    access.require(user, "run.start", spec)
    called = one_line(name, 60)
    if not called:
        raise Refused("web.schedule_name", "A schedule needs a name.", "nightly", 422)
    made = Schedule(spec=spec, name=called)
    _fill(
        user, made,
        {"cron": cron, "zone": zone, "missed": missed, "inputs": inputs or {}, "source": source, "ref": ref},
    )  # fmt: skip
    try:
        with transaction.atomic():
            list(Team.objects.select_for_update(no_key=True).filter(pk=spec.team_id).values_list("pk"))
            if Schedule.objects.filter(spec__team=spec.team_id).count() >= MOST:
                raise Refused(
                    "web.schedule_many", f"A team has at most {MOST} schedules.", "Remove one.", 409
                )
            made.save(force_insert=True)
            record(user, "schedule.made", called, spec.team, spec=spec.slug, cron=made.cron, zone=made.zone)
    except IntegrityError as error:
        hint = "Choose another name."
        raise Refused("web.schedule_name", f"The spec has a schedule {called}.", hint, 409) from error
    return made


def change(user: Any, schedule: Schedule, given: Mapping[str, Any]) -> Schedule:
    """Change when it is due, what happens to a missed time, or what its runs begin with; what is not given
    stays. Its runs have the rights of whoever changed it, from now on.

    Raises: as `add`.
    """
    access.require(user, "schedule.edit", schedule)
    access.require(user, "run.start", schedule.spec)
    now = {name: getattr(schedule, name) for name in FIELDS}
    wanted = {**now, **given}
    if wanted["source"] != schedule.source and "ref" not in given:
        wanted["ref"] = ""
    _fill(user, schedule, wanted)
    with transaction.atomic():
        changed = {name: getattr(schedule, name) for name in (*FIELDS, "person", "next_at")}
        Schedule.objects.filter(pk=schedule.pk).update(last_error="", **changed)
        about = {"spec": schedule.spec.slug, "cron": schedule.cron, "zone": schedule.zone}
        record(user, "schedule.changed", schedule.name, schedule.team, **about)
    return Schedule.objects.select_related("spec__team", "person", "last_run").get(pk=schedule.pk)


def run_now(user: Any, schedule: Schedule) -> Run:
    """A run as the schedule begins them, at once and with the rights of whoever asks; its times stay.

    Raises: Refused `web.schedule_busy` while the one before has not ended; what starting a run raises.
    """
    access.require(user, "schedule.edit", schedule)
    with transaction.atomic():
        held = Schedule.objects.select_for_update(of=("self",), no_key=True).select_related("last_run")
        now = held.get(pk=schedule.pk)
        if (last := _under_way(now)) is not None:
            words = f"Run {last.key} of the time before has not ended."
            raise Refused("web.schedule_busy", words, "Wait until it ends, or cancel it.", 409)
        run = _start(user, schedule)
        Schedule.objects.filter(pk=schedule.pk).update(last_run=run, last_at=clock.now(), last_error="")
        record(user, "schedule.started", schedule.name, schedule.team, run=run.key)
    return run


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
    if (last := _under_way(schedule)) is not None:
        return None, f"Run {last.key} of the time before has not ended.", True
    if schedule.spec.archived_at is not None:
        return None, "The spec is archived.", False
    try:
        with transaction.atomic():
            run = _start(schedule.person, schedule)
    except (PermissionDenied, Http404):
        return None, f"{schedule.person} may no longer start runs of the spec. The schedule is off.", False
    except Refused as why:
        return None, f"{why.code}: {why.message}", True
    return run, "", True


def _under_way(schedule: Schedule) -> Run | None:
    """The run of the time before, while it has not ended."""
    last = schedule.last_run
    return last if last is not None and last.state not in ENDED and not last.only_shown else None


def _start(user: Any, schedule: Schedule) -> Run:
    given = _given(user, schedule)
    return runs.start(user, schedule.spec, labels=[f"schedule {schedule.name}"], **given)


def _fill(user: Any, schedule: Schedule, given: Mapping[str, Any]) -> None:
    """Put FIELDS into a row, judged; it is due after now, and its runs are this person's. Raises: Refused."""
    unsafe_text.require_no_nul(dict(given["inputs"]))
    line, zone = one_line(given["cron"], 100), given["zone"].strip()
    if given["missed"] not in Schedule.Missed.values:
        raise Refused(
            "web.schedule_missed", "A missed time is left out or begins one run.", "skip, once", 422
        )
    schedule.cron, schedule.zone, schedule.missed = line, zone, given["missed"]
    schedule.inputs, schedule.source = dict(given["inputs"]), given["source"]
    schedule.ref = given["ref"].strip() if schedule.source else ""
    schedule.person, schedule.next_at = user, times.next_after(line, zone, clock.now())
    _given(user, schedule)


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
