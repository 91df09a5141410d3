"""A problem as the profilers see it: cases with references, a plan of them, tolerance, FLOPs and bytes.

Takes a Session, which is asked for everything; gives Cases whose types, shapes and values were checked here.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spak.validators.problems.fault import ProblemFault
from spak.validators.problems.prototype import Parameter, Prototype, parse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spak.validators.problems.session import Session

MAX_SIZE = 1 << 24
MAX_BYTES = 128 << 20
"""Of all arrays of one call."""
ODD_SIZES = (1, 7, 65, 333)
SMALL = 16
"""How many of the least sizes are all tried, how many small ones are drawn, and calls of one in a row."""
CHEAP = 4
"""A size is small when a call moves at most this part of the bytes that one of the timed size does."""
MOST_KINDS = 32
MOST_SIDES = 8


@dataclass(frozen=True, slots=True)
class Case:
    """One call: the values of its scalars, its inputs, and what it must give (float64 or int64), by name."""

    n: int
    kind: str
    scalars: Mapping[str, int | float]
    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]
    seed: tuple[int, ...] = ()
    """What it was drawn from."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be off: `abs + rel * |reference|`, or `ulp` steps of its type if that is more."""

    abs: float = 0.0
    rel: float = 0.0
    ulp: float = 0.0

    @classmethod
    def of(cls, value: Any) -> Tolerance:
        """Raises: ProblemFault `problem.invalid`."""
        bad = {name for name in value if name not in ("abs", "rel", "ulp")} or {
            name
            for name, item in value.items()
            if type(item) not in (int, float) or not math.isfinite(item) or item < 0
        }
        if bad:
            raise ProblemFault(
                "problem.invalid", f"tolerance: {', '.join(map(str, bad))}: abs, rel or ulp, not negative"
            )
        return cls(**{name: float(item) for name, item in value.items()})

    def errors(
        self, output: NDArray[Any], reference: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """|error| of each number, and whether it is too large. Both may be compared exactly: integers are."""
        import numpy as np

        off = output.astype(np.float64)
        off -= reference
        np.abs(off, out=off)
        level = not (self.rel or self.ulp)  # the usual case, of every timed call: no array of limits
        wrong = ~(off <= (self.abs if level else self.allowed(reference, output.dtype)))
        if output.dtype.kind in "iu":  # beyond 2^53 float64 would call different integers equal
            wrong |= (off == 0) & (output.astype(np.int64) != reference)
        return off, wrong

    def allowed(self, reference: NDArray[Any], kind: Any) -> NDArray[np.float64]:
        """How far each number of an output of that type may be from the reference."""
        import numpy as np

        wanted = np.abs(reference.astype(np.float64))
        found = self.abs + self.rel * wanted
        if self.ulp and np.dtype(kind).kind == "f":
            step = np.spacing(np.abs(reference).astype(kind)).astype(np.float64)
            found = np.maximum(found, self.ulp * step)
        return found

    def __str__(self) -> str:
        parts = [f"{name} {value:g}" for name in ("abs", "rel", "ulp") if (value := getattr(self, name))]
        return ", ".join(parts) or "exact"


@dataclass(slots=True)
class Problem:
    """A function that candidates compute."""

    session: Session
    prototype: Prototype
    least: int
    most: int
    timed: int
    kinds: tuple[str, ...]
    tolerance: Tolerance
    _facts: dict[int, tuple[dict[str, tuple[int, ...]], int]] = field(default_factory=dict)
    _first: Case | None = None

    @classmethod
    def of(cls, session: Session) -> Problem:
        """The problem that the session's file describes. Raises: ProblemFault, Cancelled."""
        answer = session.ask("about")[0]
        prototype = parse(_text(answer.get("prototype")))
        sizes, kinds = answer.get("sizes"), answer.get("kinds")
        if not isinstance(sizes, dict) or set(sizes) != {"least", "most", "timed"}:
            raise ProblemFault("problem.invalid", "sizes: least, most and timed are needed")
        least, most, timed = (sizes[name] for name in ("least", "most", "timed"))
        if not all(type(item) is int for item in (least, most, timed)) or not (
            1 <= least <= timed <= most <= MAX_SIZE
        ):
            raise ProblemFault(
                "problem.invalid", f"sizes: 1 <= least <= timed <= most <= {MAX_SIZE} is needed"
            )
        if not isinstance(kinds, list) or not kinds or not all(isinstance(item, str) for item in kinds):
            raise ProblemFault("problem.invalid", "kinds: a list of names is needed, the usual kind first")
        if len(kinds) > MOST_KINDS:
            raise ProblemFault("problem.invalid", f"kinds: more than {MOST_KINDS}")
        tolerance = answer.get("tolerance")
        if not isinstance(tolerance, dict):
            raise ProblemFault("problem.invalid", "tolerance: abs, rel or ulp by name are needed")
        return cls(session, prototype, least, most, timed, tuple(kinds), Tolerance.of(tolerance))

    def shapes(self, n: int) -> Mapping[str, tuple[int, ...]]:
        """The shape of every pointer at a size. Raises: ProblemFault."""
        return self._known(n)[0]

    def flops(self, n: int) -> int:
        """Operations that no correct answer of this size goes without."""
        return self._known(n)[1]

    def traffic(self, n: int) -> int:
        """Bytes that no correct answer goes without: every input read once, every output written once."""
        return sum(
            self.bytes_of(n, item) for item in (*self.prototype.of("input"), *self.prototype.of("output"))
        )

    def bytes_of(self, n: int, parameter: Parameter) -> int:
        """Bytes of a pointer's block at a size."""
        return math.prod(self.shapes(n)[parameter.name]) * parameter.width

    def plan(self, random: np.random.Generator, n: int) -> list[tuple[int, str]]:
        """Eleven sizes, each of the usual and one odd kind, every kind at `n` and at an odd size, and
        what costs little: the 16 least sizes, 16 drawn up to `n / 8`, and one of them 16 times in a row."""
        sizes = [*ODD_SIZES, n - 1, n, n + 1, n + n // 4]
        sizes += [int(size) for size in random.integers(self.least, self.most + 1, size=3)]
        sizes = [min(max(size, self.least), self.most) for size in sizes]
        usual, odd = self.kinds[0], self.kinds[1:] or self.kinds
        plan = [(size, usual) for size in sizes]
        plan += [(size, odd[int(random.integers(len(odd)))]) for size in sizes]
        plan += [(size, kind) for size in (n, min(max(333, self.least), self.most)) for kind in self.kinds]
        small = [*range(self.least, min(self.least + SMALL, self.most + 1))]
        small += [int(size) for size in random.integers(self.least, max(n // 8, self.least) + 1, size=SMALL)]
        small = [size for size in small if CHEAP * self.traffic(size) <= self.traffic(n)]
        plan += [(size, self._any_kind(random)) for size in small]
        calls = [[each] for each in plan] + [[(size, usual)] * SMALL for size in small[-1:]]
        return [each for index in random.permutation(len(calls)) for each in calls[index]]

    def sizes(self, random: np.random.Generator, count: int) -> list[tuple[int, str]]:
        """Sizes and kinds that are drawn. The logarithm of a size is even, so that most cost little."""
        ends = math.log(self.least), math.log(self.most + 1)
        drawn = (int(math.exp(each)) for each in random.uniform(*ends, size=count))
        return [(min(max(size, self.least), self.most), self._any_kind(random)) for size in drawn]

    def _any_kind(self, random: np.random.Generator) -> str:
        return self.kinds[int(random.integers(len(self.kinds)))]

    def case(self, random: np.random.Generator, n: int, kind: str = "") -> Case:
        """Fresh inputs of a size and kind, with their reference. Raises: ProblemFault, Cancelled."""
        seed = [int(word) for word in random.integers(2**63, size=2)]
        return self.case_of(seed, n, kind or self.kinds[0])

    def case_of(self, seed: list[int], n: int, kind: str) -> Case:
        """The case of a seed. Raises: ProblemFault, Cancelled."""
        import numpy as np

        shapes = self.shapes(n)  # first: what is too large is not even made
        names = {
            role: [item.name for item in self.prototype.of(role)] for role in ("input", "output", "scalar")
        }
        answer, data = self.session.ask(
            "case", n=n, kind=kind, seed=seed,
            inputs=names["input"], outputs=names["output"], scalars=names["scalar"],
        )  # fmt: skip
        wanted = [
            (item.name, _wide(item) if item.role == "output" else item.type, list(shapes[item.name]))
            for item in (*self.prototype.of("input"), *self.prototype.of("output"))
        ]
        arrays: dict[str, NDArray[Any]] = {}
        at = 0
        for given, (name, kind_, shape) in zip(answer.get("arrays", ()), wanted, strict=False):
            if given != [name, kind_, shape]:
                raise ProblemFault(
                    "problem.shape", f"{name} at n = {n} is {given[1:]}, {[kind_, shape]} is needed ({kind})"
                )
            count = math.prod(shape)
            arrays[name] = np.frombuffer(data, np.dtype(kind_), count, at).reshape(shape)
            at += arrays[name].nbytes
        if len(arrays) < len(wanted) or at != len(data):
            raise ProblemFault(
                "problem.shape", f"the arrays of a case at n = {n} are not those of the prototype"
            )
        outputs = {name: arrays[name] for name in names["output"]}
        for item in self.prototype.of("output"):
            _fits(item, outputs[item.name], f"reference {item.name} at n = {n}, {kind} inputs")
        scalars = {item.name: _scalar(item, answer.get("scalars")) for item in self.prototype.of("scalar")}
        return Case(n, kind, scalars, {name: arrays[name] for name in names["input"]}, outputs, tuple(seed))

    def steady(self, before: str = "") -> str:
        """A digest of one case; `before` is what an earlier process gave, if there was one.

        Raises: ProblemFault `problem.changes` when the same seed gives something else a second time.
        """
        n = min(max(7, self.least), self.most)
        one, two = (self.case_of([1, 2], n, self.kinds[-1]) for _ in range(2))
        self._first = one
        if not same(one, two):
            raise ProblemFault(
                "problem.changes", f"two calls with one seed differ (n = {n}, {self.kinds[-1]})"
            )
        found = digest(one)
        if before not in ("", found):
            raise ProblemFault(
                "problem.changes",
                f"an earlier evaluation got something else for one seed (n = {n}, {self.kinds[-1]})",
            )
        return found

    def stands_by(self, case: Case) -> None:
        """Raises: ProblemFault `problem.changes` when the seed of the case, or of the first, gives something
        else now."""
        for found in (case, *([self._first] if self._first else [])):
            if not same(found, self.case_of(list(found.seed), found.n, found.kind)):
                raise ProblemFault(
                    "problem.changes",
                    f"a later call with the same seed differs (n = {found.n}, {found.kind})",
                )

    def _known(self, n: int) -> tuple[dict[str, tuple[int, ...]], int]:
        if n in self._facts:
            return self._facts[n]
        answer = self.session.ask("facts", n=n)[0]
        shapes, flops = answer.get("shapes"), answer.get("flops")
        pointers = [item for item in self.prototype.parameters if item.role != "scalar"]
        total = 0
        found = {}
        for item in pointers:
            shape = shapes.get(item.name) if isinstance(shapes, dict) else None
            if (
                not isinstance(shape, list)
                or len(shape) > MOST_SIDES
                or not all(type(side) is int and side > 0 for side in shape)
            ):
                raise ProblemFault("problem.shape", f"shapes({n}) has no shape of {item.name}")
            found[item.name] = tuple(shape)
            total += math.prod(shape) * item.width
        if total > MAX_BYTES:
            raise ProblemFault("problem.too_large", f"{total} bytes at n = {n}; at most {MAX_BYTES}")
        if type(flops) is not int or not 0 <= flops < 1 << 62:
            raise ProblemFault("problem.invalid", f"flops({n}) is no count")
        self._facts[n] = found, flops
        return self._facts[n]


def same(one: Case, two: Case) -> bool:
    """Whether two cases are the same, bit for bit."""
    pairs = [(one.inputs, two.inputs), (one.outputs, two.outputs)]
    return one.scalars == two.scalars and all(
        first[name].tobytes() == second[name].tobytes() for first, second in pairs for name in first
    )


def digest(case: Case) -> str:
    """A hash of what is in a case."""
    found = hashlib.sha256(repr(sorted(case.scalars.items())).encode())
    for arrays in (case.inputs, case.outputs):
        for name, array in arrays.items():
            found.update(name.encode() + array.tobytes())
    return found.hexdigest()


def _wide(item: Parameter) -> str:
    return "float64" if item.floating else "int64"


def _fits(item: Parameter, found: NDArray[Any], what: str) -> None:
    import numpy as np

    if item.floating:
        least = np.finfo(item.type)
        if not np.isfinite(found).all():
            raise ProblemFault("problem.not_finite", f"{what}: NaN or infinite")
        if np.abs(found).max(initial=0.0) > least.max:
            raise ProblemFault("problem.not_finite", f"{what}: beyond {item.type}")
        return
    limits = np.iinfo(item.type)
    if found.size and (found.min() < limits.min or found.max() > limits.max):
        raise ProblemFault("problem.shape", f"{what}: beyond {item.type}")


def _scalar(item: Parameter, given: Any) -> int | float:
    import numpy as np

    value = given.get(item.name) if isinstance(given, dict) else None
    if item.floating and isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    if not item.floating and type(value) is int:
        limits = np.iinfo(item.type)
        if limits.min <= value <= limits.max:
            return value
    raise ProblemFault("problem.shape", f"inputs() gave no {item.name} that fits {item.c}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ProblemFault("problem.prototype", "prototype: a text is needed")
    return value
