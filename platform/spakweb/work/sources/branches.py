"""What a run changed, back to its source: people ask for a branch, a worker pushes it.

The commit barrier: only a run that ended with success and whose result something checked, from the very files
that it ended with. The door (`spak.door`) keeps secrets in, and says what of the changes would run by itself:
that waits for a reviewer, who signs for exactly what the page showed; a branch without it waits for nobody.
Before anything leaves, the worker verifies the ledger
and derives every record again. A branch is new and begins with `spak/`: none that is there is changed. Its
commit is upon the one that the run began from, and the same each time, so that a push that is repeated does
nothing. Where the source names GitHub or GitLab a pull request may be opened with it (forges.py), by the same
approval.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.urls import reverse

from spak.errors import RunError, UserError
from spak.files.scratch import Scratch
from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.host_faults import is_fault
from spakweb.store.jobs.pauses import pause
from spakweb.store.ledger.export import checked
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import Run, State
from spakweb.store.sources import fetching, refs
from spakweb.store.sources.freeze import AWAY, AWAY_WAITS, git_of
from spakweb.store.sources.models import Branch, RunSource
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind
from spakweb.work.jobs.work import HOST_PAUSE
from spakweb.work.runs import files
from spakweb.work.sources import changes, forges, leaving, pushing

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
PUSH = "sources.push"
"""The kind of job that pushes one."""


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
    """A branch for what the run changed, with `pull` and a pull request of it. Where nothing of it needs a
    signature it is pushed; else it waits, but with `approve` by somebody who may approve it, and has seen
    what `signed` is the digest of.

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
    goes = not (approve or found.unsigned)
    state = Branch.State.APPROVED if goes else Branch.State.ASKED
    named = changes.title_of(title, run)
    row = Branch(run=run, name=called, title=named, root=now, pull=pull, asked_by=user, state=state)
    try:
        with transaction.atomic():
            if Branch.objects.filter(run=run).count() >= MOST:
                raise Refused("git.branch", f"A run has at most {MOST} branches.", "Use one of them.", 409)
            row.save(force_insert=True)
            record(user, "source.branch_asked", run.key, run.team, branch=called, after=now, pull=pull)
            if goes:
                jobs.want(PUSH, row.pk, row.team.pk)
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
            jobs.want(PUSH, row.pk, row.team.pk)
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
    rows = [] if found is None else leaving.rows(found)
    more = 0 if found is None else len(found.changes) - len(rows)
    shown = {"leaving": found, "leaving_rows": rows, "leaving_more": more}
    if not RunSource.objects.filter(run=run).exists():
        return shown
    may_ask, may_approve = access.can_each(user, run, "run.branch", "run.approve")
    made = list(Branch.objects.filter(run=run).select_related("asked_by", "decided_by"))
    return shown | {
        "from_source": True,
        "branches": [(row, PILLS[row.state]) for row in made],
        "pushing": any(row.state == Branch.State.APPROVED for row in made),
        "held": held,
        "may_ask": may_ask,
        "may_approve": may_approve,
        "branch_name": f"{PREFIX}{run.key}",
        "forge": forges.NAMES.get(_forge(run), ""),
    }


def find() -> list[tuple[str, int]]:
    """Branches that are to be pushed, each with its team."""
    return jobs.to_do(PUSH, Branch.objects.filter(state=Branch.State.APPROVED), team="run__team")


def act(hold: Hold) -> dict[str, Any] | None:
    """Push a branch that was approved. Raises: Again, Lost, faults of the host."""
    rows = Branch.objects.select_related("run__team", "run__parent", "asked_by", "decided_by")
    row = rows.filter(pk=int(hold.key), state=Branch.State.APPROVED).first()
    if row is None:
        return None
    done: dict[str, Any] = {"error": ""}
    action = "source.branch_failed"
    try:
        done |= {"commit": _pushed(row), "pushed_at": clock.now()}
        action = "source.branch_pushed"
        if row.pull:
            done["pull_url"] = _pulled(row)
    except (UserError, OSError) as error:
        if is_fault(error):
            _rests(row, hold, "the disk of the worker", HOST_PAUSE)
            raise
        if not isinstance(error, UserError):
            raise
        words = f"{error.code}: {error.message}"
        if error.code == AWAY and hold.tries < len(AWAY_WAITS):
            _rests(row, hold, words, pause(AWAY_WAITS, hold.tries + 1))
            raise Again(words) from error
        done["error"] = words[:300]
    done["state"] = Branch.State.PUSHED if "commit" in done else Branch.State.FAILED
    with hold.writing():
        _ended(row, action, done)
    return {name: str(done[name]) for name in ("commit", "error", "pull_url") if done.get(name)}


def _rests(row: Branch, hold: Hold, why: str, rest: timedelta) -> None:
    """Say for people what it waits for and until when."""
    said = f"{why[:240]}; tried again after {clock.now() + rest:%H:%M:%S} UTC"
    with hold.writing():
        Branch.objects.filter(pk=row.pk).update(error=said)


def failed(key: str, error: str) -> None:
    """The workers that pushed the branch died, one after the other."""
    row = Branch.objects.select_related("run__team", "asked_by", "decided_by").filter(pk=int(key)).first()
    if row is not None:
        _ended(row, "source.branch_failed", {"state": Branch.State.FAILED, "error": error[:300]})


def reopen(key: str) -> bool:
    """An approved branch whose push failed is approved still: what was signed is asked again at the push."""
    lost = Branch.objects.filter(pk=int(key), state=Branch.State.FAILED)
    return bool(lost.update(state=Branch.State.APPROVED, error=""))


def _ended(row: Branch, action: str, done: dict[str, Any]) -> None:
    Branch.objects.filter(pk=row.pk, state=Branch.State.APPROVED).update(**done)
    why = {name: str(done[name]) for name in ("commit", "error", "pull_url") if done.get(name)}
    record(row.decided_by or row.asked_by, action, row.run.key, row.team, branch=row.name, **why)


def _pushed(row: Branch) -> str:
    """Its commit, which the repository has now. Raises: RunError, Refused."""
    run, begun = row.run, barrier(row.run)
    source = begun.source
    assert source is not None
    _, now = files.roots(run)
    out = leaving.by_law(run)
    found = checked(run)
    if not (found["ok"] and found["equal"] and found["as_shown"]) or now != row.root:
        raise RunError("git.unproven", "the records of the run do not prove the files that it has", "")
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


def _held(message: str, hint: str) -> Refused:
    return Refused("git.barrier", message, hint, 409)


KIND = Kind(
    name=PUSH, title="Branches to push", act=act, find=find, failed=failed, reopen=reopen,
    waits=AWAY_WAITS,
    longest=timedelta(minutes=5, seconds=2 * settings.SOURCE_S),
)  # fmt: skip
