"""The plainest evaluation there is: every rule against every row until nothing is new.

For `spak.policy.checker` alone, which wants a second opinion and not a fast one. No indexes, no deltas, no
plan; it shares with the engine the tree of the rules and the tables of built-ins, which are the language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spak.policy.functions import COMPARE, FUNCTIONS, GENERATORS, REDUCERS, TESTS
from spak.policy.syntax import Apply, Clause, Compare, Const, Literal_, Part, Term, Var
from spak.policy.values import order_row

Known = dict[str, Any]
Model = dict[tuple[str, int], set[Any]]


def model_of(all_rules: tuple[Clause, ...], held: list[Model], used: list[Clause]) -> Model:
    """All rows of what the used rules negate or group, and of what that rests on."""
    wanted = {
        part.atom.key for rule in used for part in rule.body if isinstance(part, Literal_) and part.negated
    }
    wanted |= {rule.head.key for rule in used if rule.transform is not None}
    size = -1
    while size != len(wanted):
        size = len(wanted)
        wanted |= {
            part.atom.key
            for rule in all_rules
            if rule.head.key in wanted
            for part in rule.body
            if isinstance(part, Literal_)
        }
    rules = [rule for rule in all_rules if rule.head.key in wanted]
    level = dict.fromkeys(wanted, 0)
    for _ in range(len(wanted) + 1):
        for rule in rules:
            for part in rule.body:
                if isinstance(part, Literal_):
                    above = level[part.atom.key] + (part.negated or rule.transform is not None)
                    level[rule.head.key] = max(level[rule.head.key], above)
    model: Model = {key: set().union(*(rows.get(key, ()) for rows in held)) for key in wanted}
    for number in sorted(set(level.values())):
        changed = True
        while changed:
            changed = False
            for rule in rules:
                if level[rule.head.key] == number:
                    new = _derive(rule, model) - model[rule.head.key]
                    model[rule.head.key] |= new
                    changed |= bool(new)
    return model


def _derive(rule: Clause, model: Model) -> set[Any]:
    names = list(dict.fromkeys(name for part in rule.body for name in names_of(part)))
    found = {tuple(known[name] for name in names) for known in _solve(list(rule.body), {}, model)}
    if rule.transform is not None:
        return heads_of(rule, found, names)
    return {
        tuple(value_in(arg, dict(zip(names, row, strict=True))) for arg in rule.head.args) for row in found
    }


def _solve(parts: list[Part], known: Known, model: Model) -> Iterator[Known]:
    if not parts:
        yield known
        return
    for at, part in enumerate(parts):  # the first that can be judged now; positive literals always can
        positive = isinstance(part, Literal_) and not part.negated and part.atom.pred[0] != ":"
        if _is_ready(part, known) or (positive and not any(_is_ready(item, known) for item in parts[at:])):
            for following in ways(part, known, model):
                yield from _solve(parts[:at] + parts[at + 1 :], following, model)
            return


def _is_ready(part: Part, known: Known) -> bool:
    if isinstance(part, Compare):
        free = [[name for name in _terms((side,)) if name not in known] for side in (part.left, part.right)]
        binds = part.op == "=" and any(
            isinstance(side, Var) and not other
            for side, other in ((part.left, free[1]), (part.right, free[0]))
        )
        return binds or not (free[0] or free[1])
    args = part.atom.args
    if part.atom.pred in GENERATORS and not part.negated:
        args = tuple(args[place] for place in GENERATORS[part.atom.pred].inputs)
    elif not part.negated and part.atom.pred[0] != ":":
        args = tuple(arg for arg in args if isinstance(arg, Apply))
    return all(name in known for name in _terms(args))


def ways(part: Part, known: Known, model: Model) -> Iterator[Known]:
    """Every way in which one literal holds."""
    if isinstance(part, Compare):
        for one, two in ((part.left, part.right), (part.right, part.left)):
            if part.op == "=" and isinstance(one, Var) and one.name not in known:
                yield {**known, one.name: value_in(two, known)}
                return
        if COMPARE[part.op](value_in(part.left, known), value_in(part.right, known)):
            yield known
        return
    atom = part.atom
    if atom.pred in TESTS:
        found_ways = iter(
            [known] if TESTS[atom.pred][1](*(value_in(arg, known) for arg in atom.args)) else []
        )
    elif atom.pred in GENERATORS:
        found = GENERATORS[atom.pred]
        outs = tuple(arg for place, arg in enumerate(atom.args) if place not in found.inputs)
        rows = found.call(*(value_in(atom.args[place], known) for place in found.inputs))
        found_ways = (way for row in rows for way in unify(outs, row, known))
    else:
        found_ways = (way for row in model[atom.key] for way in unify(atom.args, row, known))
    if not part.negated:
        yield from found_ways
    elif next(found_ways, None) is None:
        yield known


def unify(args: tuple[Term, ...], row: Any, known: Known) -> Iterator[Known]:
    found = dict(known)
    for arg, value in zip(args, row, strict=True):
        if isinstance(arg, Var):
            if found.setdefault(arg.name, value) != value:
                return
        elif isinstance(arg, Const | Apply) and value_in(arg, found) != value:
            return
    yield found


def heads_of(rule: Clause, rows: set[Any], names: list[str]) -> set[Any]:
    transform = rule.transform
    assert transform is not None
    groups: dict[Any, list[Known]] = {}
    for row in sorted(rows, key=order_row):
        known = dict(zip(names, row, strict=True))
        group = row if transform.keys is None else tuple(known[key.name] for key in transform.keys)
        groups.setdefault(group, []).append(known)
    heads = set()
    for members in groups.values():
        result = dict(members[0])
        for let in transform.lets:
            reducer = REDUCERS.get(let.term.function) if isinstance(let.term, Apply) else None
            if transform.keys is None or reducer is None:
                result[let.name] = value_in(let.term, result)
            else:
                args = let.term.args if isinstance(let.term, Apply) else ()
                values = [value_in(args[0], {**result, **member}) if args else 0 for member in members]
                result[let.name] = reducer.call(values)
        heads.add(tuple(value_in(arg, result) for arg in rule.head.args))
    return heads


def value_in(term: Term, known: Known) -> Any:
    if isinstance(term, Apply):
        return FUNCTIONS[term.function].call(*(value_in(arg, known) for arg in term.args))
    return known[term.name] if isinstance(term, Var) else term.value  # type: ignore[union-attr]


def _terms(terms: Iterable[Term]) -> list[str]:
    found: list[str] = []
    for term in terms:
        found += (
            [term.name] if isinstance(term, Var) else _terms(term.args) if isinstance(term, Apply) else []
        )
    return found


def names_of(part: Part) -> list[str]:
    return _terms((part.left, part.right) if isinstance(part, Compare) else part.atom.args)
