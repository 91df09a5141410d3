"""What a policy may say but hardly means: single variables, products, unbounded and nonlinear recursion.

`linear` is the one rewriting: a plain transitive closure `p(X,Z) :- p(X,Y), p(Y,Z)` becomes linear, the given
rows and the other rules of p standing for its first half. Rows are the same; a chain of n costs n^2 and not
n^3.
"""

from __future__ import annotations

from collections import Counter

from spak.datalog.intervals import is_temporal
from spak.datalog.plan import Body, Item, Key, names_of, variables
from spak.datalog.strata import edges, tarjan
from spak.datalog.syntax import Apply, Atom, Clause, Compare, Finding, Literal_, Place, Var

GIVEN = "{}__given"
"""The predicate that holds what a rewritten closure starts from."""


def monotone(bodies: list[Body]) -> list[Finding]:
    """Errors where one more `forbidden` could permit something, or one more `permitted` forbid something."""
    found = []
    leads = {goal: _leads(bodies, goal) for goal in ("permitted", "forbidden")}
    for body in bodies:
        goal = body.head.pred
        if goal not in leads:
            continue
        other = "forbidden" if goal == "permitted" else "permitted"
        for sign in sorted(_signs(body, leads[other])):
            if goal == "forbidden" or sign > 0:
                message = f"{goal} rests on {other}" + ("" if goal == "forbidden" else " and grows with it")
                hint = "`forbidden` rests on no permission, and `permitted` on `!forbidden(..)` alone"
                found.append(Finding("policy.monotone", "error", message, body.clause.place, hint))
                break
    return found


def _leads(bodies: list[Body], goal: str) -> dict[Key, set[int]]:
    """Each predicate that rests on the goal, or is it: 1 where it grows with it, -1 where it shrinks."""
    readers: dict[Key, list[tuple[Body, set[int]]]] = {}
    for body in bodies:
        for item in body.items:
            if item.kind in ("row", "neg"):
                readers.setdefault(item.key, []).append((body, _ways(body, item)))
    found: dict[Key, set[int]] = {}
    keys = {body.head.key for body in bodies} | readers.keys()
    waiting = [(key, 1) for key in keys if key[0] == goal]
    while waiting:
        key, sign = waiting.pop()
        if sign not in found.setdefault(key, set()):
            found[key].add(sign)
            waiting += [(body.head.key, sign * way) for body, ways in readers.get(key, ()) for way in ways]
    return found


def _signs(body: Body, leads: dict[Key, set[int]]) -> set[int]:
    """How a rule rests on the goal that these lead to."""
    items = [item for item in body.items if item.kind in ("row", "neg")]
    return {sign * way for item in items for sign in leads.get(item.key, ()) for way in _ways(body, item)}


def _ways(body: Body, item: Item) -> set[int]:
    """A group both grows and shrinks with what it groups."""
    if body.clause.transform is not None:
        return {1, -1}
    return {-1 if item.kind == "neg" else 1}


def lint(bodies: list[Body]) -> list[Finding]:
    """Warnings, and the one error of a counter that nothing bounds."""
    together: dict[Key, set[Key]] = {}
    for group in tarjan(edges(bodies), ()):
        for key in group:
            together[key] = set(group)
    below = edges(bodies)
    findings: list[Finding] = []
    for body in bodies:
        own = together.get(body.head.key, set())
        if len(own) == 1 and body.head.key not in below.get(body.head.key, ()):
            own = set()
        found = (_single(body), _counter(body, own), _product(body), _nonlinear(body, own))
        findings += [item for item in found if item is not None]
    return findings


def _single(body: Body) -> Finding | None:
    if body.clause.transform is not None and body.clause.transform.keys is not None:
        return None  # a group counts what its variables tell apart, so that each of them matters
    uses: Counter[str] = Counter()
    terms = [*body.head.args, *(arg for item in body.items for arg in item.args)]
    if body.clause.transform is not None:
        terms += [*(body.clause.transform.keys or ()), *(let.term for let in body.clause.transform.lets)]
        terms += [Var(let.name) for let in body.clause.transform.lets]
    for term in terms:
        uses.update(variables(term))
    once = [name for name in body.variables if uses[name] == 1 and not name.startswith("_")]
    if not once:
        return None
    names = ", ".join(once)
    hint = "write `_` for it, or join it with something: a slip of the pen looks just like this"
    return Finding("policy.singleton", "warning", f"{names} occurs only once", body.clause.place, hint, "_")


def _counter(body: Body, own: set[Key]) -> Finding | None:
    """A head value computed from a value of the same recursion."""
    made = {
        name
        for item in body.items
        if item.kind == "row" and item.key in own
        for arg in item.args
        for name in variables(arg)
    }
    if not made:
        return None
    computed: set[str] = set()
    for _ in body.items:
        for item in body.items:
            if item.kind == "compare" and item.name in ("=", "=="):
                for one, two in (item.args, item.args[::-1]):
                    if isinstance(one, Var) and one.name not in made and _rests(two, made, computed):
                        computed.add(one.name)
    transform = body.clause.transform
    for let in transform.lets if transform is not None and transform.keys is None else ():
        if _rests(let.term, made, computed):
            computed.add(let.name)
    for arg in body.head.args:
        if (isinstance(arg, Apply) and set(variables(arg)) & (made | computed)) or (
            isinstance(arg, Var) and arg.name in computed
        ):
            break
    else:
        return None
    inside = made | computed
    bounded = any(
        item.kind == "compare" and item.name in ("<", "<=", ">", ">=") and names_of(item) & inside
        for item in body.items
    )
    message = f"{body.head.pred} computes a new value from its own"
    if bounded:
        return Finding(
            "policy.counter", "warning", message, body.clause.place, "see that the comparison ends it"
        )
    hint = "nothing bounds it: compare the value with a limit"
    return Finding("policy.counter", "error", message, body.clause.place, hint)


def _rests(term: object, made: set[str], computed: set[str]) -> bool:
    if isinstance(term, Apply):
        return bool(set(variables(term)) & (made | computed))
    return isinstance(term, Var) and term.name in computed


def _product(body: Body) -> Finding | None:
    """Literals that share no variable, directly or through others; times are joined by comparing them."""
    timed = any(item.kind == "row" and is_temporal(item.name) for item in body.items)
    groups: list[tuple[set[str], list[Item]]] = []
    for item in body.items:
        joins = item.kind in ("row", "find") or (
            item.kind == "compare" and (timed or item.name in ("=", "=="))
        )
        names = names_of(item)
        if not joins or not names:
            continue
        rows = [item] if item.kind == "row" else []
        rest = []
        for known, members in groups:
            if known & names:
                names |= known
                rows = members + rows
            else:
                rest.append((known, members))
        groups = [*rest, (names, rows)]
    apart = [members[0] for _, members in groups if members]
    if len(apart) < 2:
        return None
    pair = f"{apart[0].name} and {apart[1].name}"
    message = f"{pair} share no variable: every row of one meets every row of the other"
    return Finding("policy.product", "warning", message, body.clause.place, "join them, or split the rule")


def _nonlinear(body: Body, own: set[Key]) -> Finding | None:
    if sum(item.kind == "row" and item.key in own for item in body.items) < 2:
        return None
    message = f"{body.head.pred} joins itself with itself"
    if is_closure(body.clause):
        from spak.datalog.text.format import format_clause

        fix = format_clause(_linear(body.clause))
        hint = "it is run in its linear form"
        return Finding("policy.nonlinear", "warning", message, body.clause.place, hint, fix)
    hint = "one recursive literal per rule is enough for a closure, and far cheaper"
    return Finding("policy.nonlinear", "warning", message, body.clause.place, hint)


def is_closure(clause: Clause) -> bool:
    """`p(X,Z) :- p(X,Y), p(Y,Z)`, in either order of the two."""
    if len(clause.body) != 2 or clause.transform is not None or len(clause.head.args) != 2:
        return False
    atoms = []
    for part in clause.body:
        if isinstance(part, Compare) or part.negated or part.atom.key != clause.head.key:
            return False
        atoms.append(part.atom)
    if not all(isinstance(arg, Var) for atom in (clause.head, *atoms) for arg in atom.args):
        return False
    (x, z), (a, b), (c, d) = clause.head.args, atoms[0].args, atoms[1].args
    return len({x, z, b if a == x else a}) == 3 and (
        (a, b, c, d) == (x, b, b, z) or (c, d, a, b) == (x, d, d, z)
    )


def _linear(clause: Clause) -> Clause:
    first, second = clause.body
    assert isinstance(first, Literal_)
    assert isinstance(second, Literal_)
    if first.atom.args[0] != clause.head.args[0]:
        first, second = second, first
    given = Literal_(Atom(GIVEN.format(first.atom.pred), first.atom.args, first.atom.place))
    return Clause(clause.head, (given, second), None, clause.place)


def linear(clauses: list[Clause]) -> tuple[list[Clause], frozenset[Key]]:
    """The clauses with plain closures made linear, and the predicates whose given rows go to p__given too.

    Only where no other rule of p rests on p: there the two say the same.
    """
    closures = {clause.head.key for clause in clauses if is_closure(clause)}
    names = {clause.head.pred for clause in clauses}
    for clause in clauses:
        uses = {part.atom.key for part in clause.body if isinstance(part, Literal_)}
        if clause.head.key in closures and not is_closure(clause) and clause.head.key in uses:
            closures.discard(clause.head.key)
    closures = {key for key in closures if GIVEN.format(key[0]) not in names}
    groups = {key: set(group) for group in tarjan(_uses(clauses), ()) for key in group}
    closures = {key for key in closures if len(groups[key]) == 1}
    found: list[Clause] = []
    for clause in clauses:
        key = clause.head.key
        if key not in closures:
            found.append(clause)
        elif is_closure(clause):
            found.append(_linear(clause))
        elif clause.body:
            head = Atom(GIVEN.format(key[0]), clause.head.args, clause.head.place)
            found.append(Clause(head, clause.body, clause.transform, clause.place))
        else:
            found.append(clause)
    first: dict[Key, Place] = {}
    for clause in clauses:
        first.setdefault(clause.head.key, clause.place)
    for name, arity in sorted(closures):
        args = tuple(Var(f"X{place}") for place in range(arity))
        place = first[name, arity]
        found.append(
            Clause(Atom(name, args, place), (Literal_(Atom(GIVEN.format(name), args, place)),), None, place)
        )
    return found, frozenset(closures)


def _uses(clauses: list[Clause]) -> dict[Key, set[Key]]:
    found: dict[Key, set[Key]] = {}
    for clause in clauses:
        below = found.setdefault(clause.head.key, set())
        below.update(part.atom.key for part in clause.body if isinstance(part, Literal_))
    return found
