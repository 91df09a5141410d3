"""The checks of a revision: `begin` asks for them, a worker runs them, their rows say how far they are.

`text` looks for errors. `actions` judges the actions that the team's runs of the spec recorded under both
texts. `replay` runs recorded runs under the patch, without a model. Nothing is executed. A result is pinned
to its revision and names the law that it was judged under; it is evidence, and rules.py says what it
decides. Running one again is idempotent. One that ends its workers stays open, and is offered to people.

Source: DESIGN.md section 9; agents/spak/evolve/permitted.py and outer/gate/counterfactual.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from spak import config
from spak.errors import LedgerError, UserError
from spak.evolve.gate.counterfactual import Rehearsal, Replayed, rehearse, to_json, total, under
from spak.evolve.gate.task_outcomes import flips
from spak.evolve.permitted import Changes, Side, changes, genesis_under
from spak.policy.law import rules_of
from spak.program import compile as compile_program
from spak.records import Record
from spakweb.ground.host_faults import is_fault
from spakweb.ground.teams.law import law_of
from spakweb.ground.text import plural
from spakweb.store.jobs.pauses import doubling
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.reviews.models import Check, Patch, Revision
from spakweb.store.runs.models import ENDED, Run
from spakweb.store.specs.facts import catalog, findings
from spakweb.store.specs.models import Spec
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Kind
from spakweb.work.reviews import merge_queue, spending
from spakweb.work.reviews.rules import CHECKS, imports_hash, law_hash

RUNS = 200
"""Recorded runs that a patch is judged by, the newest."""
RECORDS = 20_000
"""Records of one run; longer ones are left out, and said to be."""
TOO_LONG = f"it has more than {RECORDS:,} records"
SHOWN = 200
"""Actions, flips and unknowns that a result keeps; counts are whole."""
REPORT_S = 1.0
"""How often progress is written."""
CHECK = "reviews.check"
"""The kind of job that runs those of a revision."""


def begin(revision: Revision) -> None:
    """Queue the checks of a revision, again where they ran. Inside a transaction: sent when it commits."""
    for name in CHECKS:
        Check.objects.update_or_create(
            revision=revision,
            name=name,
            defaults={
                "state": Check.State.QUEUED, "done": 0, "total": 0, "words": "", "result": {}, "law": "",
                "ended_at": None,
            },
        )  # fmt: skip
    jobs.want(CHECK, revision.pk, revision.patch.spec.team_id)


def act(hold: Hold) -> dict[str, Any] | None:
    """Run the checks of a revision that have not ended. A closed patch's are left. Raises: Lost, faults of
    the host."""
    rows = Revision.objects.select_related("patch__spec__team", "base")
    revision = rows.filter(pk=int(hold.key), patch__state=Patch.State.OPEN).first()
    if revision is None or revision.patch.latest.pk != revision.pk:
        return None
    for row in revision.checks.filter(ended_at=None):
        run(row, revision, hold)
    if merge_queue.entry_of(revision.patch) is not None:
        merge_queue.ask(revision.patch.spec)
    return {row.name: row.state for row in revision.checks.all()}


def run(row: Check, revision: Revision, hold: Hold) -> None:
    """One check to its end; what goes wrong in it is its result."""
    law, imports = law_hash(revision.patch.spec), imports_hash(revision)
    Check.objects.filter(pk=row.pk).update(state=Check.State.RUNNING)
    state: str
    try:
        state, words, result = FOUND[row.name](row, revision)
    except UserError as error:
        if is_fault(error):
            raise  # no result
        state, words, result = Check.State.FAILED, f"It could not be judged: {error.message}.", {}
    if imports:
        result["imports"] = imports
    with hold.writing():
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
    """Writes the progress of a check at intervals."""

    def __init__(self, row: Check, total: int) -> None:
        self.row, self.at, self.count = row, time.monotonic(), 0
        Check.objects.filter(pk=row.pk).update(total=total, done=0)

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
            Check.objects.filter(pk=self.row.pk).update(done=self.count)


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
    program = compile_program(whole.parsed, catalog(), {})
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
        rehearsed = replace(rehearsed, genesis=genesis_under(rehearsed.genesis, patched))
    return under(rehearsed, patched.spec or "")


FOUND = {"text": _text, "actions": _actions, "replay": _replay}


def is_lost(row: Check) -> bool:
    """Whether it has not ended and no worker is to run it: it may be what ended several."""
    return row.ended_at is None and not jobs.is_wanted(CHECK, row.revision_id)


KIND = Kind(
    name=CHECK, title="Checks of patches", act=act, waits=doubling(10, 3), longest=timedelta(minutes=50)
)
