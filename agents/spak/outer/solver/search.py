"""The solver itself, in a process of its own: `python -m spak.outer.solver.search`.

Reads a Job (pickled by `question`, which starts this) on standard input; writes one JSON object a line:
`faults` and `values` once the program is grounded, `found` for each act and direction in which the laws
differ, `done` for each direction in which no further act differs, or `refused` with a reason. It claims
nothing: `question` has every set of facts judged by the engine, and ends this process after the time limit.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spak.datalog.errors import PolicyError
from spak.datalog.functions import COMPARE, FUNCTIONS, GENERATORS, TESTS
from spak.datalog.types import misfit
from spak.datalog.values import Inner, show
from spak.outer.solver.bodies import ANY, FAULT
from spak.outer.solver.translate import Program, Untranslatable

MOST_VALUES = 1_000_000
"""Values that functions make, before a program is taken for one without an end."""
MOST_SUMMED = 10_000_000
"""The largest addend of a sum: 200 of them fit the 32 bits of the solver."""
MEMORY_BYTES = 4 << 30
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A question: the program, and the most facts that it combines."""

    program: Program
    most: int


class Calls:
    """What the program calls while it is grounded: the language's own tables."""

    def __init__(self, program: Program, clingo: Any) -> None:
        self.values, self.guards = program.values, program.guards
        self.refused = ""
        self._number: Callable[[int], Any] = lru_cache(4096)(clingo.Number)
        self._tuple = clingo.Tuple_

    def compare(self, name: Any, left: Any, right: Any) -> Any:
        """1 or 0, or FAULT."""
        return self._truth(COMPARE[name.string], left, right)

    def test(self, name: Any, *args: Any) -> Any:
        """1 or 0, or FAULT."""
        return self._truth(TESTS[name.string][1], *args)

    def call(self, name: Any, *args: Any) -> Any:
        """The number of what a function gives, or FAULT."""
        given = self._given(args)
        if given is None:
            return self._number(FAULT)
        try:
            return self._of(FUNCTIONS[name.string].call(*given))
        except PolicyError:
            return self._number(FAULT)

    def find(self, name: Any, *args: Any) -> list[Any]:
        """The rows that a generator finds."""
        given = self._given(args)
        try:
            rows = GENERATORS[name.string].call(*given) if given is not None else ()
            return [self._tuple([self._of(value) for value in row]) for row in rows]
        except PolicyError:
            return []

    def fails(self, name: Any, *args: Any) -> Any:
        """FAULT where a generator fails."""
        given = self._given(args)
        try:
            if given is not None:
                list(GENERATORS[name.string].call(*given))
                return self._number(0)
        except PolicyError:
            pass
        return self._number(FAULT)

    def lacks(self, name: Any, inputs: Any, *args: Any) -> Any:
        """1 where a generator finds no such row."""
        given = self._given(args[: inputs.number])
        wanted = [arg.number for arg in args[inputs.number :]]
        try:
            rows = list(GENERATORS[name.string].call(*given)) if given is not None else []
        except PolicyError:
            return self._number(FAULT)
        if given is None or FAULT in wanted:
            return self._number(FAULT)
        fits = (
            all(want in (ANY, self.values.of(value)) for want, value in zip(wanted, row, strict=True))
            for row in rows
        )
        return self._number(int(not any(fits)))

    def misfit(self, guard: Any, *args: Any) -> Any:
        """1 where a derived row breaks its declaration."""
        row = self._given(args)
        return self._number(int(row is not None and bool(misfit(tuple(row), self.guards[guard.number]))))

    def whole(self, value: Any) -> Any:
        """The number itself, of what is added up or compared in an aggregate."""
        found = self.values.known[value.number]
        if type(found) is not int:
            if type(found) is tuple and found[0] == "f":
                self._refuse(f"a sum, a least or a greatest of {show(found)}, which is no whole number")
            return self._tuple([])  # no number at all: a fault elsewhere
        if abs(found) > MOST_SUMMED:
            self._refuse(f"a sum, a least or a greatest of {found}, which is beyond {MOST_SUMMED}")
        return self._number(found)

    def number(self, total: Any) -> Any:
        """A number of an aggregate as a value."""
        return self._of(total.number)

    def _truth(self, call: Callable[..., bool], *args: Any) -> Any:
        given = self._given(args)
        if given is None:
            return self._number(FAULT)
        try:
            return self._number(int(call(*given)))
        except PolicyError:
            return self._number(FAULT)

    def _given(self, args: Any) -> list[Inner] | None:
        """The values of arguments; None where a call that made one has failed."""
        numbers = [arg.number for arg in args]
        return None if FAULT in numbers else [self.values.known[number] for number in numbers]

    def _of(self, value: Inner) -> Any:
        number = self.values.of(value)
        if number >= MOST_VALUES:
            self._refuse("its functions make values without an end")
        return self._number(number)

    def _refuse(self, why: str) -> None:
        self.refused = why
        raise Untranslatable(why)


def search(job: Job) -> Iterator[Line]:
    """The lines of the answer."""
    import clingo

    calls = Calls(job.program, clingo)
    control = clingo.Control(["--warn=none"])
    control.add("base", [], job.program.text)
    try:
        control.ground([("base", [])], context=calls)
    except (RuntimeError, Untranslatable):
        if not calls.refused:
            raise
        yield {"refused": calls.refused}
        return
    atoms = control.symbolic_atoms.by_signature("fault", 2)
    places = {job.program.places[atom.symbol.arguments[1].number] for atom in atoms}
    yield {"faults": sorted(places), "values": len(job.program.values.known)}
    for direction in ("permitted", "denied"):
        yield from _differ(control, clingo, direction, job.most)


def _differ(control: Any, clingo: Any, direction: str, most: int) -> Iterator[Line]:
    """An answer set of the fewest facts for each act that the laws judge differently, until there is none."""
    differs = clingo.Function("differs", [clingo.Function(direction)])
    assumed = [(differs, True)]
    sizes = range(most + 1) if control.symbolic_atoms[differs] is not None else ()
    for size in sizes:
        of_size = (clingo.Function("size", [clingo.Number(size)]), True)
        while shown := _model(control, [*assumed, of_size]):
            kind = next(number for name, number in shown if name == "kind")
            chosen = sorted(number for name, number in shown if name == "chosen")
            yield {"found": direction, "kind": kind, "chosen": chosen}
            assumed.append((clingo.Function("kind", [clingo.Number(kind)]), False))
    yield {"done": direction}


def _model(control: Any, assumed: list[tuple[Any, bool]]) -> list[tuple[str, int]]:
    """What an answer set shows, or nothing where there is none."""
    with control.solve(yield_=True, assumptions=assumed) as handle:
        model = handle.model()
        if model is None:
            return []
        return [(symbol.name, symbol.arguments[0].number) for symbol in model.symbols(shown=True)]


def main() -> None:
    """One job."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    job = pickle.load(sys.stdin.buffer)
    for line in search(job):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
