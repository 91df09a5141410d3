"""What a run changed, back to its source: people ask for a branch and approve it, a worker pushes it.

The commit barrier: only a run that ended with success and whose result something checked, from the very files
that it ended with. The door (`spak.door`) keeps secrets in, and says what of the changes would run by itself:
who approves signs for exactly what the page showed. Before anything leaves, the worker verifies the ledger
and derives every record again. A branch is new and begins with `spak/`: none that is there is changed. Its
commit is upon the one that the run began from, and the same each time, so that a push that is repeated does
nothing. Where the source names GitHub or GitLab a pull request may be opened with it (forges.py), by the same
approval.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.dispatch import receiver
from django.urls import reverse
from kombu.exceptions import KombuError

from spak.errors import RunError, UserError
from spak.files.scratch import Scratch
from spakweb import access, clock
from spakweb.audit.actions import record
from spakweb.errors import Refused
from spakweb.host_faults import is_fault
from spakweb.ledger.export import checked
from spakweb.ledger.workspaces import folder_of
from spakweb.runs import files
from spakweb.runs.leases import is_due
from spakweb.runs.models import Run, State
from spakweb.sources import changes, fetching, forges, leaving, pushing, refs
from spakweb.sources.freeze import AWAY, TRIES, git_of, waits
from spakweb.sources.models import Branch, RunSource
from spakweb.worker.retry_policy import HOST_PAUSE
from spakweb.worker.tasks import after_sweep

PREFIX = "spak/"
MOST = 10
"""Branches of one run."""
PILLS = {
    "asked": "waiting",
    "approved": "queued",
    "pushed": "succeeded",
    "failed": "failed",
    "declined": "refused",
}
AGAIN = timedelta(seconds=60)
"""After the time for a push and so long a worker that took it up counts as gone."""

log = logging.getLogger(__name__)


def barrier(run: Run) -> RunSource:
    """Where what the run changed may go to. Raises: Refused `git.barrier`."""
    begun = RunSource.objects.select_related("source__team").filter(run=run).first()
    if begun is None or begun.source is None or not begun.commit:
        raise _held("The run began from no source, or its source was removed.", "Take its patch.")
    if run.state != State.SUCCEEDED or run.only_shown or run.deleted_at is not None:
        raise _held("Only what a run made that ended with success goes out.", "Its patch can be had.")
    if run.unchecked:
        hint = "Give the task a `success:` or a VALIDATOR and run it again; its patch can be had."
        raise _held("Nothing checked the result of the run.", hint)
    return begun


def ask(
    user: Any,
    run: Run,
    name: str = "",
    title: str = "",
    *,
    pull: bool = False,
    approve: bool = False,
    signed: str = "",
) -> Branch:
    """A branch for what the run changed, with `pull` and a pull request of it; with `approve` by somebody who
    may approve it, at once, and has seen what `signed` is the digest of.

    Raises: Refused `git.barrier`, `git.branch`, `git.branch_taken`, `git.unchanged`, `git.forge`,
    `git.pull_base`, `door.*`.
    """
    access.require(user, "run.branch", run)
    begun = barrier(run)
    if pull:
        if begun.source is None or not begun.source.forge:
            hint = "An admin adds the source with GitHub or GitLab."
            raise Refused("git.forge", f"{begun.name} opens no pull requests.", hint, 409)
        forges.base_of(begun.ref)
    called = refs.name((name or f"{PREFIX}{run.key}").strip())
    if not called.startswith(PREFIX):
        raise Refused("git.branch", f"A branch of a run begins with {PREFIX}.", f"{PREFIX}{run.key}", 422)
    before, now = files.roots(run)
    if before == now:
        raise Refused("git.unchanged", "The run changed no file.", "There is nothing to push.", 409)
    found = leaving.by_law(run)
    leaving.must_fit(found, signed if approve else found.digest)
    row = Branch(run=run, name=called, title=changes.title_of(title, run), root=now, pull=pull, asked_by=user)
    try:
        with transaction.atomic():
            if Branch.objects.filter(run=run).count() >= MOST:
                raise Refused("git.branch", f"A run has at most {MOST} branches.", "Use one of them.", 409)
            row.save(force_insert=True)
            record(user, "source.branch_asked", run.key, run.team, branch=called, after=now, pull=pull)
    except IntegrityError as error:
        hint = "Choose another name."
        raise Refused("git.branch_taken", f"The run has a branch {called}.", hint, 409) from error
    return decide(user, row, yes=True, signed=signed) if approve else row


def decide(user: Any, row: Branch, *, yes: bool, signed: str = "") -> Branch:
    """Approve it, and a worker pushes it; or decline it. A person does: no token. `signed` is the digest of
    what the page showed.

    Raises: Refused `git.decided`, `git.barrier`, `door.*`.
    """
    access.require(user, "run.approve", row)
    barrier(row.run)
    shown = ""
    if yes:
        found = leaving.by_law(row.run)
        leaving.must_fit(found, signed)
        shown = found.digest
    wanted = Branch.State.APPROVED if yes else Branch.State.DECLINED
    with transaction.atomic():
        waits = Branch.objects.filter(pk=row.pk, state=Branch.State.ASKED)
        if not waits.update(state=wanted, decided_by=user, decided_at=clock.now(), signed=shown):
            raise Refused("git.decided", "Somebody has decided it already.", "Reload the page.", 409)
        action = "source.branch_approved" if yes else "source.branch_declined"
        record(user, action, row.run.key, row.team, branch=row.name, after=row.root, signed=shown)
        if yes:
            transaction.on_commit(lambda: send(row.pk))
    row.refresh_from_db()
    return row


def offered(user: Any, run: Run) -> dict[str, Any]:
    """What the page of a run says of what would leave, and of branches for a run that began from a source."""
    held, found = "", None
    try:
        found = leaving.of(run) if run.ended else None  # until then its files change with each record
        barrier(run)
        found = leaving.by_law(run)
        leaving.must_fit(found, found.digest)
    except Refused as why:
        held = why.message
    except (UserError, OSError, ValueError) as error:
        held = f"{files.problem(error)}."
    shown = {"leaving": found, "leaving_rows": [] if found is None else leaving.rows(found)}
    if not RunSource.objects.filter(run=run).exists():
        return shown
    may_ask, may_approve = access.can_each(user, run, "run.branch", "run.approve")
    rows = Branch.objects.filter(run=run).select_related("asked_by", "decided_by")
    return shown | {
        "from_source": True,
        "branches": [(row, PILLS[row.state]) for row in rows],
        "held": held,
        "may_ask": may_ask,
        "may_approve": may_approve,
        "branch_name": f"{PREFIX}{run.key}",
        "forge": forges.NAMES.get(_forge(run), ""),
    }


def send(pk: int) -> None:
    """A message for a worker; without one the next sweep sends it."""
    from spakweb.celery import app

    try:
        app.send_task("sources.push", (pk,), retry=False)
    except (OSError, KombuError) as error:
        log.warning("branch %s was not queued: %s", pk, type(error).__name__)


@receiver(after_sweep, dispatch_uid="sources.sweep")
def send_due(**ignored: object) -> None:
    """Send those that are approved and that nobody has in hand."""
    for pk in _free().order_by("pk").values_list("pk", flat=True)[:MOST]:
        send(pk)


@shared_task(name="sources.push", acks_late=True, ignore_result=True)
def push(pk: int) -> None:
    """Push a branch that was approved, unless another worker does."""
    if not _free().filter(pk=pk).update(claimed_at=clock.now()):
        return
    row = Branch.objects.select_related("run__team", "run__parent", "decided_by").get(pk=pk)
    done: dict[str, Any] = {}
    action = "source.branch_failed"
    try:
        done |= {"commit": _pushed(row), "pushed_at": clock.now()}
        action = "source.branch_pushed"
        if row.pull:
            done["pull_url"] = _pulled(row)
    except (UserError, OSError) as error:
        if is_fault(error):
            log.warning("branch %s: %s", row.name, error)
            later = {"not_before": clock.now() + HOST_PAUSE, "claimed_at": None}
            Branch.objects.filter(pk=pk).update(**later)
            return
        if not isinstance(error, UserError):
            raise
        if error.code == AWAY and row.tries < TRIES:
            later = {"tries": row.tries + 1, "not_before": clock.now() + waits(row.tries), "claimed_at": None}
            Branch.objects.filter(pk=pk).update(**later)
            return
        done["error"] = f"{error.code}: {error.message}"[:300]
    done["state"] = Branch.State.PUSHED if "commit" in done else Branch.State.FAILED
    with transaction.atomic():
        Branch.objects.filter(pk=pk, state=Branch.State.APPROVED).update(**done)
        why = {name: str(done[name]) for name in ("commit", "error", "pull_url") if name in done}
        record(row.decided_by, action, row.run.key, row.team, branch=row.name, **why)


def _pushed(row: Branch) -> str:
    """Its commit, which the repository has now. Raises: RunError, Refused."""
    run, begun = row.run, barrier(row.run)
    source = begun.source
    assert source is not None
    _, now = files.roots(run)
    found = checked(run)
    if not (found["ok"] and found["equal"] and found["as_shown"]) or now != row.root:
        raise RunError("git.unproven", "the records of the run do not prove the files that it has", "")
    out = leaving.by_law(run)
    out.require(row.signed)
    place = folder_of(run.key)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with Scratch("fetch", place) as folder:
        git = git_of(source, folder / "git", lambda: True)
        body = f"Spak-Run: {run.key}\nSpak-Head: {run.head}\n"
        git.remote(*fetching.FETCH, git.of.address.url, f"+{begun.commit}:{fetching.FETCHED}")
        made = changes.commit(git, run, begun.commit, changes.of(out), row.title, body)
        pushing.give(git, made, refs.HEADS + row.name)
    return made


def _pulled(row: Branch) -> str:
    """The address of its pull request, for the branch that the run began from. Raises: RunError, Refused."""
    begun = barrier(row.run)
    assert begun.source is not None
    home = next(iter(settings.CSRF_TRUSTED_ORIGINS), "").rstrip("/")
    page = f"{home}{reverse('spak-run', args=[row.team.slug, row.run.key])}"
    text = f"What the run {page} changed.\n\nSpak-Run: {row.run.key}\nSpak-Head: {row.run.head}\n"
    return forges.open_pull(begun.source, forges.Pull(row.name, forges.base_of(begun.ref), row.title, text))


def _forge(run: Run) -> str:
    """Who opens a pull request of what the run changed; empty where nobody does."""
    begun = RunSource.objects.select_related("source").filter(run=run).first()
    from_branch = begun is not None and not begun.ref.startswith("refs/tags/")
    return begun.source.forge if begun is not None and begun.source is not None and from_branch else ""


def _free() -> Any:
    """Approved ones that no worker has in hand."""
    gone = clock.now() - timedelta(seconds=settings.SOURCE_S) - AGAIN
    waiting = Branch.objects.filter(state=Branch.State.APPROVED)
    waiting = waiting.filter(is_due("not_before", clock.now(), waits(TRIES)))
    return waiting.filter(Q(claimed_at=None) | Q(claimed_at__lt=gone) | Q(claimed_at__gt=clock.now() + AGAIN))


def _held(message: str, hint: str) -> Refused:
    return Refused("git.barrier", message, hint, 409)
