"""An independent judge of proofs: `accepts(policy, facts, proof)`.

It shares with the engine only the tree of the rules and the tables of built-ins, which are the language. It
knows nothing of indexes, deltas or orders: what a proof says of a rule it puts into the rule's text and looks
whether that holds; what it says is absent, and what a grouping has counted, it finds out by evaluating the
rules below as simply as can be (every rule against every row until nothing is new).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spak import canon
from spak.errors import UserError
from spak.policy.format import plain
from spak.policy.lint import GIVEN
from spak.policy.plainly import Model, heads_of, model_of, names_of, unify, value_in, ways
from spak.policy.session import Policy
from spak.policy.syntax import Clause, Literal_
from spak.policy.values import Fact, encode, from_json


def accepts(policy: Policy, facts: Iterable[Fact], proof: Any) -> bool:
    """True when the proof (or its JSON) shows its last node from these facts under this policy."""
    document = proof if isinstance(proof, Mapping) else proof.to_json()
    try:
        return _accepts(policy, facts, document)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, UserError):
        return False


def _accepts(policy: Policy, facts: Iterable[Fact], document: Mapping[str, Any]) -> bool:
    given: Model = {}
    for pred, args in facts:
        row = tuple(encode(arg) for arg in args)
        given.setdefault((pred, len(row)), set()).add(row)
    stated: Model = {}
    for key, row in policy.facts:
        stated.setdefault(key, set()).add(row)
    for held in (given, stated):
        for key in policy.closures & set(held):
            held.setdefault((GIVEN.format(key[0]), key[1]), set()).update(held[key])
    rules = {canon.content_hash(plain(rule)): rule for rule in policy.rules}
    nodes = document["nodes"]
    used = [rules[node["rule"]] for node in nodes if node["how"] == "rule"]
    model = model_of(policy.rules, [given, stated], used)
    proven: dict[str, tuple[str, Any]] = {}
    for node in nodes:
        row = tuple(from_json(item) for item in node["args"])
        names = ("pred", "args", "how", "rule", "bindings", "body")
        if canon.content_hash({name: node[name] for name in names if name in node}) != node["id"]:
            return False
        if node["how"] in ("given", "stated"):
            if row not in (given if node["how"] == "given" else stated).get((node["pred"], len(row)), ()):
                return False
        elif not _applies(rules[node["rule"]], node, row, proven, model):
            return False
        proven[node["id"]] = (node["pred"], row)
    return bool(nodes) and document["root"] == nodes[-1]["id"] and document["policy"] == policy.hash


def _applies(
    rule: Clause, node: Mapping[str, Any], row: Any, proven: Mapping[str, Any], model: Model
) -> bool:
    """The rule with these values gives this row, and all of its body is proven, absent or true."""
    names = list(dict.fromkeys(name for part in rule.body for name in names_of(part)))
    bindings = [tuple(from_json(item) for item in binding) for binding in node["bindings"]]
    parts = iter(node["body"])
    for binding in bindings:
        known = dict(zip(names, binding, strict=True))
        for part in rule.body:
            entry = next(parts)
            if isinstance(part, Literal_) and not part.negated and part.atom.pred[0] != ":":
                pred, found = proven[entry["node"]]
                if pred != part.atom.pred or len(found) != len(part.atom.args):
                    return False
                if next(unify(part.atom.args, found, known), None) is None:
                    return False
            elif "node" in entry or next(ways(part, known, model), None) is None:
                return False
    if node["pred"] != rule.head.pred or next(parts, None) is not None or not bindings:
        return False
    if rule.transform is None:
        return len(bindings) == 1 and tuple(value_in(arg, known) for arg in rule.head.args) == row
    return row in heads_of(rule, set(bindings), names) and row in model.get(rule.head.key, ())
