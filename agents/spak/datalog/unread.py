"""Columns whose values no derivation of some goals can depend on.

Takes a policy and goals (predicates); gives for each predicate the columns that nothing reads: every rule has
a wildcard there, or a variable that occurs once more at most, in a column of its head that nothing reads
either. Two sets of facts that differ in texts and numbers of such columns alone, one for one (`renamed`),
have derivations of the same shape: the goals hold under both or under none.

It is careful: a column with a test, a comparison, a join, a constant, a grouping, a fact of the policy's own
text, a question, an inclusion or a declared type that is more than a kind of values counts as read. Policies
with folds have no unread column, since folds take values out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from spak.datalog.externals import TRUE
from spak.datalog.plan import Body, Item, Key, names_of, variables
from spak.datalog.session import Policy
from spak.datalog.syntax import Apply, Decl, Term, Var, Wild
from spak.datalog.values import MAX_INT, MIN_INT, Fact

Columns = Mapping[Key, tuple[int, ...]]
PLAIN = ("any", "string", "number")
LARGER = {"<": 1, "<=": 1, ">": 0, ">=": 0}
"""The side of a comparison that is the larger one."""
LONGEST = 4096
"""Characters of a text that may stand for another: far below any limit of a row's size."""


def unread(policy: Policy, goals: Iterable[Key], stated: Collection[str]) -> Columns:
    """The unread columns of the predicates that have some, where facts of the names `stated` alone are
    asserted: rules that need others derive nothing."""
    if policy.folds:
        return {}
    whole = {*goals, *policy.externals, *policy.asks, *policy.tables, *(key for key, _ in policy.facts)}
    whole |= {clause.head.key for clause in policy.inclusions}
    read = {(key, place) for key in whole for place in range(key[1])}
    for decl in policy.decls.values():
        read |= {(decl.atom.key, place) for place in _narrow(decl)}
    passed: dict[tuple[Key, int], list[tuple[Key, int]]] = {}
    for body in _live(policy, stated):
        _walk(body, read, passed)
    queue = list(read)
    while queue:
        for source in passed.get(queue.pop(), ()):
            if source not in read:
                read.add(source)
                queue.append(source)
    found = {}
    for key in policy.predicates:
        free = tuple(place for place in range(key[1]) if (key, place) not in read)
        if free:
            found[key] = free
    return found


def reads(policy: Policy, goals: Iterable[str]) -> set[Key]:
    """Every predicate that a goal, a predicate of one column, can depend on."""
    below: dict[Key, set[Key]] = {key: {fold.feed, fold.close} for key, fold in policy.folds.items()}
    for clause in policy.clauses:
        used = {part.atom.key for part in clause.body if hasattr(part, "atom")}
        below.setdefault(clause.head.key, set()).update(used)
    found = {(goal, 1) for goal in goals}
    queue = list(found)
    while queue:
        more = below.get(queue.pop(), set()) - found
        found |= more
        queue += more
    return found


def rises(policy: Policy, key: Key, column: int) -> bool:
    """Whether rules ask of this column only if its value is more than another: what follows from a fact then
    follows from one with a larger value there. No rule derives the predicate, reads two rows of it, or reads
    it in a negation or a grouping."""
    rules = policy.compiled
    if key not in rules.plain:
        return False
    bodies = [rules.bodies[rule] for rule, _ in rules.readers[key]]
    return len({*map(id, bodies)}) == len(bodies) and all(
        _asks_for_more(body, item.args[column], item)
        for body in bodies
        for item in body.items
        if item.kind == "row" and item.key == key
    )


def _asks_for_more(body: Body, arg: Term, row: Item) -> bool:
    """Whether the rule reads a column of this row only on the larger side of comparisons."""
    if isinstance(arg, Wild):
        return True
    if not isinstance(arg, Var) or arg.name in {name for part in body.head.args for name in variables(part)}:
        return False
    times = Counter(name for part in row.args for name in variables(part))
    others = [item for item in body.items if item is not row and arg.name in names_of(item)]
    return times[arg.name] == 1 and all(_is_more(item, arg.name) for item in others)


def _is_more(item: Item, name: str) -> bool:
    """Whether a comparison holds for every larger value of the variable where it holds for one."""
    if item.kind != "compare" or item.name not in LARGER:
        return False
    more, less = item.args[LARGER[item.name]], item.args[1 - LARGER[item.name]]
    terms = more.args if isinstance(more, Apply) and more.function == "fn:plus" else (more,)
    found = [term for term in terms if name in variables(term)]
    return name not in variables(less) and len(found) == 1 and isinstance(found[0], Var)


def renamed(facts: Iterable[Fact], columns: Columns) -> tuple[Fact, ...]:
    """The facts with each text and number of an unread column replaced by its kind and the place of its first
    occurrence: a key for facts that are alike, of which nothing can be derived."""
    numbers: dict[str | int, tuple[str, int]] = {}
    found: list[Fact] = []
    for fact in facts:
        name, args = fact
        places = columns.get((name, len(args)))
        if places is None:
            found.append(fact)
            continue
        changed = list(args)
        for place in places:
            value: Any = changed[place]
            if _may_differ(value):
                changed[place] = numbers.setdefault(value, (type(value).__name__, len(numbers)))
        found.append((name, tuple(changed)))
    return tuple(found)


def _live(policy: Policy, stated: Collection[str]) -> list[Body]:
    """The rules that could derive something."""
    may = {key for key in policy.predicates if key[0] in stated}
    may |= {*policy.externals, *policy.tables, *(key for key, _ in policy.facts), TRUE[0]}
    left, live = list(policy.compiled.bodies), list[Body]()
    while True:
        new = [body for body in left if all(item.key in may for item in body.items if item.kind == "row")]
        if not new:
            return live
        live += new
        left = [body for body in left if body not in new]
        may |= {body.head.key for body in new}


def _may_differ(value: Any) -> bool:
    """Whether it is a text or number that no check of facts refuses."""
    if type(value) is str:
        return len(value) <= LONGEST and value.isascii()
    return type(value) is int and MIN_INT <= value <= MAX_INT


def _walk(
    body: Body, read: set[tuple[Key, int]], passed: dict[tuple[Key, int], list[tuple[Key, int]]]
) -> None:
    """What one rule reads, and which columns it passes on to its head (`passed`, by the head's column)."""
    head = body.head
    times = Counter(name for item in body.items for arg in item.args for name in variables(arg))
    out = Counter(name for arg in head.args for name in variables(arg))
    grouped = body.clause.transform is not None
    goal: dict[str, int] = {}
    for place, arg in enumerate(head.args):
        if isinstance(arg, Var):
            goal[arg.name] = place
        if grouped or not isinstance(arg, Var):
            read.add((head.key, place))
    for item in body.items:
        if item.kind not in ("row", "neg"):
            continue
        for place, arg in enumerate(item.args):
            column = (item.key, place)
            if isinstance(arg, Wild):
                continue
            name = arg.name if isinstance(arg, Var) else ""
            if not name or grouped or times[name] > 1 or out[name] > 1:
                read.add(column)
            elif name in goal:
                passed.setdefault((head.key, goal[name]), []).append(column)
            elif out[name]:  # within an expression of the head
                read.add(column)


def _narrow(decl: Decl) -> Iterable[int]:
    """Columns whose declared type is more than a kind of values."""
    for bounds in decl.bounds:
        for place, bound in enumerate(bounds):
            if bound.kind not in PLAIN or bound.args or decl.temporal:
                yield place
