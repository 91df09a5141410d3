"""The runs of a campaign: ordinary queued runs of the team, asked for once each, and their results.

`Pairs(held, recorded).pair` is what the gate judges with: it gives a pair whose two runs have ended, else
queues runs and says that it waits. Runs that are needed in any case are queued at the same time, at most
AT_ONCE pairs. Both runs of a pair have the same inputs, files and seed, and are queued in a drawn order.
"""

from __future__ import annotations

from hashlib import sha256

from django.db import transaction

from spak import canon
from spak.errors import OuterError
from spak.evolve.campaigns import Campaign as Recorded
from spak.evolve.campaigns import Pair, Tested, certain, settled
from spak.evolve.experiments import Done
from spak.evolve.experiments.model import spec_hash
from spakweb.store.campaigns.models import Campaign, CampaignRun
from spakweb.store.runs.models import ENDED, Run, Trial
from spakweb.store.suites.models import Case, current
from spakweb.work.campaigns.ledger import Held
from spakweb.work.suites import case_runs, report

AT_ONCE = 4


class Pairs:
    """The runs of one campaign while this worker has it. `waiting`: some run that was requested has not
    ended."""

    def __init__(self, held: Held, recorded: Recorded) -> None:
        self.held, self.recorded, self.row = held, recorded, held.row
        self.cases = {case.name: case for case in self.row.suite.cases.select_related("files")}
        self.waiting = False
        used = current(self.row.made_at)
        rows = self.row.suite.cases.filter(pk__in=used, split="train").order_by("name")
        self.training = list(rows.values_list("name", flat=True))
        """Training cases that were in use when the campaign began: evolution is derived from them again."""

    def pair(self, case: str, k: int, text: str) -> Pair | None:
        """The outcome of a pair; None until both runs have ended."""
        tested = next(item for item in self.recorded.tested if not item.verdict)
        if len(self._both(tested, case, k, text)) < 2:
            for name, number in certain(self.recorded, tested)[:AT_ONCE]:
                self._ask(tested, name, number, text)
        found = self._both(tested, case, k, text)
        base, candidate = spec_hash(self.recorded.plan.base), spec_hash(text)
        if base not in found or candidate not in found:
            self.waiting = True
            return None
        before, after = self.done(case, found[base]), self.done(case, found[candidate])
        return settled(case, k, before, after, base, candidate)

    def scored(self, text: str, k: int) -> dict[str, Run] | None:
        """The k-th runs of all training cases under a text of evolution, by case; None while one goes on."""
        training = [self.cases[name] for name in self.training]
        hash_ = spec_hash(text)
        known = self.row.asked.filter(number=0, k=k, text=hash_).select_related("run", "case")
        found = {one.case.name: one.run for one in known}
        with transaction.atomic():
            self.held.check()
            for case in training:
                if case.name not in found:
                    found[case.name] = self._begun(0, case, k, text)
        if any(not report.settled(self.cases[name], run) for name, run in found.items()):
            self.waiting = True
            return None
        return found

    def done(self, case: str, run: Run) -> Done:
        """The result of an ended run of a case."""
        return report.done_of(self.cases[case], run)

    def _both(self, tested: Tested, case: str, k: int, text: str) -> dict[str, Run]:
        """The ended runs of a pair, by the hash of their text."""
        hashes = spec_hash(self.recorded.plan.base), spec_hash(text)
        rows = self.row.asked.filter(number=tested.number, case__name=case, k=k, text__in=hashes)
        newest = {one.text: one for one in rows.select_related("run", "case").order_by("attempt")}
        return {text: one.run for text, one in newest.items() if report.settled(one.case, one.run)}

    def _ask(self, tested: Tested, case: str, k: int, text: str) -> None:
        """Queue what of a pair was not asked for yet; nothing once the campaign is not ours."""
        both = sorted(
            (self.recorded.plan.base, text),
            key=lambda one: sha256(f"{self.recorded.name}/{case}/{k}/{spec_hash(one)}".encode()).digest(),
        )
        with transaction.atomic():
            self.held.check()
            known = self.row.asked.filter(number=tested.number, case__name=case, k=k)
            there = set(known.values_list("text", flat=True))
            for one in both:
                if spec_hash(one) not in there:
                    self._begun(tested.number, self.cases[case], k, one)

    def _begun(self, number: int, case: Case, k: int, text: str) -> Run:
        return _begun(self.row, number, case, k, text)

    def unchanged(self) -> None:
        """Raises: OuterError `outer.changed` where a case of the plan is not what it was."""
        plan = self.recorded.plan
        if any(name not in self.cases for name in plan.cases) or plan.suite_hash != hash_of(
            [self.cases[name] for name in plan.cases]
        ):
            raise OuterError(
                "outer.changed", f"{plan.suite} was changed since the campaign began", "start a new one"
            )


def run_again(row: Campaign, recorded: Recorded) -> None:
    """Queue again the runs that gave no result, of pairs that are not in the ledger yet."""
    tested = next((item for item in recorded.tested if not item.verdict), None)
    if tested is None:
        return
    base = recorded.plan.base
    texts = {spec_hash(text): text for text in (base, tested.candidate.text(base))}
    kept = {(pair.case, pair.k) for pair in tested.pairs}
    rows = row.asked.filter(number=tested.number, text__in=texts).order_by("attempt")
    rows = rows.select_related("run", "case__suite")
    for one in {(one.case.name, one.k, one.text): one for one in rows}.values():
        if (one.case.name, one.k) not in kept and report.is_void(one.case, one.run):
            _begun(row, tested.number, one.case, one.k, texts[one.text], one.attempt + 1)


def _begun(row: Campaign, number: int, case: Case, k: int, text: str, attempt: int = 0) -> Run:
    own = "" if text == row.version.text else text
    run = case_runs.begin(
        row.made_by, case, row.version, k, [str(row)], Trial.CAMPAIGN, backend=row.backend, text=own
    )
    about = {"number": number, "case": case, "k": k, "text": spec_hash(text), "attempt": attempt}
    CampaignRun.objects.create(campaign=row, run=run, **about)
    return run


def over(run: Run) -> bool:
    """Whether it goes on no more."""
    return run.state in ENDED or run.deleted_at is not None


def hash_of(cases: list[Case]) -> str:
    """The hash of the cases that judge."""
    return canon.content_hash([[case.name, case.content_hash] for case in cases])
