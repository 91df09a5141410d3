"""Types of columns: which kinds a rule's variables can have, and whether a row fits what was declared.

A declared column is a promise: what breaks it is an error. A column without a declaration has the kinds that
the policy's own facts and rules put there; a constant of another kind is a warning, since facts may yet come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from spak.datalog.functions import FUNCTIONS, REDUCERS
from spak.datalog.plan import Body, Key
from spak.datalog.syntax import (
    Apply,
    Atom,
    Bound,
    Clause,
    Const,
    Decl,
    Finding,
    Literal_,
    Place,
    Term,
    Var,
    Wild,
)
from spak.datalog.values import KINDS, Inner, Row, kind_of, show, show_atom

ALL = frozenset(KINDS)
NUMERIC = frozenset({"number", "float64"})
Kinds = frozenset[str]
Columns = dict[Key, list[Kinds]]


def kinds_of(bound: Bound) -> Kinds:
    """The kinds that values of a type can have."""
    if bound.kind == "any":
        return ALL
    if bound.kind == "prefix":
        return frozenset({"name"})
    if bound.kind == "one":
        return frozenset({kind_of(bound.value)})
    if bound.kind == "union":
        return frozenset(kind for item in bound.args for kind in kinds_of(item))
    return frozenset({bound.kind})


def fits(value: Inner, bound: Bound) -> bool:
    """True when the value is of the type."""
    match bound.kind:
        case "any":
            return True
        case "one":
            return bool(value == bound.value)
        case "prefix":
            return type(value) is str and value.startswith(bound.value + "/")
        case "union":
            return any(fits(value, item) for item in bound.args)
    if kind_of(value) != bound.kind:
        return False
    if not bound.args:
        return True
    if bound.kind == "list":
        return all(fits(item, bound.args[0]) for item in value[1:])
    if bound.kind == "pair":
        return all(fits(item, part) for item, part in zip(value[1:], bound.args, strict=False))
    if bound.kind == "map" and len(bound.args) == 2:
        return all(fits(key, bound.args[0]) and fits(item, bound.args[1]) for key, item in value[1:])
    return True


def misfit(row: Row, decl: Decl) -> str:
    """What of a row breaks its declaration, or nothing."""
    if not decl.bounds or any(all(map(fits, row, bounds)) for bounds in decl.bounds):
        if decl.temporal and row[-2] > row[-1]:
            return f"{show_atom(decl.atom.pred, row)[:80]} ends before it begins"
        return ""
    for place, value in enumerate(row):
        if not any(fits(value, bounds[place]) for bounds in decl.bounds):
            column = f"column {place + 1} ({decl.names[place]}) of {decl.atom.pred}"
            return f"{show(value)[:80]} is no value of {column}"
    return f"the row fits no alternative of {decl.atom.pred}"


def included(decls: Iterable[Decl]) -> list[Clause]:
    """A rule for each inclusion that derives the rows which break it."""
    found = []
    for decl in decls:
        for number, atom in enumerate(decl.inclusions):
            columns = tuple(Var(f"C{place}") for place in range(len(decl.names)))
            names = dict(zip(decl.names, columns, strict=True))
            args = tuple(names.get(arg.name, Wild()) if isinstance(arg, Var) else arg for arg in atom.args)
            head = Atom(f"?!{number}{decl.atom.pred}", columns, atom.place)
            row = Literal_(Atom(decl.atom.pred, columns, atom.place))
            found.append(
                Clause(head, (row, Literal_(Atom(atom.pred, args, atom.place), True)), None, atom.place)
            )
    return found


def guarded(bodies: Iterable[Body], decls: Mapping[Key, Decl]) -> dict[Key, Decl]:
    """Declared predicates of which a rule could derive a row that breaks the bounds, as far as kinds tell."""
    declared = declared_columns(decls)
    found: dict[Key, Decl] = {}
    for body in bodies:
        decl = decls.get(body.head.key)
        if decl is None or not decl.bounds or body.head.key in found:
            continue
        kinds = Kinding(body, declared, "warning")
        kinds.settle()
        columns = zip(body.head.args, decl.bounds[0], strict=True)
        plain = all(not bound.args and bound.kind in (*KINDS, "any") for bound in decl.bounds[0])
        if (
            len(decl.bounds) > 1
            or decl.temporal
            or not plain
            or not all(kinds.term(arg) <= kinds_of(bound) for arg, bound in columns)
        ):
            found[body.head.key] = decl
    return found


def check_types(bodies: list[Body], decls: Mapping[Key, Decl]) -> list[Finding]:
    """Findings about constants and variables of wrong kinds."""
    declared = declared_columns(decls)
    findings: dict[tuple[str, int, int, str], Finding] = {}

    def note(found: Finding) -> None:
        findings.setdefault((found.place.file, found.place.start, found.place.end, found.message), found)

    for body in bodies:
        kinds = Kinding(body, declared, "error")
        kinds.report(note)
        if not kinds.findings:
            _facts(body, decls, note)
            _constants(body, decls, note)
    if any(item.severity == "error" for item in findings.values()):
        return list(findings.values())
    inferred = infer(bodies, declared)
    for body in bodies:
        Kinding(body, inferred, "warning").report(note)
    return list(findings.values())


def declared_columns(decls: Mapping[Key, Decl]) -> Columns:
    """The kinds that declarations permit, for each column of each declared predicate."""
    return {
        key: [
            frozenset(kind for bounds in decl.bounds for kind in kinds_of(bounds[place]))
            for place in range(key[1])
        ]
        for key, decl in decls.items()
        if decl.bounds
    }


def infer(bodies: list[Body], declared: Columns) -> Columns:
    """Kinds of the columns that facts and heads fill; a predicate without either stays open."""
    columns: Columns = {}
    for body in bodies:
        if body.items:
            columns.setdefault(body.head.key, [frozenset()] * len(body.head.args))
    for body in bodies:
        if not body.items:
            columns.setdefault(body.head.key, [frozenset()] * len(body.head.args))
    columns |= declared
    for _ in range(len(KINDS) + 2):
        changed = False
        for body in bodies:
            if body.head.key in declared:
                continue
            kinds = Kinding(body, columns, "warning")
            kinds.settle()
            mine = columns[body.head.key]
            merged = [old | kinds.term(arg) for old, arg in zip(mine, body.head.args, strict=True)]
            changed |= merged != mine
            columns[body.head.key] = merged
        if not changed:
            return columns
    return {key: found if key in declared else [ALL] * key[1] for key, found in columns.items()}


def _facts(body: Body, decls: Mapping[Key, Decl], note: Callable[[Finding], None]) -> None:
    """A fact of the text against bounds finer than kinds."""
    decl = decls.get(body.head.key)
    values = [arg.value for arg in body.head.args if isinstance(arg, Const)]
    if body.items or decl is None or len(values) != len(body.head.args):
        return
    wrong = misfit(tuple(values), decl)
    if wrong:
        note(Finding("policy.constant", "error", wrong, body.head.place))


def _constants(body: Body, decls: Mapping[Key, Decl], note: Callable[[Finding], None]) -> None:
    """A constant of a body of the right kind that its column still never holds, such as another prefix."""
    for item in body.items:
        decl = decls.get(item.key) if item.kind in ("row", "neg") else None
        for at, arg in enumerate(item.args) if decl is not None and decl.bounds else ():
            assert decl is not None
            if isinstance(arg, Const) and not any(fits(arg.value, bounds[at]) for bounds in decl.bounds):
                message = (
                    f"{show(arg.value)[:80]} is no value of column {at + 1} ({decl.names[at]}) of {item.name}"
                )
                note(Finding("policy.constant", "error", message, arg.place, "it would never match"))


class Kinding:
    """The kinds of one rule's variables under given columns."""

    def __init__(self, body: Body, columns: Columns, severity: str) -> None:
        self.body, self.columns, self.severity = body, columns, severity
        self.known: dict[str, Kinds] = {}
        self.findings: list[Finding] = []

    def report(self, note: Callable[[Finding], None]) -> None:
        """Report every finding of the rule."""
        self.settle()
        for found in self.findings:
            note(found)

    def settle(self) -> None:
        """Narrow the kinds of all variables by the items of the body."""
        for item in self.body.items:
            if item.kind == "row" and item.key in self.columns:
                self.row(item.args, self.columns[item.key], item.name, self._place(item.part))
        for item in self.body.items:
            if item.kind == "neg" and item.key in self.columns:
                self.row(item.args, self.columns[item.key], item.name, self._place(item.part), False)
            elif item.kind == "compare":
                self.compare(item.name, item.args[0], item.args[1], self._place(item.part))
            elif item.name.startswith(":string:"):
                for arg in item.args:
                    self.narrow(arg, frozenset({"string"}), item.name, self._place(item.part))
        if self.body.clause.transform is not None:
            for let in self.body.clause.transform.lets:
                self.known[let.name] = self.term(let.term)
        head = self.columns.get(self.body.head.key)
        if head is not None and self.severity == "error":
            self.row(self.body.head.args, head, self.body.head.pred, self.body.head.place)

    def row(
        self, args: tuple[Term, ...], columns: list[Kinds], name: str, place: Place, bind: bool = True
    ) -> None:
        """Narrow the arguments of a row to the kinds of its columns."""
        for at, (arg, kinds) in enumerate(zip(args, columns, strict=True)):
            if isinstance(arg, Const):
                if kinds and kind_of(arg.value) not in kinds:
                    self.constant(arg, kinds, name, at)
            elif kinds and (bind or isinstance(arg, Apply | Var)):
                self.narrow(arg, kinds, f"column {at + 1} of {name}", place)

    def constant(self, arg: Const, kinds: Kinds, name: str, at: int) -> None:
        """Report a constant whose kind its column does not hold, with a fix where a spelling helps."""
        raw = arg.value[1:] if isinstance(arg.value, str) else ""
        fix = ""
        if kinds == {"name"} and raw.replace("_", "a").isalnum():
            fix = "/" + raw.lower()
        elif kinds == {"string"} and kind_of(arg.value) == "name":
            fix = f'"{raw}"'
        shown = f"{show(arg.value)[:80]} is a {kind_of(arg.value)}"
        message = f"{shown}; column {at + 1} of {name} holds {_list(kinds)}"
        self.note("policy.constant", message, arg.place, "it would never match", fix)

    def narrow(self, term: Term, kinds: Kinds, what: str, place: Place) -> None:
        """Narrow a term to some kinds; a term that can be none of them is reported."""
        before = self.term(term)
        if not before & kinds and before:
            shown = term.name if isinstance(term, Var) else "this"
            place = place if place.line else self.body.head.place
            message = f"{shown} is a {_list(before)}, and {what} holds {_list(kinds)}"
            self.note("policy.types", message, place, "values of different types are never equal")
        elif isinstance(term, Var):
            self.known[term.name] = before & kinds

    def compare(self, op: str, left: Term, right: Term, place: Place) -> None:
        """Narrow both sides of a comparison."""
        if op in ("<", "<=", ">", ">="):
            for side in (left, right):
                self.narrow(side, NUMERIC, f"`{op}`", place)
            return
        one, two = self.term(left), self.term(right)
        if one & NUMERIC:
            one |= NUMERIC
        if two & NUMERIC:
            two |= NUMERIC
        if one and two and not one & two:
            message = f"a {_list(self.term(left))} is compared with a {_list(self.term(right))}"
            fix = ""
            if isinstance(right, Const) and "name" in self.term(left) and kind_of(right.value) == "string":
                fix = "/" + right.value[1:].lower()
            self.note(
                "policy.constant" if fix else "policy.types", message, place, "they are never equal", fix
            )
        elif op != "!=":
            for side, other in ((left, two), (right, one)):
                if isinstance(side, Var):
                    self.known[side.name] = self.term(side) & other or self.term(side)

    def term(self, term: Term) -> Kinds:
        """The kinds that a term can have so far."""
        if isinstance(term, Const):
            return frozenset({kind_of(term.value)})
        if isinstance(term, Var):
            return self.known.get(term.name, ALL)
        if isinstance(term, Apply):
            gives = (FUNCTIONS.get(term.function) or REDUCERS[term.function]).gives
            if gives == "numeric":
                return NUMERIC
            return frozenset({gives}) if gives else ALL
        return ALL

    def note(self, code: str, message: str, place: Place, hint: str, fix: str = "") -> None:
        """Add a finding of the rule's severity."""
        severity = "error" if self.severity == "error" else "warning"
        self.findings.append(Finding(code, severity, message, place, hint, fix))  # type: ignore[arg-type]

    def _place(self, part: object) -> Place:
        if isinstance(part, Literal_):
            return part.atom.place
        return getattr(part, "place", self.body.head.place)


def _list(kinds: Kinds) -> str:
    return " or ".join(kind for kind in KINDS if kind in kinds)
