"""Shards: what a child of a run may do is a part of what its parent may do, at every depth.

A shard is a policy with facts of its own and an allowance. A child's policy is its parent's with rules added;
an action is permitted for a child when the child's policy permits it and every ancestor's does, each asked
with the facts of the runtime and with what that shard itself and those above it have stated. So nothing that
a child states or says can widen what it may do. Besides, a child that tries is refused when it is made: it
heads `forbidden` and predicates of its own, it states only its own, and RESERVED ones are the runtime's.
Allowances are split by `allot`, so that children together never have more than their parent had left. Making
and running shards is not done here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spak.datalog.errors import PolicyError
from spak.datalog.evaluate import Limits
from spak.datalog.externals import Request
from spak.datalog.session import Policy, load
from spak.datalog.values import Fact, Value

RESERVED = frozenset(
    """
    tool unknown_tool argument cut_argument unreadable uses_path command_does runs_code asks_url
    asks_method url_trouble sends_body sends_header host_address unresolved patch_trouble
    names_secret looks_secret act validator in_task at_level declared_tool sandboxed diagnostic
    checks_ran spent allowance takes signed_approval admin_override role dependency_link
    test_coverage entropy held as_strict connects works_in sets_variable declares_use
    """.split()  # noqa: SIM905
)
"""Predicates whose rows the runtime states, or the world answers: no rule or fact of a spec makes one."""

POLICY = frozenset({"permitted", "forbidden"})
MAX_DEPTH = 32

Allowance = Mapping[str, int]
Answers = Iterable[tuple[Request, Iterable[tuple[Value, ...]]]]


@dataclass(frozen=True, slots=True)
class Shard:
    """A policy, what was stated under it, and what it may spend; `parent` is None for the run itself."""

    name: str
    sources: Mapping[str, str]
    policy: Policy
    facts: tuple[Fact, ...]
    allowance: Allowance
    parent: Shard | None = None

    @property
    def line(self) -> tuple[Shard, ...]:
        """The shard's ancestors and itself, the root first."""
        found: list[Shard] = []
        here: Shard | None = self
        while here is not None:
            found.append(here)
            here = here.parent
        return tuple(reversed(found))

    def refusal(
        self, action: Value, facts: Iterable[Fact], answers: Answers = (), limits: Limits | None = None
    ) -> str | None:
        """The first shard of the line that does not permit the action; None when all do.

        `facts` are the runtime's, about the action, and `answers` the world's. Raises: PolicyError (such as
        `policy.incomplete`), PolicyLimit; then nothing is permitted.
        """
        known, told = list(facts), list(answers)
        for shard in self.line:
            known += shard.facts
            session = shard.policy.session(known, limits)
            for request, rows in told:
                if request.mode in shard.policy.externals.get(request.key, ()):
                    session.supply(request, rows)
            if session.holds("forbidden", action) or not session.holds("permitted", action):
                return shard.name
        return None

    def permits(self, action: Value, facts: Iterable[Fact], answers: Answers = ()) -> bool:
        """True when this shard and all above it permit the action. Raises: as `refusal`."""
        return self.refusal(action, facts, answers) is None


def root(sources: Mapping[str, str], allowance: Allowance, name: str = "run") -> Shard:
    """The shard of a whole run. Raises: PolicyError `policy.invalid`, `policy.budget`."""
    return Shard(name, dict(sources), load(sources), (), _counted(allowance))


def child(
    parent: Shard, name: str, rules: str = "", facts: Iterable[Fact] = (), allowance: Allowance | None = None
) -> Shard:
    """A shard below another one; its allowance comes from `allot`.

    Raises: PolicyError `policy.invalid`, `policy.reserved` for a rule or fact that is not its own to give,
    `policy.budget` for an allowance above the parent's or a line that is too deep.
    """
    if len(parent.line) >= MAX_DEPTH:
        raise PolicyError(
            "policy.budget", f"shards are nested deeper than {MAX_DEPTH}", "give the work to fewer"
        )
    if name in parent.sources:
        raise PolicyError("policy.reserved", f"the name {name} is taken above", "take another name")
    wanted = _counted(allowance or {})
    for what, count in wanted.items():
        if count > parent.allowance.get(what, 0):
            raise PolicyError(
                "policy.budget", f"{count} of {what}, and the parent has {parent.allowance.get(what, 0)}"
            )
    sources = {**parent.sources, name: rules}
    policy = load(sources)
    theirs = {pred for pred, _ in parent.policy.predicates} | RESERVED | POLICY
    for clause in policy.clauses:
        if clause.place.file == name and clause.head.pred in theirs - {"forbidden"}:
            place, pred = clause.place, clause.head.pred
            raise PolicyError(
                "policy.reserved", f"{place}: {pred} is not the child's to say", "forbid, or add your own"
            )
    stated = tuple(facts)
    for pred, _ in stated:
        if pred in theirs:
            raise PolicyError(
                "policy.reserved", f"{pred} is not the child's to state", "state a predicate of its own"
            )
    return Shard(name, sources, policy, stated, wanted, parent)


def allot(rest: Allowance, *wishes: Allowance) -> tuple[dict[str, int], ...]:
    """What is left of an allowance, and then each child's part, as wished. All or nothing.

    Raises: PolicyError `policy.budget` when the wishes come to more than there is; what the rest does not
    name is none.
    """
    left = _counted(rest)
    given = [_counted(wish) for wish in wishes]
    for wish in given:
        for what, count in wish.items():
            if count > left.get(what, 0):
                message = f"the children want more of {what} than the {rest.get(what, 0)} there are"
                raise PolicyError("policy.budget", message, "give them less")
            if count:
                left[what] -= count
    return (left, *given)


def _counted(allowance: Allowance) -> dict[str, int]:
    for what, count in allowance.items():
        if type(what) is not str or type(count) is not int or count < 0:
            raise PolicyError(
                "policy.budget", f"no amount of {what!s:.40}: {count!r:.40}", "give whole numbers from 0"
            )
    return dict(allowance)
