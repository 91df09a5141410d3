"""One step of a campaign: from its ledger through the gate, until runs are under way or nothing is left.

`act(hold)` is idempotent: the lease of its job admits one caller. What the step needs of the platform:
recorded runs of the base for replay and for proposers, fresh pairs of runs, a model that proposes, and the
patches that candidates become. An error that a person can mend pauses the campaign and says why; a model that
is away is asked again by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from random import Random
from typing import Any, overload

from django.core.exceptions import PermissionDenied
from django.http import Http404

from spak import canon, config
from spak.errors import UnavailableError, UserError
from spak.evolve.analyze import read as read_trace
from spak.evolve.campaigns import Campaign as Recorded
from spak.evolve.campaigns import Judging, Writer, go_on, points
from spak.evolve.experiments.model import spec_hash
from spak.evolve.gate import Candidate, Rehearsal, rehearse
from spak.evolve.propose import Scored, Training, asked, evolve, from_findings
from spak.llm import open_backend
from spak.records import Record
from spakweb.ground import clock
from spakweb.ground.audit.actions import record
from spakweb.ground.host_faults import is_fault
from spakweb.store.campaigns.models import Campaign, CampaignRun, State
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import ENDED, Run
from spakweb.store.specs.facts import catalog
from spakweb.store.suites.models import Case, Cell
from spakweb.work.campaigns import ledger
from spakweb.work.campaigns.pairs import Pairs
from spakweb.work.campaigns.queue import STEP, due
from spakweb.work.jobs.hold import Hold, Lost
from spakweb.work.jobs.kinds import Again, Kind, decided
from spakweb.work.reviews import campaigns as patches
from spakweb.work.worker.held_run import LOST

NO_RESULT = "unavailable.result"
"""A pair gave no result: a person looks why, and its runs are begun again on resume."""
RUNS, RECORDS = 50, 20_000
"""Recorded runs of the base that are replayed and read, the newest, and the most records of one of them."""

AWAY_S = 30.0
"""A model that is away is asked again after so long."""


def act(hold: Hold) -> dict[str, Any] | None:
    """Advance a campaign; `why` of the result says why it stopped: "waiting", "paused", or why it ended.

    Raises: Again where a model is away; Lost; faults of the host.
    """
    rows = Campaign.objects.select_related("team", "spec__team", "version", "suite", "made_by")
    row = rows.filter(pk=int(hold.key), state=State.RUNNING).first()
    if row is None:
        return None
    held = ledger.Held(row, hold)
    try:
        return {"why": _closed(held, _advanced(held))}
    except UserError as error:
        if error.code in LOST:
            raise Lost from error
        if is_fault(error):
            raise
        why = f"{error.code}: {error.message}"
        if isinstance(error, UnavailableError) and error.code != NO_RESULT:
            with hold.writing():
                Campaign.objects.filter(ledger.RUNNING, pk=row.pk).update(why=why[:300])
            raise Again(why, AWAY_S, counts=False) from error
        return {"why": _closed(held, why)}


def failed(key: str, error: str) -> None:
    """Its workers failed with it, one after the other: a person looks why."""
    row = Campaign.objects.select_related("team", "made_by").filter(pk=int(key)).first()
    if row is not None:
        _close(row, f"web.worker: several workers in a row failed with it: {error}")


def _advanced(held: ledger.Held) -> str:
    step = Step(held)
    try:
        why = step.go()
    except (Http404, PermissionDenied):
        why = "web.campaign_rights: who started it may no longer start runs or propose patches"
    with held.writing():
        Campaign.objects.filter(ledger.RUNNING, pk=held.row.pk).update(shown=step.shown(), why="")
    return why


def _closed(held: ledger.Held, why: str) -> str:
    """Write its state: an error pauses it, a used-up budget ends it."""
    if why == "waiting":
        return why
    assert held.hold is not None
    with held.hold.writing():
        return _close(held.row, why)


def _close(row: Campaign, why: str) -> str:
    ended = why in ("candidates", "proposals", "runs", "tokens", "money")
    columns: dict[str, Any] = {"state": State.ENDED, "ended_at": clock.now()} if ended else {}
    running = Campaign.objects.filter(ledger.RUNNING, pk=row.pk)
    if running.update(**{"state": State.PAUSED, "why": why[:300], **columns}):
        what = "campaign.ended" if ended else "campaign.paused"
        record(row.made_by, what, str(row), row.team, why=why[:300])
    return why if ended else "paused"


class _Waits(Exception):
    """Evolution needs runs that have not ended."""


class Step:
    """One worker's turn with a campaign."""

    def __init__(self, held: ledger.Held) -> None:
        self.held, self.row = held, held.row
        self.campaign = ledger.read(self.row)
        self.pairs = Pairs(held, self.campaign)
        self.training: Training | None = None

    def go(self) -> str:
        """Raises: LedgerError `ledger.lost_lease`; UserError that a person can mend."""
        judging = Judging(
            catalog(),
            _Later(lambda: [rehearse(key, records) for key, records in self.recorded]),
            self.pairs.pair,
            self.pairs.unchanged,
            waiting=lambda: self.pairs.waiting,
            violations=lambda: self.training.violations if self.training is not None else (),
        )
        try:
            why = go_on(Writer(self.campaign, self.held), self.proposed, judging)
        except _Waits:
            why = "waiting"
        self.held.check()
        patches.propose(
            self.row.made_by, self.row.spec, self.row.version, self.campaign, self.row.patches_name,
            self.row.number,
        )  # fmt: skip
        return why

    def shown(self) -> dict[str, Any]:
        """The projection for lists."""
        return {
            "counts": self.campaign.counts(),
            "runs": self.campaign.runs,
            "front": points(self.campaign),
        }

    @cached_property
    def recorded(self) -> list[tuple[str, list[Record]]]:
        """The newest runs of the base that ended, with their records."""
        rows = Run.objects.filter(
            version=self.row.version, deleted_at=None, state__in=sorted(ENDED), count__range=(2, RECORDS)
        )
        found = []
        for run in rows.order_by("-pk")[:RUNS]:
            records = [one for one, _ in DatabaseLedgers().reader(run.key).read()]
            if spec_hash(str(records[0].body.get("rules", {}).get("spec", ""))) == self.hash:
                found.append((run.key, records))
        return found

    @cached_property
    def hash(self) -> str:
        """The hash of the base's text."""
        return spec_hash(self.campaign.plan.base)

    def proposed(self, campaign: Recorded) -> Sequence[Candidate]:
        """What its proposer proposes next. Raises: UserError, _Waits."""
        if self.row.proposer == "evolution":
            return [] if campaign.tested else self._evolved(campaign.plan.base)
        if self.row.proposer == "rules" and campaign.tested:
            return []
        self.training = training(self.row, self.recorded)
        found = from_findings(self.training, campaign.plan.base)
        if self.row.proposer == "rules":
            return found
        refused = [f"{item.candidate.rationale}: {item.why}" for item in campaign.tested]
        answering = open_backend(self.row.asks, config.settings().llm, forced=True)
        return asked(answering, campaign.plan.base, found, refused)

    def _evolved(self, base: str) -> list[Candidate]:
        """Evolution from its beginning, with the scores of the runs that have ended: it draws from the plan
        alone, so that it comes to the same place each time."""

        def run(case: str, text: str, k: int) -> Scored:
            found = self.pairs.scored(text, k)
            if found is None:
                raise _Waits
            done = self.pairs.done(case, found[case])
            trace = None
            if found[case].count:
                records = [one for one, _ in DatabaseLedgers().reader(found[case].key).read()]
                trace = read_trace(records, found[case].key)
            cost = done.tokens or (len(trace.deeds) if trace is not None else 0)
            return Scored(done.outcome == "pass", float(cost), trace)

        draw = Random(canon.digest(f"{base}/{self.campaign.plan.suite_hash}".encode()))
        return evolve(base, self.pairs.training, run, catalog(), draw, self.row.evolve_runs)


def training(row: Campaign, recorded: Sequence[tuple[str, Sequence[Record]]]) -> Training:
    """The runs that a proposer may read: none of a gate or sealed case, or that one was kept from."""
    keys = [key for key, _ in recorded]
    pairs = [
        *Cell.objects.filter(run__key__in=keys).values_list("run__key", "case"),
        *CampaignRun.objects.filter(run__key__in=keys).values_list("run__key", "case"),
        *Case.objects.filter(suite__team=row.team, origin__in=keys).values_list("origin", "pk"),
    ]
    cases: dict[str, list[str]] = defaultdict(list)
    for key, pk in pairs:
        cases[key].append(str(pk))
    known = Case.objects.filter(pk__in=[pk for _, pk in pairs]).values_list("pk", "split")
    splits = {str(pk): split for pk, split in known}
    return Training.of(recorded, splits, lambda name, records: cases.get(name, ()))


class _Later(Sequence[Rehearsal]):
    """Rehearsals, each made when a candidate needs it."""

    def __init__(self, make: Callable[[], Sequence[Rehearsal]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Sequence[Rehearsal]:
        return self._make()

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Rehearsal: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Rehearsal]: ...
    def __getitem__(self, place: Any) -> Any:
        return self._made[place]

    def __iter__(self) -> Iterator[Rehearsal]:
        return iter(self._made)


KIND = Kind(
    name=STEP,
    title="Campaigns",
    act=act,
    find=due,
    failed=failed,
    reopen=decided,
    longest=timedelta(minutes=50),
)
