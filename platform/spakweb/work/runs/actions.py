"""Every write that people make to runs; pages, API and tasks call these alike.

Rights are asked here: a stranger gets Http404, too low a role PermissionDenied. Nothing here advances a run;
what is asked of one is put down in rows and the run is put into its queue after the commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, BinaryIO

from django.db import transaction
from django.db.models import Q
from django.http import Http404

from spak import canon
from spak.errors import UserError
from spak.kernel.budget import EXTENSIBLE
from spak.lang import parse
from spak.program.semantics import require_known
from spak.records import decode
from spak.tools.outside import MOST_QUESTION
from spak.workspace.unpack import Contents
from spakweb.ground import access, clock, unsafe_text
from spakweb.ground.audit.actions import record
from spakweb.ground.database.lock_wait import short_lock_wait
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import digest
from spakweb.store.hints import news
from spakweb.store.jobs.leases import free
from spakweb.store.ledger import priors, uploads
from spakweb.store.runs.models import (
    ENDED,
    SANDBOXES,
    Command,
    KeptFiles,
    Run,
    RunRecord,
    RunText,
    SavedView,
    State,
    Upload,
)
from spakweb.store.runs.spec_text import spec_text
from spakweb.store.sources.models import RunSource
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.runs import modes
from spakweb.work.runs.deleted import gone
from spakweb.work.worker import retention
from spakweb.work.worker.queue import enqueue

LABELS, VIEWS = 20, 40
"""Of one run, and of one team."""
ANSWER_BYTES = 1 << 20
CONTROL_WORDS = {
    "answer": "answered it",
    "call": "called the backend",
    "approve": "approved it",
    "deny": "denied it",
}
"""What somebody did, in words."""


def start(
    user: Any,
    spec: Spec,
    *,
    version: SpecVersion | None = None,
    inputs: Mapping[str, str] | None = None,
    mode: str = "",
    backend: str = "",
    labels: Sequence[str] = (),
    queue: str = "default",
    sandbox: str = "",
    files: Upload | None = None,
    bare: bool = False,
    begun_from: RunSource | None = None,
    text: str = "",
    seed: int | None = None,
    recording: str = "",
    prior: str = "",
    trial: str = "",
    sealed: str = "",
    history: str = "",
) -> Run:
    """A queued run of a version (the newest when none is named). It begins with `files`, else with those kept
    with the spec unless it is `bare` or a worker fetches them, as `begun_from` says. With a `text` it runs
    that one, and is a run of no version. `recording` is the key of a case whose answers it is given, `prior`
    that of an earlier run whose search it begins with, `trial` what measures with it; `sealed` is the key of
    the case whose sealed checks judge what it made, `history` that of commits that its jobs see.

    Raises: Refused `web.run_mode`, `web.run_labels`, `web.run_prior`, `tuner.prior`.
    """
    access.require(user, "run.start", spec)
    unsafe_text.require_no_nul(dict(inputs or {}), backend, queue, prior)
    version = version or spec.head
    if version is None or version.spec_id != spec.pk:
        raise Refused("web.run_version", "This spec has no such version.", "Choose one from its page.")
    whole, taken = TeamFiles.of(spec).taking(text or version.text)
    modes.require_permitted(mode, whole.parsed)
    if sandbox not in SANDBOXES:
        hint = f"One of: {', '.join(SANDBOXES[1:])}."
        raise Refused("web.run_sandbox", f"A run cannot ask for {sandbox[:40]!r}.", hint)
    run = Run(
        team=spec.team, version=None if text else version, key=new_key(), name=spec.name, made_by=user,
        mode=mode, sandbox=sandbox, backend="recorded" if recording else backend[:40],
        inputs=dict(inputs or {}), labels=labels_of(labels),
        files=files or (None if bare or begun_from else kept_files(spec)), trial=trial, **_queues(queue),
        takes_in=sorted(one.pk for one in taken),
        prior=priors.fitting(user, spec.team, prior, whole, inputs or {}), sealed=sealed,
        history=history,
    )  # fmt: skip
    if run.files is not None and run.files.team_id != spec.team_id:
        raise Http404
    with transaction.atomic():
        run.save(force_insert=True)
        if begun_from is not None:
            begun_from.run = run
            begun_from.save(force_insert=True)
        if text or recording or seed is not None:
            given = secrets.randbits(52) if seed is None else seed
            RunText.objects.create(run=run, spec=spec, text=text, seed=given, pack=recording)
        after = digest(text) if text else version.content_hash
        record(user, "run.started", run.key, spec.team, after=after)
        enqueue(run)
    return run


def kept_files(spec: Spec) -> Upload | None:
    """The files that runs of the spec begin with unless they are given others."""
    return Upload.objects.filter(keeps__spec=spec).first()


def bring_files(
    user: Any, spec: Spec, name: str, archive: BinaryIO, size: int, *, strip: bool = False
) -> tuple[Upload, Contents]:
    """Take a zip of files for runs of the spec's team; the same files again are the same upload. With `strip`
    a single folder around all of them is left out.

    Raises: Refused `upload.*`.
    """
    access.require(user, "run.start", spec)
    return uploads.keep(user, spec.team, name, archive, size, strip=strip)


def keep_files(user: Any, spec: Spec, upload: Upload | None) -> None:
    """Begin later runs of the spec with these files; with none as before there were any."""
    access.require(user, "run.start", spec)
    with transaction.atomic():
        if upload is None:
            KeptFiles.objects.filter(spec=spec).delete()
        else:
            KeptFiles.objects.update_or_create(spec=spec, defaults={"upload": upload})
        record(user, "files.kept", spec.slug, spec.team, after=upload.root if upload else "")


def fork(user: Any, parent: Run, at: int, mode: str = "") -> Run:
    """A new run that takes over the proposals of `parent` before record `at`.

    Raises: Refused `web.run_fork`, `web.run_mode`, `ledger.semantics`.
    """
    access.require(user, "run.start", parent)
    _own(parent)
    _require_known(parent)
    modes.require_permitted(mode, parse(spec_text(parent)))
    if not 0 < at <= parent.count:
        raise Refused("web.run_fork", f"There is no record {at} to fork at.", f"1 to {parent.count}.")
    run = Run(
        team=parent.team, version=parent.version, key=new_key(), name=parent.name, made_by=user,
        mode=mode or parent.mode, backend=parent.backend, inputs=parent.inputs, labels=parent.labels,
        **_queues(parent.queue, parent.gpu), sandbox=parent.sandbox, parent=parent, parent_seq=at,
        files=parent.files, takes_in=parent.takes_in, sealed=parent.sealed,
        history=parent.history,
    )  # fmt: skip
    with transaction.atomic():
        if not Run.objects.select_for_update(no_key=True).filter(pk=parent.pk, deleted_at=None).exists():
            raise gone(Run.objects.get(pk=parent.pk))
        run.save(force_insert=True)
        if begun_from := RunSource.objects.filter(run=parent).first():
            begun_from.run = run
            begun_from.save(force_insert=True)
        record(user, "run.forked", run.key, parent.team, before=parent.key)
        enqueue(run)
    return run


def ask(user: Any, run: Run, kind: str, of: str, backend: str = "", **body: Any) -> Command:
    """Put down an answer, a call of the backend, an approval or a denial of what the run waits for.

    A call may name the `backend` of a run that has none; from then on it is the run's. The first one counts;
    the same again is that one. Raises: Refused `web.run_ended`, `web.run_answered`, `web.run_approval`,
    `web.run_backend`, `web.trial_answer`.
    """
    access.require(user, "run.approve" if kind in ("approve", "deny") else "run.answer", run)
    if not (run.agent and kind != "call"):
        _own(run)
    if run.trial:
        words = "No person answers the runs of an experiment or a campaign: they measure the spec alone."
        raise Refused("web.trial_answer", words, "Fork the run to go on with it by hand.", 409)
    unsafe_text.require_no_nul(of, body)
    if backend not in ("", *catalog().backends):
        hint = f"One of: {', '.join(catalog().backends)}."
        raise Refused("web.run_backend", f"There is no backend {backend[:40]!r}.", hint)
    if run.agent and len(str(body.get("text", ""))) > MOST_QUESTION:
        words = f"The answer is longer than {MOST_QUESTION:,} characters."
        raise Refused("web.answer_size", words, "Write it to a file of the project.")
    if len(str(body.get("text", "")).encode()) > ANSWER_BYTES:
        raise Refused("web.answer_size", "The answer is longer than 1 MiB.", "Write it to a file of the run.")
    with short_lock_wait():
        now = Run.objects.select_for_update().get(pk=run.pk)
        if now.ended:
            raise Refused("web.run_ended", "The run has ended.", "Fork it to try another way.", 409)
        earlier = now.commands.filter(done_at=None, body__of=of).select_related("by").first()
        if earlier is not None:
            asked = {name: value for name, value in earlier.body.items() if name != "signed"}
            if (earlier.kind, asked, earlier.by_id) == (kind, {**body, "of": of}, user.pk):
                return earlier
            raise _late(f"{earlier.by} was first and {CONTROL_WORDS[earlier.kind]}")
        found = now.summary or {}
        open_asks = [one for one in (found.get("waiting"), *found.get("also", ())) if one]
        waiting = next((one for one in open_asks if one.get("id") == of), None)
        if waiting is None:
            raise _late("The run is no longer waiting for this")
        is_approval = waiting.get("kind") == "approval"
        if is_approval != (kind in ("approve", "deny")):
            words = "an approval" if is_approval else "an answer, and not for an approval"
            hint = "A reviewer approves or denies it." if is_approval else "Answer it."
            raise Refused("web.run_approval", f"The run waits for {words}.", hint, 409)
        if kind == "call" and backend and not now.backend:
            Run.objects.filter(pk=now.pk).update(backend=backend)
        command = Command.objects.create(run=now, kind=kind, body={**body, "of": of}, by=user)
        record(user, f"run.{kind}", run.key, run.team)
        if now.agent:  # its guard asks what was decided
            transaction.on_commit(partial(news.publish, now.key, now.count))
        else:
            enqueue(now)
    return command


def extend(user: Any, run: Run, budget: str, by: int) -> Command:
    """Ask for more of a budget of a run under way. The kernel decides when a worker takes the run up: before
    the budget is used up, within the cap of its spec, where the law does not refuse it.

    Raises: Refused `web.run_extension`, `web.run_ended`, `web.trial_answer`.
    """
    access.require(user, "run.control", run)
    _own(run)
    if run.trial:
        words = "Nobody extends the budgets of an experiment or a campaign: they measure the spec alone."
        raise Refused("web.trial_answer", words, "Raise the BUDGET of the spec.", 409)
    if budget not in EXTENSIBLE or type(by) is not int or not 0 < by <= canon.MAX_INT:
        words = "An extension is a budget and a whole number above 0."
        raise Refused("web.run_extension", words, f"One of: {', '.join(EXTENSIBLE)}.")
    with short_lock_wait():
        now = Run.objects.select_for_update().get(pk=run.pk)
        if now.ended:
            raise Refused("web.run_ended", "The run has ended.", "Fork it to try another way.", 409)
        command = Command.objects.create(run=now, kind="extend", body={"budget": budget, "by": by}, by=user)
        record(user, "run.extend", run.key, run.team, budget=budget, by=by)
        enqueue(now)
    return command


def _own(run: Run) -> None:
    """Raises: Refused `web.run_shown` for an import that is not under the law of this platform, and for a
    guarded session."""
    if run.agent:
        words = "A guarded session is advanced by its guard, where its agent works."
        raise Refused("web.run_shown", words, "End it there: Ctrl-C.", 409)
    if run.only_shown:
        raise Refused(
            "web.run_shown", f"The run was imported and is only shown: {run.only_shown}.",
            "Start a run of your own from the spec.", 409,
        )  # fmt: skip


def _require_known(run: Run) -> None:
    """Raises: Refused `ledger.semantics` for a run of another kernel."""
    first = RunRecord.objects.filter(run=run, seq=0).values_list("line", flat=True).first()
    try:
        if first is not None:
            require_known(decode(bytes(first)).body["rules"])
    except UserError as why:
        raise Refused.of(why) from why


def _late(why: str) -> Refused:
    return Refused(
        "web.run_answered", f"{why}: your answer was not used.", "The page shows the run as it is now.", 409
    )


def request_control(user: Any, run: Run, word: str) -> None:
    """Pause or cancel; a run that nobody holds is seen to by the next worker. An ended run stays, and so does
    the wish to cancel one. One never begun is cancelled here: a worker would have to begin it first, and a
    thousand of them for minutes."""
    access.require(user, "run.control", run)
    _own(run)
    with short_lock_wait():
        now = clock.now()
        wishes = Run.objects.filter(pk=run.pk)
        if word == "pause":  # who asked to cancel has asked for more
            wishes = wishes.exclude(wanted="cancel")
        waits = Run.objects.filter(free(now), pk=run.pk, count=0).exclude(state__in=ENDED)
        if word == "cancel" and waits.update(
            state=State.CANCELLED, reason="run.cancelled", wanted="", ended_at=now
        ):
            record(user, "run.cancel", run.key, run.team)
            transaction.on_commit(partial(news.publish, run.key, 0))
        elif wishes.exclude(state__in=ENDED).update(wanted=word):
            record(user, f"run.{word}", run.key, run.team)
            enqueue(run)


def resume(user: Any, run: Run) -> None:
    """Go on with a paused run, unless it is to be cancelled."""
    access.require(user, "run.control", run)
    _own(run)
    with short_lock_wait():
        free = Q(state=State.PAUSED) | Q(wanted="pause")
        rows = Run.objects.filter(free, pk=run.pk).exclude(wanted="cancel").exclude(state__in=ENDED)
        if rows.update(wanted="", state=State.QUEUED):
            record(user, "run.resumed", run.key, run.team)
            enqueue(run)


def label(user: Any, run: Run, labels: Sequence[str]) -> None:
    """Raises: Refused `web.run_labels`."""
    access.require(user, "run.control", run)
    found = labels_of(labels)
    with short_lock_wait():
        Run.objects.filter(pk=run.pk).update(labels=found)
        record(user, "run.labelled", run.key, run.team, labels=found)


def delete(user: Any, run: Run) -> None:
    """Delete a run that ended, for good; a sweep removes what it held within minutes.

    Raises: Refused `web.run_delete`, `web.run_deleted`.
    """
    access.require(user, "run.delete", run)
    if retention.mark(run, user, "an admin"):
        return
    now = Run.objects.select_related("deleted_by").get(pk=run.pk)
    if now.deleted_at is not None:
        raise gone(now)
    forks = ", ".join(retention.forks_that_go_on(now)[:5])
    if now.deletable and forks:
        raise Refused(
            "web.run_delete", f"Forks of the run go on with what it holds: {forks}.",
            "Wait until they end, or cancel them.", 409,
        )  # fmt: skip
    raise Refused("web.run_delete", "The run has not ended.", "Cancel it first.", 409)


def keep_view(user: Any, team: Team, name: str, query: str) -> str:
    """Keep a filter under a name for the team, or change the one of that name; without a filter drop it.
    Gives what was done, in a word. Raises: Refused `web.run_view`."""
    access.require(user, "run.control", team)
    if not name or (query and team.run_views.exclude(name=name).count() >= VIEWS):
        raise Refused("web.run_view", f"A view needs a name; a team keeps {VIEWS}.", "Drop one first.")
    if len(query) > SavedView._meta.get_field("query").max_length:
        raise Refused("web.run_view", "This filter is too long to be kept.", "Filter by fewer words.")
    with transaction.atomic():
        if query:
            fields = {"query": query, "made_by": user}
            _, new = team.run_views.update_or_create(name=name, defaults=fields)
            done = "Kept" if new else "Changed"
        else:
            done = "Dropped" if team.run_views.filter(name=name).delete()[0] else ""
        if done:
            record(user, f"view.{done.lower()}", name, team, query=query)
    return done


def new_key() -> str:
    """As the command line makes them: the time, so that ids sort, and something random."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def labels_of(labels: Sequence[str]) -> list[str]:
    """The labels that texts name, without doubles. Raises: Refused where they are too many or unsafe."""
    unsafe_text.require_no_nul(list(labels))
    words = (unsafe_text.visible(str(label))[:40].strip() for label in labels)
    found = list(dict.fromkeys(word for word in words if word))
    if len(found) > LABELS:
        raise Refused("web.run_labels", f"A run has at most {LABELS} labels.", "Leave some out.")
    return found


def _queues(name: str, gpu: str = "gpu") -> dict[str, str]:
    """The queue that a run begins in, and that of what it does on a GPU, which a name of one means."""
    on_gpu = name == "gpu" or name.startswith("gpu.")
    return {"queue": "default" if on_gpu else name, "gpu": name if on_gpu and name != "gpu" else gpu}
