"""What `spak outer` needs of this machine: recorded runs, fresh pairs of runs, a model that proposes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from spak import canon, config
from spak.cli import common
from spak.cli.cells import Cells
from spak.errors import OuterError, UnavailableError, UserError, of_host
from spak.evolve.analyze import Trace, read
from spak.evolve.campaigns import Campaign, Judging, Pair, Plan, Tested, advance, settled
from spak.evolve.experiments import Cell, Done
from spak.evolve.experiments.model import spec_hash
from spak.evolve.gate import Candidate, Rehearsal, rehearse
from spak.evolve.propose import Scored, Training, asked, evolve, from_findings
from spak.evolve.propose.training import labelled
from spak.evolve.suites import Suite
from spak.files.scratch import Scratch
from spak.lang import ast
from spak.lang.imports import settings_of
from spak.ledger.private import open_file

if TYPE_CHECKING:
    from spak.records import Record

GOLDEN = "golden"
PAUSED = "the host cannot go on"
"""Why `carry_out` returned where a model, a server or the machine failed."""


def text_of(spec: Path) -> str:
    """The spec's text with its imports, as its runs record it. Raises: UsageError `usage.file`; SpecError
    `lang.invalid`."""
    return common.whole_spec(spec).parsed.text


def recorded(runs: Path) -> list[tuple[str, list[Record]]]:
    """Every run of a folder, its chain checked. Raises: LedgerError `ledger.tampered`."""
    from spak.ledger.files import FileLedgers

    root = FileLedgers(runs)
    return [(name, [record for record, _ in root.reader(name).read()]) for name in root.runs()]


def training(runs: Path, suite: Path | None) -> Training:
    """The runs that a proposer may read: of no gate or sealed case, nor the run that one was kept from."""
    opened = Suite.open(suite) if suite is not None else None
    splits = {} if opened is None else {case.name: opened.split(case) for case in opened.cases}
    kept: dict[str, list[str]] = defaultdict(list)
    for case in opened.cases if opened is not None else ():
        kept[str(case.origin.get("run", ""))].append(case.name)
    return Training.of(
        recorded(runs), splits, lambda name, records: (*labelled(records), *kept.get(name, ()))
    )


def proposals(
    proposer: str, backend: str, base: str, training: Training, refused: Sequence[str]
) -> list[Candidate]:
    """Candidates by rules, or of a model; an answer that breaks the contract is asked for again.

    Raises: OuterError `outer.contract`; UnavailableError `unavailable.backend`.
    """
    found = from_findings(training, base)
    if proposer == "rules":
        return found
    from spak.llm import open_backend

    chosen = config.settings()
    name = backend or chosen.backend
    if not name or name == "manual":
        raise UnavailableError("unavailable.backend", "no model is named to propose", "--backend NAME")
    return asked(open_backend(name, chosen.llm, forced=True), base, found, refused)


def evolved(
    base: str, spec: Path, folder: Path | None, root: Path, budget: int, timeout: float | None = None
) -> list[Candidate]:
    """Candidates by evolution on the training cases of a suite; each run of one is kept like any other.

    Raises: OuterError `outer.no_cases`.
    """
    suite = Suite.open(folder).sound() if folder is not None else None
    cases = {case.name: case for case in suite.of(("train",))} if suite is not None else {}
    if not cases:
        raise OuterError("outer.no_cases", "evolution needs cases in the split train", "--suite DIR")
    with Scratch("evolve") as place:
        (place / "empty").mkdir()
        copy_policy(spec, place)

        def run(case: str, text: str, k: int) -> Scored:
            path = place / f"{spec_hash(text)[:16]}.spak"
            path.write_text(text, encoding="utf-8")
            work = Cells(cases, {"it": path}, root, place / "empty", "evolution", timeout=timeout)
            name = common.run_id()
            done = work.run(Cell(case, "it", k), name)
            if done is None:
                raise OuterError("outer.interrupted", "evolution was stopped", "start it again")
            trace = _trace(root, name)
            cost = done.tokens or (len(trace.deeds) if trace is not None else 0)  # time would be noise
            return Scored(done.outcome == "pass", float(cost), trace)

        draw = Random(canon.digest(f"{base}/{suite.hash if suite else ''}".encode()))
        return evolve(base, list(cases), run, common.catalog(), draw, budget)


def _trace(root: Path, run: str) -> Trace | None:
    from spak.ledger.files import FileLedgers

    try:
        return read([record for record, _ in FileLedgers(root).reader(run).read()], run)
    except UserError:
        return None


def planned(
    spec: Path,
    base: str,
    folder: Path | None,
    proposer: str,
    candidates: int,
    pairs: int,
    runs: int,
    margin: int = 0,
) -> Plan:
    """The plan of a campaign: cases of the gate split, of these the golden ones; `margin` is in points."""
    made = Plan(
        str(spec), base, "", "", (), (),
        candidates=candidates, pairs=pairs, runs=runs, proposer=proposer, margin=str(Fraction(margin, 100)),
    )  # fmt: skip
    if folder is None:
        return made
    suite = Suite.open(folder).sound()
    gate = suite.of(("gate",))
    if not gate:
        raise OuterError(
            "outer.no_cases", f"{folder} has no case in the split gate", "add cases to the suite"
        )
    golden = tuple(case.name for case in gate if GOLDEN in case.tags or case.recording is not None)
    return replace(
        made, suite=str(folder), suite_hash=suite.hash, golden=golden, cases=tuple(case.name for case in gate)
    )


def begun(place: Path, plan: Plan) -> Campaign:
    """A new campaign, with the file of the spec's POLICY in its folder: its runs begin from texts there."""
    found = Campaign.create(place, common.run_id(), plan)
    copy_policy(Path(plan.spec), place / found.name)
    return found


def copy_policy(spec: Path, folder: Path) -> None:
    """Copy the file of the spec's POLICY to where texts made of the spec will lie."""
    whole = common.whole_spec(spec)
    entry = next(settings_of(whole.parsed.spec, "POLICY"), None)
    if whole.policy and entry is not None and isinstance(entry.value, ast.Text) and not entry.value.long:
        path = folder / entry.value.value
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_file(path, "w", encoding="utf-8") as file:
            file.write(whole.policy)


def power(campaign: Campaign) -> None:
    """Say before the start what it takes."""
    from spak.evolve.stats import Betting, spent

    plan = campaign.plan
    first, last = (
        Betting(campaign.stake).least_wins(spent(Fraction(plan.alpha), k)) for k in (1, plan.candidates)
    )
    common.say(
        f"campaign {campaign.name}: {len(plan.cases)} gate cases, {len(plan.golden)} of them golden; "
        f"the first candidate needs {first} wins in a row, the last {last}"
    )


def carry_out(
    campaign: Campaign,
    root: Path,
    runs: Path,
    propose: Callable[[Campaign], Sequence[Candidate]],
    timeout: float | None,
    training: Training | None = None,
) -> str:
    """Run a campaign to its next stop; what a proposer asks of `training` beyond its split is recorded."""
    place = root.parent / "campaigns"
    digest = canon.digest(campaign.plan.base.encode())
    judging = Judging(
        common.catalog(),
        rehearsals(runs, digest),
        _Pairs(campaign, place / campaign.name, root, timeout).pair,
        lambda: _unchanged(campaign),
        lambda tested, text: _say(tested, text),
        violations=lambda: training.violations if training is not None else (),
    )
    try:
        return advance(campaign, place, propose, judging)
    except KeyboardInterrupt:  # between two pairs, or while something is proposed
        return "interrupted"
    except UserError as error:
        if not of_host(error):
            raise
        common.say(f"spak: {error}")
        return PAUSED


def rehearsals(runs: Path, digest: str) -> list[Rehearsal]:
    """Recorded runs of a spec text, rehearsed."""
    found = []
    for name, records in recorded(runs):
        spec = records[0].body.get("rules", {}).get("spec", "")
        if canon.digest(str(spec).encode()) == digest and records[-1].kind == "end":
            found.append(rehearse(name, records))
    return found


def _unchanged(campaign: Campaign) -> None:
    plan = campaign.plan
    if plan.suite and Suite.open(Path(plan.suite)).sound().hash != plan.suite_hash:
        raise OuterError(
            "outer.changed", f"{plan.suite} was changed since the campaign began", "start a new one"
        )


def _say(tested: Tested, text: str) -> None:
    common.say(f"candidate {tested.number} ({tested.candidate.rationale[:80]}): {text}")


class _Pairs:
    """Fresh runs of a case under base and candidate, with the same seed, in a drawn order."""

    def __init__(self, campaign: Campaign, folder: Path, root: Path, timeout: float | None) -> None:
        self.campaign = campaign
        self.folder = folder
        self.root = root
        self.timeout = timeout
        self.cases = (
            {case.name: case for case in Suite.open(Path(campaign.plan.suite)).cases}
            if campaign.plan.suite
            else {}
        )

    def pair(self, case: str, k: int, text: str) -> Pair | None:
        base = self.campaign.plan.base
        files = {"base": self._written(base), "candidate": self._written(text)}
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        work = Cells(self.cases, files, self.root, empty, self.campaign.name, timeout=self.timeout)
        first = int(canon.digest(f"{self.campaign.name}/{case}/{k}".encode()).encode().hex(), 16) % 2
        done: dict[str, Done] = {}
        for spec in ("base", "candidate") if first else ("candidate", "base"):
            found = work.run(Cell(case, spec, k), common.run_id())
            if found is None:
                return None
            done[spec] = found
        return settled(case, k, done["base"], done["candidate"], spec_hash(base), spec_hash(text))

    def _written(self, text: str) -> Path:
        path = self.folder / f"{spec_hash(text)[:16]}.spak"
        if not path.is_file():
            with open_file(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path
