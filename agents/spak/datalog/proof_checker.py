"""An independent judge of proofs. It shares the language with the engine: rules, values, built-ins, strata.

There are no indexes, deltas or orders of joins: what a proof says of a rule is put into the rule; what it
says is absent, or grouped, is found out by trying every rule below on every row until nothing is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spak.canon import content_hash
from spak.datalog.explain import statement
from spak.datalog.functions import REDUCERS
from spak.datalog.lint import GIVEN
from spak.datalog.plan import Body, Item, names_of
from spak.datalog.session import Policy
from spak.datalog.syntax import Wild
from spak.datalog.terms import Known, bind, computed, value_of
from spak.datalog.text.format import numbered
from spak.datalog.values import Fact, encode, from_json, order_row, show_atom, to_json
from spak.errors import UserError

Model = dict[tuple[str, int], set[Any]]


def accepts(policy: Policy, facts: Iterable[Fact], proof: Any, answers: Iterable[Any] = ()) -> bool:
    """True when the proof (or its JSON) shows its root from these facts and answers (request, rows)."""
    try:
        document = proof if isinstance(proof, Mapping) else proof.to_json()
        return _accepts(policy, facts, document, [(request.to_json(), rows) for request, rows in answers])
    except (StopIteration, KeyError, ValueError, TypeError, IndexError, AttributeError, UserError):
        return False


def _accepts(policy: Policy, facts: Iterable[Fact], document: Any, answers: list[Any]) -> bool:
    leaves: set[Any] = {("stated", key[0], row, "None") for key, row in policy.facts}
    leaves |= {("given", pred, tuple(map(encode, args)), "None") for pred, args in facts}
    for asked, rows in answers:
        leaves |= {("observed", asked[0], tuple(map(encode, row)), str(asked)) for row in rows}
    for how, pred, row, source in list(leaves):
        if ((pred, len(row)) in policy.externals) != (how == "observed"):
            return False
        if (pred, len(row)) in policy.closures:
            leaves.add((how, GIVEN.format(pred), row, source))
    rules = {content_hash(numbered(body.clause)): body for body in policy.written.bodies}
    model = _model(policy, leaves, [rules[node["rule"]] for node in document["nodes"] if "rule" in node])
    proven: dict[str, tuple[Any, set[Any]]] = {}
    for node in document["nodes"]:
        row = tuple(map(from_json, node["args"]))
        content = {name: node[name] for name in node.keys() - {"id", "text", "at"}}
        true = (node["how"], node["pred"], row, str(node.get("source"))) in leaves
        if node["how"] == "rule":
            true = _applies(policy, rules[node["rule"]], node, row, proven, model, answers)
        shown = {"id": content_hash(content), "text": show_atom(node["pred"], row), "at": node["at"]}
        if not true or node != content | shown:
            return False
        proven[node["id"]] = ((node["pred"], len(row)), {row})
    return bool(document["root"] == document["nodes"][-1]["id"] and document["policy"] == policy.hash)


def _applies(policy: Policy, body: Body, node: Any, row: Any, proven: Any, model: Any, answers: Any) -> bool:
    """The rule with these values gives this row, and all of its body is proven, absent or true."""
    bindings = [tuple(map(from_json, binding)) for binding in node["bindings"]]
    entries = iter(node["body"])
    for binding in bindings:
        known = dict(zip(body.variables, binding, strict=True))
        for item in body.items:
            entry: Any = {} if item.part is None else next(entries)
            is_row = item.kind == "row"
            known = next(_ways(item, known, dict([proven[entry["node"]]]) if is_row else model))
            if item.part is not None:  # not an expression that was taken out of a literal
                expected = {"node": entry["node"]} if is_row else statement(item, known)
                if entry != expected:
                    return False
            if item.kind == "neg" and item.key in policy.externals:  # absent is only what was asked for
                args = [None if isinstance(arg, Wild) else to_json(value_of(arg, known)) for arg in item.args]
                asked = [wants for (name, wants), _ in answers if (name, len(wants)) == item.key]
                fits = (zip(wants, args, strict=True) for wants in asked)
                if not any(all(wanted in (None, arg) for wanted, arg in pairs) for pairs in fits):
                    return False
    whole = len(bindings) == 1 if body.clause.transform is None else row in model[body.head.key]
    head = (node["pred"], len(row)) == body.head.key and row in _heads(body, bindings)
    return head and whole and next(entries, None) is None


def _model(policy: Policy, leaves: set[Any], used: list[Body]) -> Model:
    """All rows of what the used rules negate or group, and of what that rests on, stratum by stratum."""
    wanted = {body.head.key for body in used if body.clause.transform is not None}
    wanted |= {item.key for body in used for item in body.items if item.kind == "neg"}
    strata = [[policy.written.bodies[at] for at in found.rules] for found in policy.written.components]
    for bodies in reversed(strata):
        bodies[:] = bodies if wanted & {body.head.key for body in bodies} else []
        wanted |= {item.key for body in bodies for item in body.items}
    model: Model = {body.head.key: set() for bodies in strata for body in bodies}
    for _, pred, row, _ in leaves:
        model.setdefault((pred, len(row)), set()).add(row)
    for bodies in strata:
        size = -1
        while bodies and size != (size := sum(map(len, model.values()))):
            for body in bodies:
                items = sorted(body.items, key=lambda item: item.kind != "row")
                found = [tuple(known[name] for name in body.variables) for known in _solve(items, {}, model)]
                model[body.head.key] |= _heads(body, found)
    return model


def _solve(items: list[Item], known: Known, model: Model) -> Iterator[Known]:
    if not items:
        yield known
    for at, item in enumerate(items):
        try:
            found = list(_ways(item, known, model))
        except KeyError:  # another item binds a variable of it
            continue
        for following in found:
            yield from _solve(items[:at] + items[at + 1 :], following, model)
        return


def _ways(item: Item, known: Known, model: Model) -> Iterator[Known]:
    """Every way in which an item holds. Raises: KeyError while a variable that it needs is not known."""
    if item.negated and not names_of(item) <= known.keys():
        raise KeyError
    found = (way for row in model.get(item.key, ()) if (way := bind(item.args, row, known)) is not None)
    absent = iter([known] if item.kind == "neg" and next(found, None) is None else [])
    yield from {"row": found, "neg": absent}.get(item.kind) or computed(item, known)


def _heads(body: Body, bindings: list[Any]) -> set[Any]:
    """The head rows of these bindings, grouped where the rule groups."""
    transform, groups = body.clause.transform, dict[Any, list[Known]]()
    keys = None if transform is None else transform.keys
    for row in sorted(set(bindings), key=order_row):
        known = dict(zip(body.variables, row, strict=True))
        groups.setdefault(row if keys is None else tuple(known[key.name] for key in keys), []).append(known)
    heads = set()
    for members in groups.values():
        known = dict(members[0])
        for let in () if transform is None else transform.lets:
            term: Any = let.term
            if getattr(term, "function", "") in REDUCERS:
                values = [value_of(term.args[0], {**known, **one}) if term.args else 0 for one in members]
                known[let.name] = REDUCERS[term.function].call(values)
            else:
                known[let.name] = value_of(term, known)
        heads.add(tuple(value_of(arg, known) for arg in body.head.args))
    return heads
