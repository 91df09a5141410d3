"""An experiment under way: its ledger, which cells are left, and when to stop.

    <root>/<id>/trace.jsonl    a chain of records by the host
    genesis  the plan            start   {"cell": [case, spec, k], "run"}
    cell     {"cell", ...Done}   stop    {"why"}
    budget   {...Budget}: what holds from here on instead of the plan's

`advance` takes cells in order, has each run by `work` (several at a time, where the caller gives workers) and
appends what came back; a cell is in the ledger when it is whole. Opening an experiment takes up where its
ledger ends; a run that was begun for a cell is resumed. Nothing here knows how a run is started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from spak.errors import OuterError, UserError, of_host
from spak.evolve import host_ledger
from spak.evolve.experiments.model import Budget, Cell, Done, Plan, Used, cells
from spak.ledger.files import FileLedgers
from spak.records import Kind

START, CELL, STOP, BUDGET = "start", "cell", "stop", "budget"


class More(Protocol):
    """Whether one more cell may begin while so many others are under way."""

    def __call__(self, going: int = 0) -> bool: ...


class Work(Protocol):
    """Runs cells: gives the results in any order, as they come; None for a cell that was stopped. Once the
    others have come it raises what the host could not do for a cell, which then can go on.

    It calls `begun` with the run's name as soon as there is one, and starts no further cell once `more` is
    False.
    """

    def __call__(
        self,
        todo: Iterable[tuple[Cell, str]],
        begun: Callable[[Cell, str], None],
        more: More,
    ) -> Iterator[tuple[Cell, Done | None]]: ...


@dataclass(slots=True)
class Experiment:
    """An experiment as its ledger records it."""

    name: str
    plan: Plan
    done: dict[Cell, Done] = field(default_factory=dict)
    begun: dict[Cell, str] = field(default_factory=dict)
    """The runs of cells that have no result yet."""
    stopped: str = ""
    """Why it stopped last: a limit's name, `interrupted`, what the host could not do, or empty."""
    fault: UserError | None = None
    """What the host could not do, where it stopped for that just now."""
    head: str = ""
    used: Used = field(default_factory=Used)
    given: Budget | None = None
    """The budget that it was last given when it went on."""

    @property
    def budget(self) -> Budget:
        """What it may use in all."""
        return self.given or self.plan.budget

    @classmethod
    def create(cls, root: Path, name: str, plan: Plan) -> Experiment:
        """A new experiment, with its plan as the first record. Raises: LedgerError where it exists."""
        return cls(name, plan, head=host_ledger.create(root, name, plan.to_json()))

    @classmethod
    def read(cls, root: Path, name: str) -> Experiment:
        """Raises: OuterError `outer.experiment`, LedgerError."""
        unknown, hint = f"there is no experiment {name} in {root}", "its id is what spak eval printed"
        reader = host_ledger.reader(root, name, OuterError("outer.experiment", unknown, hint))
        found: Experiment | None = None
        try:
            for record, _ in reader.read():
                if record.kind == Kind.GENESIS:
                    found = cls(name, Plan.from_json(record.body))
                elif found is not None:
                    found._see(record.kind, record.body)
            assert found is not None
        except (KeyError, TypeError, ValueError, AssertionError) as error:
            raise OuterError(
                "outer.experiment", f"{name} holds no experiment", "name one of spak eval"
            ) from error
        found.head = reader.head
        return found

    def _see(self, kind: str, body: Mapping[str, Any]) -> None:
        if kind == STOP:
            self.stopped = str(body["why"])
            return
        if kind == BUDGET:
            self.given = Budget(**body)
            return
        case, spec, k = body["cell"]
        cell = Cell(case, spec, k)
        if kind == START:
            self.begun[cell] = str(body["run"])
        elif kind == CELL and (cell not in self.done or self.done[cell].void):
            done = Done.from_json(body)
            self.done[cell] = done
            self.begun.pop(cell, None)
            self.used = self.used.and_(done)

    @property
    def left(self) -> list[Cell]:
        """The cells that have no result yet, in the plan's order."""
        return [cell for cell in cells(self.plan) if cell not in self.done]

    @property
    def void(self) -> list[Cell]:
        """The cells whose runs came to nothing."""
        return [cell for cell, done in self.done.items() if done.void]

    def advance(
        self, root: Path, work: Work, shown: Callable[[Cell, Done], None], budget: Budget | None = None
    ) -> str:
        """Run what is left, and what was void; why it stopped, empty when every cell is there. `budget`, in
        all, takes the place of the one before.

        Raises: LedgerError `ledger.busy` when another process runs the experiment.
        """
        with FileLedgers(root).open(self.name) as ledger:

            def put(kind: str, body: Mapping[str, Any]) -> None:
                ledger.append([host_ledger.record(kind, body)])
                ledger.flush()
                self.head = ledger.head
                self._see(kind, body)

            def begun(cell: Cell, run: str) -> None:
                put(START, {"cell": list(cell), "run": run})

            def more(going: int = 0) -> bool:
                return not replace(self.used, runs=self.used.runs + going).exhausted(self.budget)

            if budget is not None and budget != self.budget:
                put(BUDGET, asdict(budget))
            interrupted = False
            open_ = {*self.left, *self.void}
            todo = [(cell, self.begun.get(cell, "")) for cell in cells(self.plan) if cell in open_]
            try:
                for cell, done in work(todo, begun, more):
                    if done is None:
                        interrupted = True
                        continue
                    put(CELL, {"cell": list(cell), **done.to_json()})
                    shown(cell, done)
            except UserError as error:
                if not of_host(error):
                    raise
                self.fault = error
            why = ""
            if self.fault is not None:
                why = f"{self.fault.code}: {self.fault.message}"
            elif self.left:
                why = "interrupted" if interrupted else self.used.exhausted(self.budget) or "interrupted"
            if why or self.stopped:
                put(STOP, {"why": why})
            return why


def estimate(plan: Plan, known: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """What the cells will take, by what the runs took that the cases were kept from.

    `known` has tokens, cost_nanousd and ms by case; `unknown` counts the cells of cases without.
    """
    many = plan.n * len(plan.specs)
    sums = {
        name: sum(many * known.get(case, {}).get(name, 0) for case in plan.cases)
        for name in ("tokens", "cost_nanousd", "ms")
    }
    return {
        "runs": many * len(plan.cases),
        **sums,
        "unknown": many * sum(case not in known for case in plan.cases),
    }
