"""The checks of a revision: `begin` asks for them, a worker runs them, their rows say how far they are.

`text` looks for errors. `actions` judges the actions that the team's runs of the spec recorded under both
texts. `replay` runs recorded runs under the patch, without a model. Nothing is executed. A result is pinned
to its revision and names the law that it was judged under; it is evidence, and rules.py says what it
decides. Running one again is idempotent: `send_lost`, called by the sweep, does so where a worker was killed.

Source: DESIGN.md section 9; agents/spak/outer/permitted.py and outer/gate/counterfactual.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from celery import shared_task
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Subquery
from django.utils import timezone
from kombu.exceptions import KombuError

from spak import config
from spak.errors import LedgerError, UserError
from spak.kernel.rules import Rules
from spak.outer.gate.counterfactual import Rehearsal, Replayed, rehearse, to_json, total, under
from spak.outer.gate.task_outcomes import flips
from spak.outer.permitted import Changes, Side, changes, genesis_under
from spak.policy.law import rules_of
from spak.program import compile as compile_program
from spak.records import Record
from spakweb.host_faults import is_fault
from spakweb.ledger.store import DatabaseLedgers
from spakweb.reviews import merge_queue, spending
from spakweb.reviews.models import Check, Patch, Queued, Revision
from spakweb.reviews.rules import CHECKS, imports_hash, law_hash
from spakweb.runs.leases import MOST_APART, is_long_ago
from spakweb.runs.models import ENDED, Run
from spakweb.specs.facts import catalog, findings
from spakweb.specs.models import Spec
from spakweb.specs.team_files import TeamFiles
from spakweb.teams.law import law_of
from spakweb.text import plural

RUNS = 200
"""Recorded runs that a patch is judged by, the newest."""
RECORDS = 20_000
"""Records of one run; longer ones are left out, and said to be."""
TOO_LONG = f"it has more than {RECORDS:,} records"
SHOWN = 200
"""Actions, flips and unknowns that a result keeps; counts are whole."""
REPORT_S = 1.0
"""How often progress is written."""
LOST_S = 120
"""A check without a sign of life for so long is lost: with a message, or with a worker that was killed."""
LOST_AFTER = timedelta(seconds=LOST_S)
SENT_AGAIN = 3
"""How often a lost check is sent again before that is left to a person: it may be what kills the workers."""
SWEPT = 20
"""Revisions of one sweep."""

log = logging.getLogger(__name__)


def begin(revision: Revision) -> None:
    """Queue the checks of a revision, again where they ran. Inside a transaction: sent when it commits."""
    for name in CHECKS:
        Check.objects.update_or_create(
            revision=revision,
            name=name,
            defaults={
                "state": Check.State.QUEUED, "done": 0, "total": 0, "words": "", "result": {}, "law": "",
                "made_at": timezone.now(), "ended_at": None, "lost": 0,
            },
        )  # fmt: skip
    key = revision.pk
    transaction.on_commit(lambda: send(key))


def send(key: int) -> None:
    """Send the message. A broker that is unavailable is logged: the page offers to run the checks again."""
    from spakweb.celery import app

    try:
        app.send_task("reviews.check", (key,), retry=False)
    except (OSError, KombuError) as error:
        log.warning("the checks of revision %s were not queued: %s", key, type(error).__name__)


@shared_task(name="reviews.check", acks_late=True, ignore_result=True)
def check(key: int) -> None:
    """Run the checks of a revision that have not ended. A closed patch's are left."""
    rows = Revision.objects.select_related("patch__spec__team", "base")
    revision = rows.filter(pk=key, patch__state=Patch.State.OPEN).first()
    if revision is None or revision.patch.latest.pk != revision.pk:
        return
    for row in revision.checks.filter(ended_at=None):
        run(row, revision)
    if merge_queue.entry_of(revision.patch) is not None:
        merge_queue.ask(revision.patch.spec_id)


def run(row: Check, revision: Revision) -> None:
    """One check to its end; what goes wrong in it is its result."""
    law, imports = law_hash(revision.patch.spec), imports_hash(revision)
    Check.objects.filter(pk=row.pk).update(state=Check.State.RUNNING, made_at=timezone.now())
    state: str
    try:
        state, words, result = FOUND[row.name](row, revision)
    except UserError as error:
        if is_fault(error):
            raise  # no result: `send_lost` sends it again
        state, words, result = Check.State.FAILED, f"It could not be judged: {error.message}.", {}
    if imports:
        result["imports"] = imports
    Check.objects.filter(pk=row.pk).update(
        state=state, words=words[:300], result=result, law=law, ended_at=timezone.now()
    )


Found = tuple[str, str, dict[str, Any]]


def _text(row: Check, revision: Revision) -> Found:
    spec = revision.patch.spec
    found = findings(TeamFiles.of(spec).whole(revision.text), law_of(spec.team))
    errors = [one for one in found if one.severity == "error"]
    shown = [{"line": one.line, "file": one.file, "message": one.message, "code": one.code} for one in errors]
    result = {"errors": shown[:SHOWN], "count": len(errors), "warnings": len(found) - len(errors)}
    if errors:
        return Check.State.FAILED, f"{plural(len(errors), 'error')}: it could not run.", result
    return Check.State.PASSED, "It has no errors.", result


class Progress:
    """Writes the progress of a check at intervals, which shows that its worker is alive."""

    def __init__(self, row: Check, total: int) -> None:
        self.row, self.at, self.count = row, time.monotonic(), 0
        Check.objects.filter(pk=row.pk).update(total=total, done=0, made_at=timezone.now())

    def done(self, count: int) -> None:
        """Report that `count` of the total are done."""
        self.count = count
        self._report()

    def records_of(self, run: Run) -> Iterator[Record]:
        """The records of a run, each of which may be reported."""
        for record in records_of(run):
            self._report()
            yield record

    def _report(self) -> None:
        if time.monotonic() - self.at >= REPORT_S:
            self.at = time.monotonic()
            Check.objects.filter(pk=self.row.pk).update(done=self.count, made_at=timezone.now())


def runs_of(spec: Spec) -> list[Run]:
    """The newest ended runs of the spec that are still there."""
    rows = Run.objects.filter(version__spec=spec, deleted_at=None, state__in=sorted(ENDED), count__gt=1)
    return list(rows.order_by("-pk")[:RUNS])


def records_of(run: Run) -> Iterator[Record]:
    """The records of a run, in their order."""
    return (record for record, _ in DatabaseLedgers().reader(run.key).read())


def side(spec: Spec, text: str, name: str) -> Side:
    """A text of the spec under the team's law. Raises: SpecError, PolicyError."""
    whole = TeamFiles.of(spec).whole(text)
    program = compile_program(whole.parsed, config.catalog(), {})
    used = config.used(catalog(), program).to_json()
    law = law_of(spec.team)
    return Side(name, law, whole.parsed.text, whole.policy, rules_of(program.axioms), used)


def _actions(row: Check, revision: Revision) -> Found:
    spec, runs = revision.patch.spec, runs_of(revision.patch.spec)
    sides = side(spec, revision.base.text, "base"), side(spec, revision.text, "patch")
    found, left_out, progress = Changes(), [], Progress(row, len(runs))
    for place, one in enumerate(runs):
        if one.count > RECORDS:
            left_out.append({"run": one.key, "why": TOO_LONG})
            continue
        try:
            found.add(changes(one.key, progress.records_of(one), *sides))
        except LedgerError as error:
            left_out.append({"run": one.key, "why": error.message})
        progress.done(place + 1)
    more, less = found.newly("permitted"), found.newly("denied")
    open_ones = [one for one in found.unknown if one.denied]
    unknown = [*open_ones, *(one for one in found.unknown if not one.denied)]
    result = {
        "runs": found.runs,
        "judged": found.judged,
        "permitted": [one.to_json() for one in more[:SHOWN]],
        "denied": [one.to_json() for one in less[:SHOWN]],
        "permitted_count": len(more),
        "denied_count": len(less),
        "unknown": [one.to_json() for one in unknown[:SHOWN]],
        "unknown_count": len(unknown),
        "unknown_denied": len(open_ones),
        "left_out": left_out,
    }
    without = f" {plural(len(left_out), 'run')} left out." if left_out else ""
    if not found.judged and left_out:
        return Check.State.LOOK, f"No recorded action could be judged:{without}", result
    if not found.judged:
        return Check.State.NOTHING, "No run of the spec has recorded an action yet.", result
    words = (
        f"{plural(found.judged, 'recorded action')} of {plural(found.runs, 'run')}: "
        f"{len(more)} newly permitted, {len(less)} newly denied, {len(unknown)} not judged"
    )
    words += f", {len(open_ones)} of which the base denies." if open_ones else "."
    words += without
    if more or open_ones:
        return Check.State.LOOK, words, result
    return (Check.State.PASSED if len(unknown) < found.judged else Check.State.NOTHING), words, result


def _replay(row: Check, revision: Revision) -> Found:
    spec, runs = revision.patch.spec, runs_of(revision.patch.spec)
    patched = side(spec, revision.text, "patch")
    base = TeamFiles.of(spec).whole(revision.base.text).parsed.text
    both, progress = [], Progress(row, len(runs))
    for place, one in enumerate(runs):
        rehearsed = _rehearsed(one, progress)
        both.append((rehearsed, _replay_under(rehearsed, patched)))
        progress.done(place + 1)
    found = [now for _, now in both]
    sums, by_task = total(found), flips(both, base, patched.spec or "")
    result = {
        **sums,
        "spent": spending.of_replay(both),
        "unusable": sums["unusable"][:SHOWN],
        "flips": [to_json(one) for one in found if one.ended in ("better", "worse", "other")][:SHOWN],
        "same": sum(one.ended == "same" for one in found),
        "by_task": by_task[:SHOWN],
        "tasks": len(by_task),
    }
    usable = len(found) - len(sums["unusable"])
    if not usable:
        return Check.State.NOTHING, "No run of the spec can be replayed yet.", result
    ended = sums["ended"]
    words = (
        f"{plural(usable, 'recorded run')}, coverage {100 * sums['coverage']:.0f} %: "
        f"{ended['same']} end alike, {ended['better']} better, {ended['worse']} worse, "
        f"{ended['unknown']} unknown."
    )
    if sums["worse"]:
        return Check.State.FAILED, words, result
    return (Check.State.PASSED if ended["unknown"] < usable else Check.State.NOTHING), words, result


def _rehearsed(run: Run, progress: Progress) -> Rehearsal:
    """The run as it was; one that cannot be read has a problem and stops no other."""
    problem = TOO_LONG
    if run.count <= RECORDS:
        try:
            return rehearse(run.key, list(progress.records_of(run)))
        except LedgerError as error:
            problem = f"{error.message} [{error.code}]"
    return Rehearsal(run.key, {}, (), "", 0, 0, 0, 0, problem)


def _replay_under(rehearsed: Rehearsal, patched: Side) -> Replayed:
    """The run under the patch, with its POLICY and axioms as well."""
    if not rehearsed.problem:
        own = Rules.of(rehearsed.genesis)
        if own.gate is not None:
            rehearsed = replace(rehearsed, genesis=genesis_under(rehearsed.genesis, own, patched))
    return under(rehearsed, patched.spec or "")


FOUND = {"text": _text, "actions": _actions, "replay": _replay}


def is_lost(row: Check) -> bool:
    """Whether its message or its worker is gone."""
    now = timezone.now()
    return row.ended_at is None and not now - LOST_AFTER <= row.made_at <= now + MOST_APART


def send_lost() -> None:
    """Send the checks of open patches again that are lost, SENT_AGAIN times at most; those of patches in a
    merge queue are the queue's."""
    newest = Revision.objects.filter(patch=OuterRef("revision__patch")).order_by("-number").values("pk")[:1]
    queued = Queued.objects.filter(patch=OuterRef("revision__patch"), state=Queued.State.WAITING)
    going = Check.objects.filter(ended_at=None, revision__patch__state=Patch.State.OPEN)
    mine = going.filter(~Exists(queued), revision=Subquery(newest)).values("revision")
    now = timezone.now()
    lost = mine.annotate(last=Max("made_at"), times=Max("lost")).filter(
        is_long_ago("last", now, LOST_AFTER), times__lt=SENT_AGAIN
    )
    for key in lost.values_list("revision", flat=True)[:SWEPT]:
        old = is_long_ago("made_at", now, LOST_AFTER)
        rows = Check.objects.filter(old, revision=key, ended_at=None)
        if rows.update(made_at=now, lost=F("lost") + 1):
            send(key)
