"""A policy loaded and a session over facts: what callers use.

`load` gives a Policy or raises with every finding; a Policy never changes. A Session holds facts and what
follows from them, and is kept up to date by `update`. An update either happens as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from spak import canon
from spak.datalog.errors import PolicyError, PolicyLimit
from spak.datalog.evaluate import Evaluation, Limits, Rules
from spak.datalog.externals import TRUE, Answers, Ask, Mode, Request, asking, externals_of
from spak.datalog.folds import Fold, folds_of
from spak.datalog.intervals import MARK
from spak.datalog.lint import GIVEN, linear
from spak.datalog.plan import Key, prepare
from spak.datalog.rule_tables import merge
from spak.datalog.static_check import check
from spak.datalog.strata import components
from spak.datalog.syntax import Clause, Const, Decl, Finding, Var, Wild
from spak.datalog.terms import value_of
from spak.datalog.text.decl import show_bound
from spak.datalog.text.format import numbered, show_part
from spak.datalog.text.parse import parse, parse_atom
from spak.datalog.types import included, misfit
from spak.datalog.values import Fact, Row, Value, decode, encode, order_row, show_atom, size_of
from spak.kept import by_size

KEPT_CHARS = 1 << 18
_read = by_size(KEPT_CHARS)(parse)
"""Most files of a policy are those of the law, the same in each; what `parse` gives cannot change."""


def load(sources: Mapping[str, str]) -> Policy:
    """The policy of these files (name to text). Raises: PolicyError `policy.invalid` with all findings."""
    parsed = tuple(_read(text, name) for name, text in sorted(sources.items()))
    findings = [item for source in parsed for item in source.findings]
    findings += check(parsed)
    findings.sort(key=lambda item: (item.place.file, item.place.start, item.code, item.message))
    errors = [item for item in findings if item.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        message = f"{errors[0].place}: {errors[0].message} [{errors[0].code}]{more}"
        raise PolicyError("policy.invalid", message, errors[0].hint, tuple(findings))
    clauses = [clause for source in parsed for clause in source.clauses]
    decls = [decl for source in parsed for decl in source.decls]
    return Policy(tuple(clauses), tuple(decls), tuple(findings))


class Policy:
    """Checked and ready. `rules` is what runs (closures made linear), `clauses` what was written."""

    def __init__(
        self, clauses: tuple[Clause, ...], decls: tuple[Decl, ...], findings: tuple[Finding, ...]
    ) -> None:
        self.clauses, self.diagnostics = clauses, findings
        self.decls: dict[Key, Decl] = {decl.atom.key: decl for decl in decls}
        self.externals: dict[Key, tuple[Mode, ...]] = externals_of(decls)
        self.folds: dict[Key, Fold] = folds_of(decls)
        running, self.closures = linear(list(clauses))
        self.rules = tuple(clause for clause in running if clause.body)
        self.facts: tuple[tuple[Key, Row], ...] = tuple(
            (clause.head.key, tuple(value_of(arg, {}) for arg in clause.head.args))
            for clause in running
            if not clause.body
        )
        bodies = tuple(prepare(clause) for clause in self.rules)
        heads = {clause.head.key for clause in running}
        used = {item.key for body in bodies for item in body.items if item.kind in ("row", "neg")}
        self.predicates: frozenset[Key] = frozenset({*heads, *used, *self.decls})
        self._arities: dict[str, set[int]] = {}
        for name, arity in self.predicates:
            self._arities.setdefault(name, set()).add(arity)
        self._bodies = bodies
        self.asks: dict[Key, Ask] = {}
        questions: list[Clause] = []
        if self.externals:
            questions, self.asks = asking(self.rules, self.externals)
        self.inclusions = included(decls)
        unseen = (prepare(clause) for clause in (*questions, *self.inclusions))
        merged, self.tables = merge((*bodies, *unseen))
        self.compiled = Rules(merged, components(merged, {*self.predicates, *self.tables}), self.decls)
        for key, row in self.facts:
            wrong = misfit(row, self.decls[key]) if key in self.decls else ""
            if wrong:
                raise PolicyError("policy.invalid", wrong)

    @cached_property
    def written(self) -> Rules:
        """The rules one by one, as explanations speak of them."""
        return Rules(self._bodies, components(self._bodies, self.predicates))

    @cached_property
    def readings(self) -> tuple[list[str], dict[Key, list[int]]]:
        """Each rule with its variables numbered; and the rules of each head, in the order of those texts."""
        texts = [numbered(body.clause) for body in self.written.bodies]
        heads: dict[Key, list[int]] = {}
        for rule in sorted(range(len(texts)), key=lambda rule: texts[rule]):
            heads.setdefault(self.written.bodies[rule].head.key, []).append(rule)
        return texts, heads

    @cached_property
    def hash(self) -> str:
        """The same for any order of files, rules and facts, any names of variables, any layout."""
        lines = sorted(numbered(clause) for clause in (*self.clauses, *self.inclusions))
        decls = sorted(
            f"{decl.atom.pred}/{len(decl.atom.args)}: "
            + "; ".join(", ".join(show_bound(bound) for bound in row) for row in decl.bounds)
            + (f" external {sorted(decl.modes)}" if decl.external else "")
            + (f" fold {self.folds[decl.atom.key]}" if decl.atom.key in self.folds else "")
            for decl in self.decls.values()
        )
        return canon.content_hash(["mangle", 1, decls, lines])

    def session(self, facts: Iterable[Fact] = (), limits: Limits | None = None) -> Session:
        """A session that holds these facts. Raises: PolicyError, PolicyLimit."""
        return Session(self, facts, limits or Limits())

    @cached_property
    def plain(self) -> dict[Key, tuple[str, ...]]:
        """The kinds of the columns of predicates whose facts need no other check."""
        found = {}
        for key in self.predicates - self.closures - self.externals.keys():
            decl = self.decls.get(key)
            if decl is None or not (decl.bounds or decl.temporal):
                found[key] = ("any",) * key[1]
            elif len(decl.bounds) == 1 and not decl.temporal:
                kinds = tuple(bound.kind if not bound.args else "" for bound in decl.bounds[0])
                if all(kind in ("any", "name", "string", "number") for kind in kinds):
                    found[key] = kinds
        return found

    def arity_conflict(self, key: Key) -> str:
        """What is wrong with a fact of this predicate, or nothing."""
        if key not in self.predicates and key[0] + MARK in self._arities:
            return f"{key[0]} is temporal: its facts are rows of {key[0]}{MARK} with two times more"
        known = self._arities.get(key[0])
        if known is None or key[1] in known:
            return ""
        return f"{key[0]} has {' or '.join(map(str, sorted(known)))} columns, not {key[1]}"


def atom(text: str) -> tuple[str, tuple[Any, ...]]:
    """A query's predicate and arguments: values, `Var` for variables, None for `_`. Raises: PolicyError."""
    found = parse_atom(text)
    args: list[Any] = []
    for arg in found.args:
        if isinstance(arg, Wild):
            args.append(None)
        elif isinstance(arg, Var):
            args.append(arg)
        elif isinstance(arg, Const):
            args.append(decode(arg.value))
        else:
            try:
                args.append(decode(value_of(arg, {})))
            except (KeyError, AttributeError, TypeError) as error:
                raise PolicyError("policy.query", "a query computes nothing", "write the value") from error
    return found.pred, tuple(args)


class Session:
    """Facts and all that follows from them.

    Where the policy has external predicates, nothing can be asked of a session before all that it `requests`
    is supplied: what is not known yet must not pass for what is not so.
    """

    def __init__(self, policy: Policy, facts: Iterable[Fact], limits: Limits) -> None:
        self.policy, self.limits = policy, limits
        self.evaluation = Evaluation(policy.compiled, limits)
        self.version = 0
        self._asked_at = -1
        """The version at which everything was found to be answered."""
        self.reader: Evaluation | None = None
        self._answers: dict[tuple[Key, Mode, Row], tuple[Row, ...]] = {}
        if policy.asks:
            self.evaluation.relation(TRUE[0]).fixed[TRUE[1]] = None
        for table, rows in policy.tables.items():
            self.evaluation.relation(table).fixed = dict.fromkeys(rows)
        for key, row in policy.facts:
            self.evaluation.relation(key).fixed[row] = None
            if key in policy.closures:
                self.evaluation.relation((GIVEN.format(key[0]), key[1])).fixed[row] = None
        for key, row in self._rows(facts):
            self.evaluation.relation(key).base[row] = None
        self.evaluation.rebuild()
        self._stale = False
        self._included()

    def assert_facts(self, facts: Iterable[Fact]) -> None:
        """Add facts and derive what follows."""
        self.update((), facts)

    def retract_facts(self, facts: Iterable[Fact]) -> None:
        """Take facts away, and what follows from them alone."""
        self.update(facts, ())

    def update(self, retract: Iterable[Fact], assert_: Iterable[Fact]) -> None:
        """Retract, then assert, as one step. A fact of the policy's own text stays.

        Raises: PolicyError `policy.type`, PolicyLimit; the session then holds what it held before.
        """
        self._update(self._rows(retract), self._rows(assert_))

    def _update(self, less: list[tuple[Key, Row]], more: list[tuple[Key, Row]]) -> None:
        evaluation = self.evaluation
        if self._stale:
            evaluation.rebuild()
            self._stale = False
        removed: dict[Key, list[Row]] = {}
        added: dict[Key, list[Row]] = {}
        self.version += 1
        for key, row in less:
            base = evaluation.relation(key).base
            if row in base:
                del base[row]
                removed.setdefault(key, []).append(row)
        for key, row in more:
            base = evaluation.relation(key).base
            if row not in base:
                base[row] = None
                added.setdefault(key, []).append(row)
        try:
            evaluation.apply(removed, added)
            self._included()
        except BaseException:
            self._stale = True
            for key, rows in added.items():
                for row in rows:
                    evaluation.relation(key).base.pop(row, None)
            for key, rows in removed.items():
                evaluation.relation(key).base.update(dict.fromkeys(rows))
            raise

    @property
    def complete(self) -> bool:
        """True when no question is open."""
        return not self.requests()

    def requests(self) -> tuple[Request, ...]:
        """The questions to answer now, each once, in the one order; after the answers there may be more."""
        self.fresh()
        if self._asked_at == self.version:
            return ()
        asks = self.policy.asks
        found: dict[int, set[tuple[Ask, Row]]] = {}
        for key, ask in asks.items():
            for row in self.evaluation.relation(key).rows:
                if (ask.key, ask.mode, row) not in self._answers:
                    found.setdefault(ask.level, set()).add((ask, row))
        if not found:
            return ()
        ordered = sorted(found[min(found)], key=lambda item: item[0].order(item[1]))
        return tuple(ask.request(row) for ask, row in ordered)

    def supply(self, request: Request, rows: Iterable[tuple[Value, ...]]) -> None:
        """The answer to a question: whole rows, each with the question's inputs in their places.

        Raises: PolicyError `policy.external` for what is no question, a row that does not answer it or a
        second answer that differs; `policy.type`, PolicyLimit.
        """
        key, mode = request.key, request.mode
        if mode not in self.policy.externals.get(key, ()):
            raise PolicyError("policy.external", f"{request} is no question of this policy")
        inputs = tuple(encode(arg) for arg in request.args if arg is not None)
        facts = self._rows(((request.pred, tuple(row)) for row in rows), answers=True)
        answer = tuple(sorted({row for _, row in facts}, key=order_row))
        for row in answer:
            if len(row) != key[1] or tuple(row[place] for place in mode) != inputs:
                raise PolicyError(
                    "policy.external", f"{show_atom(request.pred, row)} does not answer {request}"
                )
        known = self._answers.get((key, mode, inputs))
        if known is not None:
            if known != answer:
                raise PolicyError("policy.external", f"a second answer to {request} differs from the first")
            return
        self._update([], [(key, row) for row in answer])
        self._answers[key, mode, inputs] = answer

    def forget(self, keys: Collection[Key]) -> None:
        """Take back all answers about these predicates: they are requested again. Raises: PolicyLimit."""
        old = [asked for asked in self._answers if asked[0] in keys]
        if old:
            self._update([(asked[0], row) for asked in old for row in self._answers[asked]], [])
            for asked in old:
                del self._answers[asked]
            self._asked_at = -1

    def settle(self, answers: Answers) -> None:
        """Ask until no question is open. Raises: what `answers` and `supply` raise."""
        while requests := self.requests():
            for request, rows in zip(requests, answers(list(requests)), strict=True):
                self.supply(request, rows)

    def answers(self) -> list[tuple[Request, tuple[tuple[Value, ...], ...]]]:
        """What was supplied, in the order of questions: for records, and for the checker of proofs."""
        found = sorted(self._answers.items(), key=lambda item: (item[0][:2], order_row(item[0][2])))
        return [
            (Ask(key, mode, 0).request(row), tuple(tuple(map(decode, one)) for one in rows))
            for (key, mode, row), rows in found
        ]

    def require_complete(self) -> None:
        """Raises: PolicyError `policy.incomplete` where a request has no answer yet."""
        if self._asked_at == self.version and not self._stale:
            return
        self.fresh()
        if self.policy.asks:
            waiting = self.requests()
            if waiting:
                more = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
                raise PolicyError(
                    "policy.incomplete", f"nothing has answered {waiting[0]}{more}", "supply it"
                )
            self._included()
        self._asked_at = self.version

    def _included(self) -> None:
        """Raises: PolicyError `policy.inclusion` when a row breaks an inclusion of its declaration."""
        if not self.policy.inclusions or not self.complete:
            return
        for clause in self.policy.inclusions:
            rows = self.evaluation.relation(clause.head.key).rows
            if rows:
                first = show_atom(clause.head.pred.lstrip("?!0123456789"), sorted(rows, key=order_row)[0])
                message = f"{first[:200]} stands without {show_part(clause.body[1])[1:]}"
                raise PolicyError("policy.inclusion", message, f"see {clause.place}")

    def query(self, pred: str, *pattern: Any) -> list[tuple[Value, ...]]:
        """Rows that fit the pattern, in the order of values.

        None and variables fit anything (the same variable the same thing); without a pattern all rows.
        """
        self.require_complete()
        rows: list[Row] = []
        if not pattern:
            for (name, _), relation in self.evaluation.relations.items():
                if name == pred:
                    rows += relation.rows
        else:
            rows = self.matching(pred, pattern)
        return [tuple(decode(value) for value in row) for row in sorted(rows, key=order_row)]

    def holds(self, pred: str, *args: Value) -> bool:
        """True when this very fact holds."""
        self.require_complete()
        relation = self.evaluation.relations.get((pred, len(args)))
        return relation is not None and tuple(encode(arg) for arg in args) in relation.rows

    def idle(self, fact: Fact) -> bool:
        """True for an asserted fact, of those that no rule derives, from which nothing followed since."""
        pred, args = fact
        return tuple([encode(arg) for arg in args]) in self.evaluation.idle.get((pred, len(args)), ())

    def facts(self) -> list[tuple[Key, Row]]:
        """What was asserted, in the order of values."""
        found = [(key, row) for key, relation in self.evaluation.relations.items() for row in relation.base]
        given = {(GIVEN.format(name), arity) for name, arity in self.policy.closures} | {
            *self.policy.externals
        }
        return sorted(
            (item for item in found if item[0] not in given), key=lambda item: (item[0], order_row(item[1]))
        )

    def matching(self, pred: str, pattern: tuple[Any, ...]) -> list[Row]:
        """Rows (inside form) that fit."""
        relation = self.evaluation.relations.get((pred, len(pattern)))
        if relation is None:
            return []
        free = [item is None or isinstance(item, Var | Wild) for item in pattern]
        places = tuple(place for place, is_free in enumerate(free) if not is_free)
        values = tuple(encode(pattern[place]) for place in places)
        if len(places) == len(pattern):
            return [values] if values in relation.rows else []
        found: Iterable[Row] = relation.rows
        if places:
            found = relation.index(places).get(values[0] if len(places) == 1 else values, {})
        same: dict[str, list[int]] = {}
        for place, item in enumerate(pattern):
            if isinstance(item, Var):
                same.setdefault(item.name, []).append(place)
        groups = [group for group in same.values() if len(group) > 1]
        return [row for row in found if all(len({row[place] for place in group}) == 1 for group in groups)]

    def by_rule(self) -> Evaluation:
        """The same relations under the rules as they were written, for explanations."""
        if self.reader is None:
            self.reader = Evaluation(self.policy.written, self.limits)
            self.reader.relations = self.evaluation.relations
        self.reader.steps = self.limits.steps
        return self.reader

    def fresh(self) -> None:
        """Derive anew after an update that failed."""
        if self._stale:
            self.evaluation.rebuild()
            self._stale = False

    def _rows(self, facts: Iterable[Fact], answers: bool = False) -> list[tuple[Key, Row]]:
        found: list[tuple[Key, Row]] = []
        plain, most = self.policy.plain, self.limits.atom_bytes
        for pred, args in facts:
            key = (pred, len(args))
            row = tuple([encode(arg) for arg in args])
            kinds = plain.get(key)
            if kinds is not None and _is_plain(row, kinds, most):
                found.append((key, row))
                continue
            if not answers and key in self.policy.externals:
                raise PolicyError(
                    "policy.external", f"{pred} is external: its rows are supplied", "ask for it"
                )
            wrong = self.policy.arity_conflict(key)
            if not wrong and key in self.policy.decls:
                wrong = misfit(row, self.policy.decls[key])
            if wrong:
                raise PolicyError("policy.type", wrong, "fix what states the fact")
            if size_of(row) > self.limits.atom_bytes:
                raise PolicyLimit(f"a fact of {show_atom(pred, ())[:80]} is too large")
            found.append((key, row))
            if key in self.policy.closures:
                found.append(((GIVEN.format(pred), key[1]), row))
        return found


def _is_plain(row: Row, kinds: tuple[str, ...], most: int) -> bool:
    """Whether the values are texts and numbers of these kinds, and far from as large as `most` bytes."""
    room = most - 8
    for value, kind in zip(row, kinds, strict=True):
        if type(value) is str:
            room -= len(value)
            if kind != "any" and kind != ("string" if value[0] == '"' else "name"):
                return False
        elif type(value) is int:
            room -= 8
            if kind != "any" and kind != "number":
                return False
        else:
            return False
    return room >= 0
