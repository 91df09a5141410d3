"""What is wrong with a policy before anything is evaluated: findings with places, hints and fixes.

Takes the parsed files; gives findings. Structure comes first (arity, names, built-ins), then safety, strata
and types; the lints at the end never stop a policy. A rule that has an error of structure is left out of what
follows, so that one slip gives one finding.
"""

from __future__ import annotations

from collections import Counter

from spak.datalog.externals import arrange, check_external, externals_of
from spak.datalog.folds import check_folds, folds_of
from spak.datalog.functions import FUNCTIONS, GENERATORS, REDUCERS, TESTS, Function
from spak.datalog.intervals import MARK, is_temporal, named
from spak.datalog.lint import lint, monotone
from spak.datalog.plan import MAX_LOOPS, MAX_PARTS, Body, Key, names_of, prepare, sequence, variables
from spak.datalog.strata import edges, path, tarjan
from spak.datalog.syntax import (
    Apply,
    Atom,
    Clause,
    Compare,
    Decl,
    Finding,
    Literal_,
    Place,
    Severity,
    Source,
    Term,
    Var,
    Wild,
)
from spak.datalog.text.format import show_atom_, show_term
from spak.datalog.types import check_types

MAX_NEAR = 50
"""How many names that nothing declares get the hint of a name like them."""


def check(sources: tuple[Source, ...]) -> list[Finding]:
    """All findings but those of the parser."""
    check_ = _Check(sources)
    check_.run()
    return check_.findings


class _Check:
    def __init__(self, sources: tuple[Source, ...]) -> None:
        self.clauses = [clause for source in sources for clause in source.clauses]
        self.decls: dict[Key, Decl] = {}
        self.findings: list[Finding] = []
        self.all_decls = [decl for source in sources for decl in source.decls]
        self.names = sorted(
            {item.atom.pred for item in self.all_decls} | {item.head.pred for item in self.clauses}
        )
        self.looked = 0
        self.temporal = {decl.atom.pred for decl in self.all_decls if decl.temporal}

    def error(self, code: str, message: str, place: Place, hint: str = "", fix: str = "") -> None:
        self.findings.append(Finding(code, "error", message, place, hint, fix))

    def run(self) -> None:
        for decl in self.all_decls:
            if decl.atom.key in self.decls:
                first = self.decls[decl.atom.key].place
                self.error(
                    "policy.declared", f"{_name(decl.atom.key)} is declared twice", decl.place, f"see {first}"
                )
            self.decls.setdefault(decl.atom.key, decl)
            self.findings += check_external(decl)
        self.findings += check_folds(self.all_decls, self.clauses)
        sound = [clause for clause in self.clauses if self.structure(clause) and self.timed(clause)]
        self.arities(sound)
        self.inclusions()
        bodies = [prepare(clause) for clause in sound]
        safe = [body for body in bodies if self.safety(body)]
        self.external(safe)
        self.strata(safe)
        self.findings += check_types(safe, self.decls)
        self.findings += lint(safe)
        self.findings += monotone(safe)

    # ---- structure ------------------------------------------------------------------------------------

    def structure(self, clause: Clause) -> bool:
        before = len(self.findings)
        for arg in clause.head.args:
            self.term(arg)
            if isinstance(arg, Wild):
                self.error(
                    "policy.unsafe", "a head has no wildcard", arg.place, "name the variable and bind it"
                )
        for part in clause.body:
            self.part(part)
        if clause.transform is not None:
            for let in clause.transform.lets:
                self.let(let.term, clause.transform.keys is not None)
        return len(self.findings) == before

    def part(self, part: Literal_ | Compare) -> None:
        if isinstance(part, Compare):
            for side in (part.left, part.right):
                self.term(side)
                if isinstance(side, Wild):
                    self.error("policy.unsafe", "a wildcard has no value to compare", side.place)
            return
        atom = part.atom
        if atom.pred.startswith(":"):
            self.builtin(atom)
        for arg in atom.args:
            self.term(arg)

    def builtin(self, atom: Atom) -> None:
        wanted = TESTS[atom.pred][0] if atom.pred in TESTS else None
        if atom.pred in GENERATORS:
            wanted = GENERATORS[atom.pred].arity
        if wanted is None:
            known = ", ".join(sorted({*TESTS, *GENERATORS}))
            self.error("policy.builtin", f"there is no built-in {atom.pred}", atom.place, f"known: {known}")
        elif wanted != len(atom.args):
            self.error(
                "policy.builtin", f"{atom.pred} takes {wanted} arguments, not {len(atom.args)}", atom.place
            )
        elif atom.pred in TESTS and any(isinstance(arg, Wild) for arg in atom.args):
            self.error("policy.unsafe", f"{atom.pred} cannot test a wildcard", atom.place)
        elif atom.pred in GENERATORS and any(
            isinstance(atom.args[place], Wild) for place in GENERATORS[atom.pred].inputs
        ):
            self.error("policy.unsafe", f"{atom.pred} needs its input", atom.place)

    def term(self, term: Term, table: dict[str, Function] = FUNCTIONS) -> None:
        if not isinstance(term, Apply):
            return
        found = table.get(term.function)
        if found is None:
            known = ", ".join(sorted(table))
            reducer = term.function in REDUCERS
            hint = "reducers belong after `|> do fn:group_by(..), let X =`" if reducer else f"known: {known}"
            self.error("policy.builtin", f"there is no function {term.function} here", term.place, hint)
        elif not found.least <= len(term.args) <= (found.most if found.most >= 0 else len(term.args)):
            wanted = f"{found.least}" if found.most == found.least else f"{found.least} to {found.most}"
            wanted = f"at least {found.least}" if found.most < 0 else wanted
            message = f"{term.function} takes {wanted} arguments, not {len(term.args)}"
            self.error("policy.builtin", message, term.place)
        elif term.function in ("fn:map", "fn:struct") and len(term.args) % 2:
            self.error("policy.builtin", f"{term.function} takes keys and values in turn", term.place)
        for arg in term.args:
            self.term(arg)
            if isinstance(arg, Wild):
                self.error("policy.unsafe", "a wildcard has no value to compute with", arg.place)

    def let(self, term: Term, grouped: bool) -> None:
        if grouped and isinstance(term, Apply) and term.function in REDUCERS:
            self.term(term, REDUCERS)
            return
        self.term(term)

    def timed(self, clause: Clause) -> bool:
        """What has an interval is declared temporal, and what is declared so has one everywhere."""
        before = len(self.findings)
        atoms = [clause.head, *(part.atom for part in clause.body if isinstance(part, Literal_))]
        for atom in atoms:
            name = atom.pred.removesuffix(MARK)
            if is_temporal(atom.pred) and name + MARK not in self.temporal:
                columns = ", ".join(f"A{place + 1}" for place in range(len(atom.args) - 2))
                fix = f"Decl {name}({columns}) temporal."
                self.error("policy.undeclared", f"{name} is not declared temporal", atom.place, "", fix)
            elif not is_temporal(atom.pred) and name + MARK in self.temporal:
                fix = show_atom_(Atom(name + MARK, (*atom.args, Wild(), Wild())))
                self.error(
                    "policy.arity", f"{name} is temporal: its interval is missing", atom.place, "", fix
                )
        return len(self.findings) == before

    # ---- names and arities ----------------------------------------------------------------------------

    def arities(self, clauses: list[Clause]) -> None:
        known: dict[str, set[int]] = {}
        for name, arity in self.decls:
            known.setdefault(name, set()).add(arity)
        declared = {name: set(found) for name, found in known.items()}
        for clause in clauses:
            name, arity = clause.head.key
            if name in declared:
                if arity not in declared[name]:
                    self.wrong_arity(clause.head, declared[name])
            elif arity not in known.setdefault(name, {arity}):
                self.wrong_arity(clause.head, known[name])
        reported: set[str] = set()
        for clause in clauses:
            for part in clause.body:
                if isinstance(part, Compare) or part.atom.pred.startswith(":"):
                    continue
                name, arity = part.atom.key
                if name not in known:
                    self.undeclared(part)
                    known[name] = {arity}
                    reported.add(name)
                elif arity not in known[name]:
                    self.wrong_arity(part.atom, known[name])
                elif name in reported and part.negated:
                    self.undeclared(part)

    def inclusions(self) -> None:
        """What a declaration's inclusions name is there, has so many columns, and is not external."""
        external = externals_of(self.all_decls)
        known = {*self.decls, *(clause.head.key for clause in self.clauses)}
        for decl in self.all_decls:
            for atom in decl.inclusions:
                if atom.key in external:
                    message = f"{_name(atom.key)} is external, and nothing asks for it here"
                    self.error("policy.unsupported", message, atom.place)
                elif atom.key not in known:
                    message = f"nothing declares or derives {_name(atom.key)}: no row could be included"
                    self.error("policy.undeclared", message, atom.place, "declare it, or state or derive it")

    def undeclared(self, part: Literal_) -> None:
        name, arity = part.atom.key
        near = self.near(name)
        columns = ", ".join(f"A{place + 1}" for place in range(arity))
        hint = f"did you mean {near}?" if near else "declare it, or state or derive it"
        message = f"nothing declares or derives {name}/{arity}"
        if part.negated:
            message += ", so that its negation would always hold"
        severity: Severity = "error" if part.negated else "warning"
        fix = f"Decl {name}({columns})."
        self.findings.append(Finding("policy.undeclared", severity, message, part.atom.place, hint, fix))

    def near(self, word: str) -> str:
        """A known name that is hardly another; looked for a few times only: each looks at every name."""
        self.looked += 1
        return _near(word, self.names) if self.looked <= MAX_NEAR else ""

    def wrong_arity(self, atom: Atom, known: set[int]) -> None:
        hidden = 2 if is_temporal(atom.pred) else 0
        wanted = min(known, key=lambda arity: (abs(arity - len(atom.args)), arity))
        fix = ""
        if wanted > len(atom.args):
            shown = [show_term(arg) for arg in atom.args] + ["_"] * (wanted - len(atom.args))
            fix = f"{atom.pred}({', '.join(shown)})" if not hidden else ""
        name = atom.pred.removesuffix(MARK)
        message = f"{name} has {wanted - hidden} columns, not {len(atom.args) - hidden}"
        self.error(
            "policy.arity", message, atom.place, "the same name with two arities needs a Decl of each", fix
        )

    # ---- safety ---------------------------------------------------------------------------------------

    def safety(self, body: Body) -> bool:
        before = len(self.findings)
        if len(body.items) > MAX_PARTS:  # said before they are put in order, which takes the square of them
            message = f"more than {MAX_PARTS} literals and comparisons in one body"
            self.error("policy.unsupported", message, body.head.place, "split the rule")
            return False
        done, left = sequence(body.items, set())
        bound = {name for item in done if item.kind != "neg" for name in names_of(item)}
        for item in left:
            missing = [name for name in _in_order(item.args) if name not in bound]
            place = item.part.place if isinstance(item.part, Compare) else body.head.place
            if isinstance(item.part, Literal_):
                place = item.part.atom.place
            what = {"neg": "under a negation", "compare": "in a comparison"}.get(item.kind, f"in {item.name}")
            name = missing[0] if missing else "?"
            self.error(
                "policy.unsafe", f"nothing binds {name} {what}", place, "a positive literal has to bind it"
            )
        transform = body.clause.transform
        if transform is not None:
            bound = self.transform(body, bound)
        elif len([item for item in body.items if item.kind in ("row", "find")]) > MAX_LOOPS:
            message = f"more than {MAX_LOOPS} literals in one body"
            self.error("policy.unsupported", message, body.head.place, "split the rule")
        for arg in body.head.args:
            for name in variables(arg):
                if name not in bound:
                    self.unbound_head(body, name, bound)
                    break
        return len(self.findings) == before

    def transform(self, body: Body, bound: set[str]) -> set[str]:
        transform = body.clause.transform
        assert transform is not None
        known = set(bound)
        if transform.keys is not None:
            for key in transform.keys:
                if key.name not in bound:
                    self.error("policy.unsafe", f"nothing binds {key.name} to group by", key.place)
            known = {key.name for key in transform.keys}
        for let in transform.lets:
            reducer = (
                transform.keys is not None and isinstance(let.term, Apply) and let.term.function in REDUCERS
            )
            for name in variables(let.term):
                if name not in (bound | known if reducer else known):
                    self.error(
                        "policy.unsafe", f"nothing binds {name} here", let.place, "group by it, or reduce it"
                    )
            if let.name in known or let.name in bound:
                self.error("policy.unsafe", f"{let.name} is bound already", let.place, "take another name")
            known.add(let.name)
        return known

    def unbound_head(self, body: Body, name: str, bound: set[str]) -> None:
        uses = Counter(found for item in body.items for arg in item.args for found in variables(arg))
        head = {found for arg in body.head.args for found in variables(arg)}
        free = [found for found in body.variables if found in bound and found not in head]
        fix = ""
        if free:
            best = max(free, key=lambda found: (uses[found], -body.variables.index(found)))
            changed = tuple(Var(best) if arg == Var(name) else arg for arg in body.head.args)
            fix = show_atom_(Atom(body.head.pred, changed))
        hint = "a variable of the head has to occur in a positive literal of the body"
        self.error("policy.unsafe", f"nothing binds {name} of the head", body.head.place, hint, fix)

    def external(self, bodies: list[Body]) -> None:
        """Nothing states or derives what the world answers, and every question is asked of what is bound."""
        externals, folds = externals_of(self.all_decls), folds_of(self.all_decls)
        for body in bodies if externals else ():
            if body.head.key in externals and body.head.key not in folds:
                message = f"{_name(body.head.key)} is external: only its answers hold"
                self.error("policy.external", message, body.clause.place, "take another name")
            part = arrange(body.clause, externals)[1]
            if isinstance(part, Literal_):
                modes = " or ".join(
                    ", ".join(f"column {place + 1}" for place in mode) or "nothing"
                    for mode in externals[part.atom.key]
                )
                hint = "a positive literal of another predicate has to bind it"
                self.error("policy.mode", f"{part.atom.pred} needs {modes} bound", part.atom.place, hint)

    # ---- strata ---------------------------------------------------------------------------------------

    def strata(self, bodies: list[Body]) -> None:
        below = edges(bodies)
        heading: dict[Key, list[int]] = {}
        for number, body in enumerate(bodies):
            heading.setdefault(body.head.key, []).append(number)
        for group in tarjan(below, ()):
            within = set(group)
            reported = False
            for number in sorted(at for key in group for at in heading.get(key, ())):
                body = bodies[number]
                grouped = body.clause.transform is not None and body.clause.transform.keys is not None
                for item in body.items:
                    if item.key not in within or item.kind not in ("row", "neg"):
                        continue
                    if (item.kind == "neg" or grouped) and not reported:
                        reported = True
                        self.cycle(body, item.key, path(below, item.key, body.head.key, within), grouped)
                        break

    def cycle(self, body: Body, to: Key, way: list[Key], grouped: bool) -> None:
        steps = " -> ".join([_name(body.head.key), *(_name(key) for key in way)])
        through = "a grouping" if grouped else "a negation"
        message = f"{_name(body.head.key)} rests on itself through {through} of {_name(to)}: {steps}"
        self.error(
            "policy.cycle", message, body.clause.place, "break the cycle: nothing says which comes first"
        )


def _name(key: Key) -> str:
    return named(*key)


def _in_order(args: tuple[Term, ...]) -> list[str]:
    return [name for arg in args for name in variables(arg)]


def _near(word: str, names: list[str]) -> str:
    """A name that one slip, or an s too many, turns into the word."""
    for name in names:
        if name == word or abs(len(name) - len(word)) > 1:
            continue
        start = 0
        while start < min(len(name), len(word)) and name[start] == word[start]:
            start += 1
        if (
            name[start:] == word[start + 1 :]
            or name[start + 1 :] == word[start:]
            or (name[start + 1 :] == word[start + 1 :])
        ):
            return name
    return ""
