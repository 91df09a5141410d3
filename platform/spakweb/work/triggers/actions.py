"""Every write to triggers: what people do, and what a message does.

A run that a message begins is started by the trigger's person, with that person's rights at that moment and
by all rules of the team, as if they had pressed the button. Who has lost the right turns the trigger off.
While its last run goes on, no other begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404

from spakweb.ground import access, unsafe_text
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import one_line
from spakweb.store.incoming.models import Receiver
from spakweb.store.runs.models import ENDED
from spakweb.store.sources import refs
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.triggers.models import Trigger
from spakweb.work.incoming import actions as incoming
from spakweb.work.incoming import payloads
from spakweb.work.incoming.actions import Message, Outcome, State
from spakweb.work.runs import actions as runs
from spakweb.work.runs import start_inputs
from spakweb.work.sources import actions as sources
from spakweb.work.triggers.mapping import texts

MOST = 50
"""Triggers of one team."""


def add(
    user: Any,
    spec: Spec,
    name: str,
    *,
    version: int | None = None,
    tag: str = "",
    event: str = "",
    ref: str = "",
    mapping: Mapping[str, str] | None = None,
    inputs: Mapping[str, str] | None = None,
    source: str = "",
    ref_at: str = "/ref",
    commit_at: str = "/after",
) -> tuple[Trigger, str]:
    """A trigger that is on, and its secret, which is shown this once. Version, inputs, pointers and source
    are judged at once.

    Raises: Refused `web.trigger_name`, `web.trigger_version`, `web.trigger_pointer`, `web.trigger_input`,
    `web.trigger_many`, `git.refs`, `git.source_unknown`, and what inputs that do not fit raise.
    """
    access.require(user, "trigger.edit", spec)
    access.require(user, "run.start", spec)
    unsafe_text.require_no_nul(dict(inputs or {}), dict(mapping or {}), event, ref, source, tag)
    called = one_line(name, 60)
    if not called:
        raise Refused("web.trigger_name", "A trigger needs a name.", "deploy", 422)
    pattern = refs.patterns([ref])[0] if ref.strip() else ""
    made = Trigger(
        spec=spec, name=called, event=one_line(event, 100), ref=pattern, tag=tag.strip(),
        mapping={name: payloads.pointer(path) for name, path in (mapping or {}).items()},
        inputs=dict(inputs or {}), source=source.strip(), person=user,
        ref_at=payloads.pointer(ref_at or "/ref"), commit_at=payloads.pointer(commit_at or "/after"),
    )  # fmt: skip
    if version is not None:
        made.version = spec.versions.filter(number=version).first()
        if made.version is None or made.tag:
            words = "A trigger runs a version of the spec, or a tag, or the newest."
            raise Refused("web.trigger_version", words, "Name one of them.", 422)
    _require_inputs(made, _known(made))
    if made.source:
        sources.find(user, spec, made.source)
    try:
        with transaction.atomic():
            list(Team.objects.select_for_update(no_key=True).filter(pk=spec.team_id).values_list("pk"))
            if Trigger.objects.filter(spec__team=spec.team_id).count() >= MOST:
                raise Refused("web.trigger_many", f"A team has at most {MOST} triggers.", "Remove one.", 409)
            made.receiver, secret = incoming.make(user, spec.team)
            made.save(force_insert=True)
            record(user, "trigger.made", called, spec.team, spec=spec.slug, event=made.event, ref=pattern)
    except IntegrityError as error:
        hint = "Choose another name."
        raise Refused("web.trigger_name", f"The spec has a trigger {called}.", hint, 409) from error
    return made, secret


def switch(user: Any, trigger: Trigger, on: bool) -> None:
    """Turn it on, by somebody whose rights its runs have from now on, or off."""
    access.require(user, "trigger.edit", trigger)
    if on:
        access.require(user, "run.start", trigger.spec)
    about = {"person": user} if on else {}
    with transaction.atomic():
        if Trigger.objects.filter(pk=trigger.pk, active=not on).update(active=on, **about):
            record(user, "trigger.on" if on else "trigger.off", trigger.name, trigger.team)


def rotate(user: Any, trigger: Trigger) -> str:
    """A new secret, shown this once; the one before is taken too for a day."""
    access.require(user, "trigger.edit", trigger)
    with transaction.atomic():
        secret = incoming.renew(trigger.receiver)
        record(user, "trigger.rotated", trigger.name, trigger.team)
    return secret


def remove(user: Any, trigger: Trigger) -> None:
    """Remove it with its address and its log. Runs that it began stay."""
    access.require(user, "trigger.edit", trigger)
    with transaction.atomic():
        record(user, "trigger.removed", trigger.name, trigger.team, spec=trigger.spec.slug)
        trigger.receiver.delete()


def pointers(receiver: Receiver) -> tuple[str, str]:
    """Where messages to a trigger name a ref and a commit."""
    found: tuple[str, str] = Trigger.objects.values_list("ref_at", "commit_at").get(receiver=receiver)
    return found


def fire(receiver: Receiver, message: Message) -> Outcome:
    """What a message whose signature held does: a run, or why there is none.

    Raises: Refused for a message that does not fit: nothing is begun.
    """
    rows = Trigger.objects.select_related("spec__team", "spec__head", "version", "person", "last_run")
    trigger = rows.get(receiver=receiver)
    done = _fired(trigger, message)
    if done.run is not None:
        Trigger.objects.filter(pk=trigger.pk).update(last_run=done.run)
        record(trigger.person, "trigger.started", trigger.name, trigger.team, run=done.run.key)
    return done


def _fired(trigger: Trigger, message: Message) -> Outcome:
    if not trigger.active:
        return Outcome(State.HELD, "The trigger is off.")
    if why := _unfit(trigger, message):
        return Outcome(State.IGNORED, why)
    last = trigger.last_run
    if last is not None and last.state not in ENDED and not last.only_shown:
        return Outcome(State.HELD, f"Run {last.key} of the message before has not ended.")
    if trigger.spec.archived_at is not None:
        return Outcome(State.HELD, "The spec is archived.")
    try:
        with transaction.atomic():
            given = _given(trigger, message)
            run = runs.start(trigger.person, trigger.spec, labels=[f"trigger {trigger.name}"], **given)
    except (PermissionDenied, Http404):
        words = f"{trigger.person} may start no runs of the spec any more. The trigger is off."
        Trigger.objects.filter(pk=trigger.pk).update(active=False)
        record(trigger.person, "trigger.off", trigger.name, trigger.team, why=words)
        return Outcome(State.HELD, words)
    return Outcome(State.DONE, f"Started run {run.key}.", run)


def _unfit(trigger: Trigger, message: Message) -> str:
    """Why the message is not one that the trigger is for; empty where it is."""
    push = message.push
    if trigger.event and trigger.event != message.event:
        return f"The trigger is for the event {trigger.event}."
    if trigger.ref and not (push.ref and refs.matches(_full(push.ref), trigger.ref)):
        return f"The trigger is for {trigger.ref}."
    if push.deleted:
        return "The ref was deleted."
    return ""


def _full(ref: str) -> str:
    return ref if ref.startswith("refs/") else refs.HEADS + ref


def _given(trigger: Trigger, message: Message) -> dict[str, Any]:
    """What the run is started with, judged now. Raises: Refused, PermissionDenied."""
    push = message.push
    version = _version(trigger)
    known = _known(trigger)
    _require_inputs(trigger, known)
    given = {**trigger.inputs, **texts(known, trigger.mapping, message.payload)}
    found: dict[str, Any] = {"version": version, "inputs": start_inputs.checked(version, given)}
    if trigger.source:
        if not push.ref or not push.commit:
            words = f"The message names no ref at {trigger.ref_at}, or no commit at {trigger.commit_at}."
            raise Refused("web.trigger_commit", words, "The run begins with the files of that commit.", 422)
        found["begun_from"] = sources.begin(
            trigger.person, trigger.spec, trigger.source, push.ref, push.commit
        )
    return found


def _version(trigger: Trigger) -> SpecVersion:
    """The version that runs now. Raises: Refused `web.trigger_version`."""
    found = trigger.version or trigger.spec.head
    if trigger.tag:
        tag = trigger.spec.tags.select_related("version").filter(name=trigger.tag).first()
        found = tag.version if tag is not None else None
    if found is None:
        raise Refused("web.trigger_version", "The spec has no such version or tag.", "Name another.", 409)
    return found


def _known(trigger: Trigger) -> Mapping[str, Any]:
    return start_inputs.declared(_version(trigger))


def _require_inputs(trigger: Trigger, known: Mapping[str, Any]) -> None:
    """Each input is one that is declared, once, and none that is needed is missing.

    Raises: Refused `web.trigger_input`, `web.run_input`.
    """
    given = [*trigger.mapping, *trigger.inputs]
    hint = f"It declares: {', '.join(known) or 'none'}."
    for name in given:
        if name not in known:
            raise Refused("web.trigger_input", f"The spec has no input {name[:60]!r}.", hint, 422)
        if given.count(name) > 1:
            raise Refused("web.trigger_input", f"The input {name} is given twice.", hint, 422)
        if name in trigger.inputs and (wanted := known[name].problem(known[name].read(trigger.inputs[name]))):
            raise Refused("web.trigger_input", f"The input {name} wants {wanted}.", hint, 422)
    if missing := [name for name, item in known.items() if item.required and name not in given]:
        raise Refused("web.trigger_input", f"The spec needs the input {missing[0]}.", hint, 422)
