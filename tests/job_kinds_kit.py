"""A job of each kind that is to be done, for tests of what may happen to it.

The work of a kind is replaced where it leaves the database (a request, git, a sandbox); what its action
writes is not. `done` counts the effects that its tables show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings

from run_rows_kit import begun
from spak.evolve.suites.judge import Verdict
from spak.ledger.settings import Checkpoints
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.outgoing import Answer
from spakweb.store.campaigns.models import Campaign
from spakweb.store.hooks.models import DELIVER, Delivery, Webhook
from spakweb.store.jobs.models import Job
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.runs.models import LogCheckpoint, State
from spakweb.store.sources.fetching import Found
from spakweb.store.sources.models import Branch, Source
from spakweb.store.specs.models import ProblemFile
from spakweb.store.suites.models import Case, CaseRun, Judgement, Suite, Vetting
from spakweb.work.campaigns import steps as campaigns
from spakweb.work.campaigns.queue import STEP
from spakweb.work.folders import actions as folders
from spakweb.work.folders import steps
from spakweb.work.folders.queue import SYNC
from spakweb.work.hooks import deliver
from spakweb.work.jobs import work
from spakweb.work.reviews import actions as reviews
from spakweb.work.reviews import checks, merge_queue
from spakweb.work.reviews.protection import protect
from spakweb.work.reviews.rules import CHECKS
from spakweb.work.runs import checkpoints
from spakweb.work.sources import actions as sources
from spakweb.work.sources import branches, reading, run_reading
from spakweb.work.specs import problem_files
from spakweb.work.suites import actions as suites
from spakweb.work.suites import judging
from spakweb.work.telemetry import jobs as telemetry
from spakweb.work.worker import problem_checks


@dataclass
class Work:
    """A job of a kind that is to be done."""

    key: str
    done: Callable[[], int]


def webhook(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    hook = Webhook.objects.create(
        team=cast.team, name="ci", url="https://ci.example/", events="failed", made_by=cast["alice"], salt="s"
    )
    Delivery.objects.create(webhook=hook, message="m", event="test", at=clock.now(), next_at=clock.now())
    patch.setattr(deliver, "request", lambda *given: Answer(200))
    return Work(str(hook.pk), lambda: sum(Delivery.objects.values_list("tries", flat=True)))


def spans(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    patch.setattr(settings, "OTLP", "https://collector.example/")
    run = begun(cast.team, cast.spec.head, "r-1", state=State.SUCCEEDED, ended_at=clock.now(), count=3)
    patch.setattr(telemetry, "export", lambda run: 3)
    return Work(run.key, lambda: Job.objects.filter(kind=telemetry.SEND, result={"spans": 3}).count())


def problem(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    patch.setattr(problem_checks, "findings", lambda text: [])
    row = problem_files.save(cast["bob"], cast.team, "p.py", "prototype = ''")
    return Work(str(row.pk), lambda: ProblemFile.objects.filter(state="good").count())


def case(cast: Any, patch: pytest.MonkeyPatch) -> Case:
    suite: Suite = suites.make(cast["bob"], cast.team, "Nightly")
    patch.setattr(judging, "_bench", lambda: None)
    patch.setattr(judging, "_unpacked", unpacked)
    patch.setattr(judging, "passes_before", lambda case, bench: None)
    return Case.objects.create(
        suite=suite, name="a", content_hash="h", split="gate", state="succeeded", checked=True,
        made_by=cast["bob"],
    )  # fmt: skip


@contextmanager
def unpacked(row: Any) -> Iterator[Any]:
    yield row


def vetting(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    row = case(cast, patch)
    return Work(str(row.pk), Vetting.objects.count)


def judgement(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    row = case(cast, patch)
    Vetting.objects.create(case=row)
    run = begun(cast.team, cast.spec.head, "r-1", state=State.SUCCEEDED, ended_at=clock.now())
    CaseRun.objects.create(run=run, case=row)
    patch.setattr(judging, "_left", unpacked)
    patch.setattr(judging, "judged", lambda *given: Verdict("pass", ""))
    return Work(run.key, Judgement.objects.count)


def folder(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    done = {"state": "same", "commit": "c", "error": "", "result": [{"what": "created"}]}
    patch.setattr(steps, "_synced", lambda folder, hold: (dict(done), None))
    made = folders.set_up(cast["alice"], source(cast), "main", "specs", "commit")
    return Work(str(made.pk), Event.objects.filter(action="source.folder_synced").count)


def source(cast: Any) -> Any:
    address = "git@git.example.org:shop.git"
    return sources.add(cast["alice"], cast.team, "shop", address, ["main"], host_keys="ssh-ed25519 AAAAC3Nza")


def push(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    patch.setattr(branches, "_pushed", lambda row: "c")
    run = begun(cast.team, cast.spec.head, "r-1", state=State.SUCCEEDED, ended_at=clock.now())
    row = Branch.objects.create(
        run=run, name="spak/a", title="A", root="r", asked_by=cast["bob"], state=Branch.State.APPROVED
    )
    return Work(str(row.pk), Event.objects.filter(action="source.branch_pushed").count)


def read(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    patch.setattr(reading, "_read", lambda source, hold: (Found("refs/heads/main", "c"), "k"))
    made = source(cast)
    reading.ask(cast["vera"], made)
    return Work(str(made.pk), Source.objects.filter(code="k").count)


def read_run(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    run = begun(cast.team, cast.spec.head, "r-1", state=State.SUCCEEDED, ended_at=clock.now())
    patch.setattr(run_reading.files, "roots", lambda run: ("r", "r"))
    patch.setattr(run_reading, "_lay_out", lambda run, folder: None)
    patch.setattr(run_reading.code_index, "keep_of_run", lambda run, root, make: "b")
    run_reading.ask(cast["vera"], run)
    done = Job.objects.filter(kind=run_reading.READ, result__root="r")
    return Work(run.key, done.count)


def patched(cast: Any) -> Patch:
    text = cast.spec.head.text.replace('path: "."', 'path: "tests"')
    return reviews.propose(cast["bob"], cast.spec, text, 1, "A change")


def check(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    made = patched(cast).latest
    ended = Check.objects.filter(ended_at__isnull=False)
    return Work(str(made.pk), lambda: ended.count() // len(CHECKS))


def merge(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    protect(cast["alice"], cast.spec, 0, queue=True, follow=True)
    cast.spec.refresh_from_db()
    made = patched(cast)
    work.do(checks.CHECK, str(made.latest.pk))
    reviews.judge(cast["rita"], made, 1, True)
    reviews.queue(cast["bob"], made, 1)
    return Work(str(cast.spec.pk), lambda: cast.spec.versions.count() - 1)


def campaign(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    made = Campaign.objects.create(
        team=cast.team, number=1, spec=cast.spec, version=cast.spec.head, proposer="rules",
        suite=suites.make(cast["bob"], cast.team, "Nightly"), made_by=cast["bob"],
    )  # fmt: skip
    patch.setattr(campaigns, "_advanced", lambda held: "proposals")
    return Work(str(made.pk), Event.objects.filter(action="campaign.ended").count)


def signed(cast: Any, patch: pytest.MonkeyPatch) -> Work:
    patch.setattr(settings, "CHECKPOINTS", Checkpoints(log="example.com/platform"))
    begun(cast.team, cast.spec.head, "r-1", state=State.SUCCEEDED, ended_at=clock.now())
    return Work(str(cast.team.pk), LogCheckpoint.objects.filter(size=1).count)


MADE: dict[str, Callable[[Any, pytest.MonkeyPatch], Work]] = {
    DELIVER: webhook,
    telemetry.SEND: spans,
    problem_files.CHECK: problem,
    "suites.vet": vetting,
    "suites.judge": judgement,
    SYNC: folder,
    branches.PUSH: push,
    reading.READ: read,
    run_reading.READ: read_run,
    checks.CHECK: check,
    merge_queue.ADVANCE: merge,
    STEP: campaign,
    checkpoints.WRITE: signed,
}
