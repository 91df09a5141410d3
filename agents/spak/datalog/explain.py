"""Proofs: why a fact holds, as a graph whose nodes are named by their content.

A node is a fact that was given, one that the policy's text states, one that an observation holds (with the
question that it answers), or a rule with the values of its variables
and what stands for each literal of its body: another node, an absence, a comparison that holds. The proof of
a fact is the same for every order of facts and rules and every choice of variable names: among all
derivations from facts of lower rank the first in the order of rules and values is taken. The rank of a fact
is the least height of a derivation inside its component; it is computed when a proof is asked for, not during
evaluation.

Lines of the source are shown, and are no part of the hash. Everything is iterative: a chain of a thousand
steps is a proof like any other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import Any

from spak import canon
from spak.datalog.errors import NoProof
from spak.datalog.evaluate import Change, Evaluation
from spak.datalog.grouping import transformed
from spak.datalog.intervals import written
from spak.datalog.plan import Body, Item, Key
from spak.datalog.relation import Relation
from spak.datalog.session import Session
from spak.datalog.syntax import Compare, Literal_, Place, Wild
from spak.datalog.terms import value_of
from spak.datalog.text.format import show_part
from spak.datalog.values import Inner, Row, Value, encode, order_row, show, show_atom, to_json

Node = tuple[Key, Row]


@dataclass(frozen=True, slots=True)
class Proof:
    """`nodes` by hash, children before parents; the last is the fact that was asked for."""

    nodes: tuple[dict[str, Any], ...]
    policy: str

    @property
    def hash(self) -> str:
        """The name of the root: equal for equal proofs."""
        return str(self.nodes[-1]["id"])

    def to_json(self) -> dict[str, Any]:
        """The proof as JSON, with its version and the hash of the policy."""
        return {"version": 1, "policy": self.policy, "root": self.hash, "nodes": list(self.nodes)}

    def text(self) -> str:
        """An indented tree; a fact that was shown before is not shown in full again."""
        by_id = {node["id"]: node for node in self.nodes}
        lines: list[str] = []
        shown: set[str] = set()
        stack: list[tuple[int, dict[str, Any] | str]] = [(0, by_id[self.hash])]
        while stack:
            depth, node = stack.pop()
            pad = "  " * min(depth, 40)
            if isinstance(node, str):
                lines.append(pad + node)
                continue
            repeated = node["id"] in shown and node["how"] == "rule"
            lines.append(f"{pad}{node['text']}  {'(as above)' if repeated else _because(node)}")
            shown.add(node["id"])
            if node["how"] == "rule" and not repeated:
                for part in reversed(node["body"]):
                    stack.append((depth + 1, by_id[part["node"]] if "node" in part else _words(part)))
        return "\n".join(lines)

    def tree(self, depth: int = 40) -> dict[str, Any]:
        """For a page: nested nodes `{"text", "because", "at", "again", "body"}`, all text safe in HTML.

        A fact that was shown before is not shown in full again (`again`), and nothing below `depth` is shown
        (`more`), so that a page grows with the proof's nodes and no reader recurses too deep.
        """
        by_id = {node["id"]: node for node in self.nodes}
        shown: set[str] = set()
        top: list[dict[str, Any]] = []
        stack: list[tuple[int, dict[str, Any] | str, list[dict[str, Any]]]] = [(0, by_id[self.hash], top)]
        while stack:
            level, node, into = stack.pop()
            if isinstance(node, str):
                into.append({"text": escape(node), "because": "", "at": "", "again": False, "body": []})
                continue
            repeated = node["id"] in shown and node["how"] == "rule"
            made: dict[str, Any] = {"text": escape(node["text"]), "because": node["how"], "again": repeated}
            made |= {"at": escape(node["at"]), "body": []}
            into.append(made)
            shown.add(node["id"])
            if node["how"] != "rule" or repeated:
                continue
            if level >= depth:
                made["more"] = True
                continue
            for part in reversed(node["body"]):
                below = by_id[part["node"]] if "node" in part else _words(part)
                stack.append((level + 1, below, made["body"]))
        return top[0]


def _because(node: dict[str, Any]) -> str:
    where = f" {node['at']}" if node["at"] else ""
    return {"given": "(given)", "observed": "(observed)", "stated": f"(stated{where})"}.get(
        node["how"], f"(rule{where})"
    )


def _words(part: dict[str, Any]) -> str:
    return f"no {part['absent']}" if "absent" in part else str(part["holds"])


def prove(session: Session, pred: str, *args: Value, last: Collection[str] = ()) -> Proof:
    """Why a fact holds; rules that read a predicate of `last` are taken where no other rule gives it. Raises:
    PolicyError `policy.no_proof` when it does not."""
    session.require_complete()
    return prove_row(session, (pred, len(args)), tuple(encode(arg) for arg in args), last)


def prove_row(session: Session, key: Key, row: Row, last: Collection[str] = ()) -> Proof:
    """The proof of a row in its inside form. Raises: PolicyError `policy.no_proof` when it does not hold."""
    relation = session.evaluation.relations.get(key)
    if relation is None or row not in relation.rows:
        raise NoProof(f"{show_atom(key[0], row)} does not hold", "ask why-not")
    prover = _Prover(session, last)
    done: dict[Node, dict[str, Any]] = {}
    stack: list[tuple[Node, list[Any] | None]] = [((key, row), None)]
    while stack:
        node, parts = stack.pop()
        if node in done:
            continue
        if parts is None:
            parts = prover.parts(node)
            stack.append((node, parts))
            stack += [(child, None) for child in prover.children(parts) if child not in done]
        else:
            done[node] = prover.finish(node, parts, done)
    nodes = {found["id"]: found for found in done.values()}
    return Proof(tuple(nodes.values()), session.policy.hash)


class _Prover:
    def __init__(self, session: Session, last: Collection[str]) -> None:
        self.session = session
        self.rules = session.policy.written
        self.texts, self.by_head = session.policy.readings
        if last:
            later = [any(item.name in last for item in body.items) for body in self.rules.bodies]
            self.by_head = {key: sorted(rules, key=later.__getitem__) for key, rules in self.by_head.items()}
        self.ranks: dict[int, dict[Node, int]] = {}
        self.places: dict[Node, Place] = {}
        self.sources: dict[Node, list[Any]] = {}

    def parts(self, node: Node) -> list[Any]:
        """How a fact is derived: the way, the rule, the bindings."""
        key, row = node
        relation = self.session.evaluation.relation(key)
        if row in relation.base:
            return ["observed" if key in self.session.policy.externals else "given", None, ()]
        if row in relation.fixed:
            return ["stated", None, ()]
        place = self.rules.place[key]
        part = self.rules.components[place]
        ranks = self._ranks(place) if part.recursive else {}
        for rule in self.by_head[key]:
            body = self.rules.bodies[rule]
            found = self.session.by_rule().run(rule, "match_head", -1, (row,))
            if body.clause.transform is not None:
                rows = transformed(body, found).get(row)
                if rows is not None:
                    return ["rule", rule, rows]
                continue
            for binding in sorted(found, key=order_row):
                below = (child for child in self._children(body, binding) if child[0] in part.keys)
                if not part.recursive or all(ranks[child] < ranks[node] for child in below):
                    return ["rule", rule, (binding,)]
        raise AssertionError("a fact without a derivation")

    def children(self, parts: list[Any]) -> list[Node]:
        if parts[1] is None:
            return []
        body = self.rules.bodies[parts[1]]
        return [child for binding in parts[2] for child in self._children(body, binding)]

    def finish(self, node: Node, parts: list[Any], done: dict[Node, dict[str, Any]]) -> dict[str, Any]:
        (pred, _), row = node
        how, rule, bindings = parts
        found: dict[str, Any] = {"pred": pred, "args": [to_json(value) for value in row], "how": how}
        place = Place()
        if rule is not None:
            body = self.rules.bodies[rule]
            found["rule"] = canon.content_hash(self.texts[rule])
            found["bindings"] = [[to_json(value) for value in binding] for binding in bindings]
            found["body"] = [part for binding in bindings for part in self._body(body, binding, done)]
            place = body.clause.place
        elif how == "stated":
            place = self._stated(node)
        elif how == "observed":
            found["source"] = self._source(node)
        identity = canon.content_hash(found)
        at = f"{place.file}:{place.line}" if place.line else ""
        return {"id": identity, "text": show_atom(pred, row), "at": at, **found}

    def _body(self, body: Body, binding: Row, done: dict[Node, dict[str, Any]]) -> list[dict[str, Any]]:
        """What stands for each literal, in the order of the rule."""
        known = dict(zip(body.variables, binding, strict=True))
        found: list[dict[str, Any]] = []
        rows = iter(self._children(body, binding))
        for item in body.items:
            if item.part is None:
                continue
            found.append({"node": done[next(rows)]["id"]} if item.kind == "row" else statement(item, known))
        return found

    def _children(self, body: Body, binding: Row) -> list[Node]:
        """The rows that stand for the positive literals; a wildcard takes the first row that fits."""
        known = dict(zip(body.variables, binding, strict=True))
        found: list[Node] = []
        for at, item in enumerate(body.items):
            if item.kind != "row":
                continue
            values = [_value(arg, known, body) for arg in item.args]
            if any(value is None for value in values):
                found.append((item.key, self._first(body, at, values, known)))
            else:
                found.append((item.key, tuple(values)))
        return found

    def _first(self, body: Body, at: int, values: list[Inner | None], known: dict[str, Inner]) -> Row:
        item = body.items[at]
        places = tuple(place for place, value in enumerate(values) if value is not None)
        relation = self.session.evaluation.relation(item.key)
        rows: Any = relation.rows
        if places:
            key = tuple(values[place] for place in places)
            rows = relation.index(places).get(key[0] if len(places) == 1 else key, {})
        part = self.rules.components[self.rules.place[item.key]] if item.key in self.rules.place else None
        if part is not None and part.recursive and body.head.key in part.keys:
            ranks = self._ranks(self.rules.place[item.key])
            return min(rows, key=lambda row: (ranks[item.key, row], order_row(row)))
        return min(rows, key=order_row)

    def _source(self, node: Node) -> list[Any]:
        """The question that was answered with this row."""
        if not self.sources:
            for request, rows in self.session.answers():
                for row in rows:
                    fact = (request.key, tuple(encode(value) for value in row))
                    self.sources.setdefault(fact, request.to_json())
        return self.sources[node]

    def _stated(self, node: Node) -> Place:
        if not self.places:
            for clause in self.session.policy.clauses:
                if not clause.body:
                    row = tuple(value_of(arg, {}) for arg in clause.head.args)
                    self.places.setdefault((clause.head.key, row), clause.place)
        return self.places.get(node, Place())

    def _ranks(self, place: int) -> dict[Node, int]:
        """The round of a strict evaluation in which each fact of a component first comes up."""
        if place in self.ranks:
            return self.ranks[place]
        part = self.rules.components[place]
        real = self.session.evaluation
        scratch = Evaluation(self.rules, self.session.limits)
        scratch.steps = self.session.limits.steps
        scratch.relations = {
            key: relation for key, relation in real.relations.items() if key not in part.keys
        }
        ranks: dict[Node, int] = {}
        for key in part.keys:
            own = scratch.relations[key] = Relation()
            for row in (*real.relation(key).base, *real.relation(key).fixed):
                own.add(row)
                ranks[key, row] = 0
        number = 0
        found: list[tuple[Key, Any]] = [
            (self.rules.bodies[rule].head.key, scratch._heads(rule)) for rule in part.rules
        ]
        while found:
            number += 1
            fresh: Change = {}
            for key, rows in found:
                for row in rows:
                    if row not in scratch.relations[key].rows:
                        scratch.relations[key].add(row)
                        ranks[key, row] = number
                        fresh.setdefault(key, {})[row] = None
            found = [
                (self.rules.bodies[rule].head.key, scratch.run(rule, "emit", at, rows))
                for key, rows in fresh.items()
                for rule, at in self.rules.readers.get(key, ())
                if self.rules.bodies[rule].head.key in part.keys
            ]
        self.ranks[place] = ranks
        return ranks


def rule_texts(session: Session) -> list[str]:
    """Each running rule with its variables numbered."""
    return session.policy.readings[0]


def _value(arg: Any, known: dict[str, Inner], body: Body) -> Inner | None:
    """The value of an argument; None for a wildcard."""
    if isinstance(arg, Wild):
        return None
    name = getattr(arg, "name", "")
    if name.startswith("="):  # an expression that was taken out
        for item in body.items:
            if item.name == "==" and item.args[0] == arg:
                return value_of(item.args[1], known)
    return value_of(arg, known)


def statement(item: Item, known: dict[str, Inner]) -> dict[str, str]:
    """What a proof says of a literal that no row stands for; `known` holds the values of all variables."""
    if item.kind != "neg":
        return {"holds": _filled(item, known)}
    assert isinstance(item.part, Literal_)
    args = item.part.atom.args
    values = ["_" if isinstance(arg, Wild) else show(value_of(arg, known)) for arg in args]
    return {"absent": written(item.name, values)}


def _filled(item: Item, known: dict[str, Inner]) -> str:
    """A comparison or built-in with values in place of variables."""
    from spak.datalog.syntax import Apply, Const, Term, Var

    def fill(term: Term) -> Term:
        if isinstance(term, Var) and term.name in known:
            return Const(known[term.name])
        if isinstance(term, Apply):
            return Apply(term.function, tuple(fill(arg) for arg in term.args))
        return term

    part = item.part
    if isinstance(part, Compare):
        return show_part(Compare(part.op, fill(part.left), fill(part.right)))
    assert isinstance(part, Literal_)
    from spak.datalog.syntax import Atom

    return show_part(Literal_(Atom(part.atom.pred, tuple(fill(arg) for arg in part.atom.args)), part.negated))
