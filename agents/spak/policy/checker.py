"""An independent judge of proofs: `accepts(policy, facts, proof, answers)`.

Shared with the engine are the tree of the rules, values and the tables of built-ins, which are the language.
There are no indexes, deltas or plans: what a proof says of a rule is put into the rule's text; what it says
is absent, or grouped, is found out by trying every rule below on every row until nothing is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spak import canon
from spak.errors import UserError
from spak.policy.externals import Request
from spak.policy.format import plain
from spak.policy.functions import COMPARE, GENERATORS, REDUCERS, TESTS
from spak.policy.grouping import value_of
from spak.policy.lint import GIVEN
from spak.policy.plan import variables
from spak.policy.session import Policy
from spak.policy.syntax import Apply, Clause, Compare, Literal_, Part, Var, Wild
from spak.policy.values import Fact, encode, from_json, order_row, to_json

Known = dict[str, Any]
Answers = Iterable[tuple[Request, Iterable[tuple[Any, ...]]]]


def accepts(policy: Policy, facts: Iterable[Fact], proof: Any, answers: Answers = ()) -> bool:
    """True when the proof (or its JSON) shows its root from these facts and these answers of the world."""
    try:
        return _accepts(policy, facts, proof if isinstance(proof, Mapping) else proof.to_json(), answers)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, UserError):
        return False


def _accepts(policy: Policy, facts: Iterable[Fact], document: Any, answers: Answers) -> bool:
    told = [(request.pred, row, request.to_json()) for request, rows in answers for row in rows]
    leaves = {("given", pred, tuple(encode(arg) for arg in args), "") for pred, args in facts}
    leaves |= {
        ("observed", pred, tuple(encode(arg) for arg in args), str(asked)) for pred, args, asked in told
    }
    leaves |= {("stated", key[0], row, "") for key, row in policy.facts}
    asked = {str(request.to_json()) for request, _ in answers}
    for how, pred, row, source in list(leaves):
        if ((pred, len(row)) in policy.externals) != (how == "observed"):
            return False
        if (pred, len(row)) in policy.closures:
            leaves.add((how, GIVEN.format(pred), row, source))
    rules = {canon.content_hash(plain(rule)): rule for rule in policy.rules}
    used = [rules[node["rule"]] for node in document["nodes"] if node["how"] == "rule"]
    model = _model(policy.rules, leaves, used)
    proven: dict[str, tuple[Any, set[Any]]] = {}
    for node in document["nodes"]:
        row = tuple(from_json(item) for item in node["args"])
        said = {name: node[name] for name in node if name not in ("id", "text", "at")}
        if canon.content_hash(said) != node["id"]:
            return False
        if node["how"] == "rule":
            if not _applies(policy, rules[node["rule"]], node, row, proven, model, asked):
                return False
        elif (node["how"], node["pred"], row, str(node.get("source", ""))) not in leaves:
            return False
        proven[node["id"]] = ((node["pred"], len(row)), {row})
    return bool(document["root"] == document["nodes"][-1]["id"] and document["policy"] == policy.hash)


def _applies(policy: Policy, rule: Clause, node: Any, row: Any, proven: Any, model: Any, asked: Any) -> bool:
    """The rule with these values gives this row, and all of its body is proven, absent or true."""
    bindings = [tuple(from_json(item) for item in binding) for binding in node["bindings"]]
    entries = iter(node["body"])
    for binding in bindings:
        known = dict(zip(_names(rule), binding, strict=True))
        for part in rule.body:
            entry = next(entries)
            here = dict([proven[entry["node"]]]) if _is_row(part) else model
            if ("node" in entry) != _is_row(part) or next(_ways(part, known, here), None) is None:
                return False
            if "absent" in entry and not _was_asked(part, known, policy.externals, asked):
                return False
    head = (node["pred"], len(row)) == rule.head.key and next(entries, None) is None
    whole = len(bindings) == 1 if rule.transform is None else row in model[rule.head.key]
    return head and whole and row in _heads(rule, bindings)


def _was_asked(part: Any, known: Known, externals: Any, asked: set[str]) -> bool:
    """What the world has not been asked for is not absent."""
    atom, modes = part.atom, externals.get(part.atom.key)
    for mode in modes or ():
        args = [to_json(value_of(arg, known)) if at in mode else None for at, arg in enumerate(atom.args)]
        if str([atom.pred, args]) in asked:
            return True
    return modes is None


def _model(rules: tuple[Clause, ...], leaves: Iterable[Any], used: list[Clause]) -> dict[Any, set[Any]]:
    """All rows of what the used rules negate or group, and of what that rests on, stratum by stratum."""
    more = {rule.head.key for rule in used if rule.transform is not None}
    more |= {
        part.atom.key for rule in used for part in rule.body if isinstance(part, Literal_) and part.negated
    }
    level: dict[Any, int] = {}
    below: list[Clause] = []
    while set(level) != more:
        level = dict.fromkeys(more, 0)
        below = [rule for rule in rules if rule.head.key in more]
        more |= {part.atom.key for rule in below for part in rule.body if isinstance(part, Literal_)}
    atoms = [(rule, part) for rule in below for part in rule.body if isinstance(part, Literal_)]
    for rule, part in atoms * len(level):
        least = level[part.atom.key] + (part.negated or rule.transform is not None)
        level[rule.head.key] = max(level[rule.head.key], least)
    model: dict[Any, set[Any]] = {key: set() for key in level}
    for _, pred, row, _ in leaves:
        model.setdefault((pred, len(row)), set()).add(row)
    for number in sorted(set(level.values())):
        size = -1
        while size != (size := sum(map(len, model.values()))):
            for rule in (rule for rule in below if level[rule.head.key] == number):
                parts = sorted(rule.body, key=_is_row, reverse=True)
                found = [tuple(known[name] for name in _names(rule)) for known in _solve(parts, {}, model)]
                model[rule.head.key] |= _heads(rule, found)
    return model


def _solve(parts: list[Part], known: Known, model: Any) -> Iterator[Known]:
    if not parts:
        yield known
    for at, part in enumerate(parts):
        try:
            found = list(_ways(part, known, model))
        except KeyError:  # another part binds a variable of it
            continue
        for following in found:
            yield from _solve(parts[:at] + parts[at + 1 :], following, model)
        return


def _ways(part: Part, known: Known, model: Any) -> Iterator[Known]:
    """Every way in which one literal holds. Raises: KeyError while a variable that it needs is not known."""
    if isinstance(part, Compare):
        for one, two in ((part.left, part.right), (part.right, part.left)):
            if part.op == "=" and isinstance(one, Var) and one.name not in known:
                yield {**known, one.name: value_of(two, known)}
                return
        if COMPARE[part.op](value_of(part.left, known), value_of(part.right, known)):
            yield known
        return
    pred, args = part.atom.pred, part.atom.args
    if part.negated and any(known[name] is None for arg in args for name in variables(arg)):
        return
    rows: Any = model.get(part.atom.key)
    if pred in TESTS:
        rows = [()] if TESTS[pred][1](*(value_of(arg, known) for arg in args)) else []
        args = ()
    elif pred in GENERATORS:
        made = GENERATORS[pred]
        rows = made.call(*(value_of(args[place], known) for place in made.inputs))
        args = tuple(arg for place, arg in enumerate(args) if place not in made.inputs)
    found = (way for row in rows for way in _unify(args, row, known))
    if not part.negated:
        yield from found
    elif next(found, None) is None:
        yield known


def _unify(args: tuple[Any, ...], row: Any, known: Known) -> Iterator[Known]:
    found, pairs = dict(known), list(zip(args, row, strict=True))
    bound = all(found.setdefault(arg.name, value) == value for arg, value in pairs if isinstance(arg, Var))
    if bound and all(
        value_of(arg, found) == value for arg, value in pairs if not isinstance(arg, Var | Wild)
    ):
        yield found


def _heads(rule: Clause, bindings: list[Any]) -> set[Any]:
    """The head rows of these bindings, grouped where the rule groups."""
    keys = None if rule.transform is None else rule.transform.keys
    groups: dict[Any, list[Known]] = {}
    for row in sorted(set(bindings), key=order_row):
        known = dict(zip(_names(rule), row, strict=True))
        groups.setdefault(row if keys is None else tuple(known[key.name] for key in keys), []).append(known)
    heads = set()
    for members in groups.values():
        known = dict(members[0])
        for let in () if rule.transform is None else rule.transform.lets:
            term, reducer = let.term, REDUCERS.get(getattr(let.term, "function", ""))
            if keys is None or reducer is None or not isinstance(term, Apply):
                known[let.name] = value_of(term, known)
            else:
                values = [value_of(term.args[0], {**known, **one}) if term.args else 0 for one in members]
                known[let.name] = reducer.call(values)
        heads.add(tuple(value_of(arg, known) for arg in rule.head.args))
    return heads


def _names(rule: Clause) -> list[str]:
    sides = [(part.left, part.right) if isinstance(part, Compare) else part.atom.args for part in rule.body]
    return list(dict.fromkeys(name for args in sides for arg in args for name in variables(arg)))


def _is_row(part: Part) -> bool:
    return isinstance(part, Literal_) and not part.negated and part.atom.pred[0] != ":"
