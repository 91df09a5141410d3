"""Rules: all that `step` may read besides the state, made from a genesis record and nothing else.

Genesis holds `rules` {kernel, spec, policy, inputs, catalog, limits, seed, r3, keys}. Compiling them here
makes a ledger self-contained: the same genesis gives the same Rules on any host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spak import canon
from spak import program as programs
from spak.datalog.values import Fact
from spak.errors import LedgerError
from spak.kept import by_size
from spak.kernel import seal
from spak.kernel.gate import Gate, gate_of
from spak.lang import parse
from spak.lang.catalog import Catalog
from spak.lang.schema import check_schema
from spak.policy.law import name_of, rules_of
from spak.program import Program, Ref, Step, Task
from spak.program.semantics import SEMANTICS, require_known

OF_ONE_RUN = frozenset({"seed", "r3"})
"""What runs of one spec differ in while the rest of their rules is alike, and is compiled once."""
KEPT_BYTES = 1 << 20
"""Of rules in first records: what was compiled for them is kept."""
INLINE = 16_384
"""Bytes of text that a variable holds itself; longer values are blobs, opaque to `step`."""
MAX_FILLED = 16 << 20
"""Bytes that the variables of one step come to, each as often as the step reads it."""
UNKNOWN_SIZE = 1 << 20
"""Bytes that a blob counts whose reference does not say its size: a measured file."""


@dataclass(slots=True)
class Filling:
    """What is known of filling in a step, however often the run comes to it."""

    paths: tuple[str, ...]
    """The variables that its arguments and its task's conditions read, as often as they do."""
    fixed: bool
    """Whether its arguments read none."""
    args: Mapping[str, Any] | None = None
    """The arguments of a `fixed` one, once they were filled in: the same each time."""
    misfits: list[Mapping[str, Any]] | None = None
    """What in them does not fit its tool's schema."""
    action: str = ""
    """The hash of its tool with them."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that is fixed for a run; see `Rules.of`."""

    program: Program
    catalog: Catalog
    seed: int
    r3: str
    opening: str
    wanted: frozenset[str]
    """Variables that some template or condition reads; others of their kind are not kept."""
    gate: Gate
    keys: tuple[Mapping[str, Any], ...] = ()
    """The approvers' public keys: `{id, name, public, roles}`."""
    axioms: tuple[str, ...] = ()
    """All of the spec's; those of `program` are told in prompts, the others are rules of the policy."""
    remembers: bool = False
    """Whether a model or a person fills some plan, so that the state has a memory to show them."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """The texts of problems' files by name, for validators; `step` reads none."""
    searches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By task: the options that a search had by default when the run began, and the trials of an earlier run
    that it begins with; for proposers, `step` reads none."""
    sealed: str = ""
    """The hash of the checks that judge what the run made, as its last step; their files are elsewhere."""
    situations: dict[tuple[str, str], tuple[Fact, ...]] = field(
        default_factory=dict, init=False, compare=False
    )
    """Facts of the run that its rules alone say, by task and tool; kept by spak.kernel.situation."""
    fillings: dict[tuple[str, str], Filling] = field(default_factory=dict, init=False, compare=False)

    @classmethod
    def of(cls, genesis: Mapping[str, Any]) -> Rules:
        """The rules of a genesis body.

        Raises: LedgerError `ledger.genesis` when it is not one, `ledger.semantics` when another kernel made
        it, SpecError when its spec does not compile or a schema is outside the dialect,
        PolicyError when its policy does not load.
        """
        try:
            rules = genesis["rules"]
            require_known(rules)
            shared = {name: value for name, value in rules.items() if name not in OF_ONE_RUN}
            made = _compiled(canon.dumps(shared))
            opening = seal.opening(SEMANTICS, rules)
            return replace(made, seed=rules["seed"], r3=rules["r3"], opening=opening)
        except (KeyError, TypeError, AttributeError) as error:
            raise LedgerError("ledger.genesis", f"not a genesis record: {error!r}") from error

    def filling(self, task: Task, step: Step) -> Filling:
        """What is kept of filling in a step."""
        found = self.fillings.get((task.name, step.id))
        if found is None:
            own = every_ref(step.args)
            paths = (*own, *every_ref((task.success, task.invariant)))
            found = self.fillings[task.name, step.id] = Filling(paths, not own)
        return found

    def draw(self, *place: object) -> int:
        """A number of 53 bits that depends on the run's seed and the place, and on nothing else."""
        text = "/".join(str(part) for part in (self.seed, *place))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") >> 3


@by_size(KEPT_BYTES)
def _compiled(shared: bytes) -> Rules:
    """The rules of all runs that begin with these, but for what is OF_ONE_RUN."""
    rules = canon.loads(shared)
    catalog = Catalog.from_json(rules["catalog"])
    for table in (catalog.tools, catalog.validators):
        for name, entry in table.items():
            check_schema(entry.schema, name)
    program = programs.compile(parse(rules["spec"]), catalog, rules["inputs"])
    axioms = program.axioms
    laws = rules_of(axioms)
    if rules["policy"]["axioms"] != laws:
        raise LedgerError("ledger.genesis", "its policy has not the axioms of its spec")
    prose = tuple(text for n, text in enumerate(axioms, 1) if name_of(n) not in laws)
    program = replace(program, axioms=prose)
    program = _with_proposer(program, rules.get("proposer", ""))
    return Rules(
        program=program,
        catalog=catalog,
        seed=0,
        r3="",
        opening="",
        wanted=_wanted(program),
        gate=gate_of(rules["policy"]),
        axioms=axioms,
        keys=tuple(rules["keys"]),
        remembers=_reads_memory(program),
        problems=rules.get("problems", {}),
        searches=rules.get("searches", {}),
        sealed=rules.get("sealed", ""),
    )


def _with_proposer(program: Program, name: str) -> Program:
    """The program with another proposer for its plans: a generator's name, or `model` for none."""
    if not name:
        return program
    filled = "" if name == "model" else name
    tasks = {
        key: replace(task, proposing=replace(task.proposing, name=filled))
        for key, task in program.tasks.items()
    }
    return replace(program, tasks=tasks)


def _wanted(program: Program) -> frozenset[str]:
    return refs(list(program.tasks.values()))


def refs(value: Any) -> frozenset[str]:
    """The path of every Ref in frozen data, each once."""
    return frozenset(every_ref(value))


def every_ref(value: Any) -> list[str]:
    """The path of every Ref in frozen data as often as it is there, found by walking it."""
    found: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Ref):
            found.append(item.path)
        elif isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, (tuple, list)):
            stack.extend(item)
        elif hasattr(item, "__dataclass_fields__"):
            stack.extend(getattr(item, name) for name in item.__dataclass_fields__)
    return found


def _reads_memory(program: Program) -> bool:
    """Whether some plan of the program is put to a model or a person."""
    return any(
        step.kind == "plan" and not task.proposing.name
        for task in program.tasks.values()
        for step in task.steps
    )
