"""The checker accepts every proof of the engine and no corrupted one, even where all hashes are made anew."""

from __future__ import annotations

import copy
import inspect
import json
from typing import Any

from hypothesis import given as drawn
from hypothesis import strategies as st

from policy_kit import IDB, LAW, given, naive, random_program, text_of
from spak import canon
from spak.datalog import Name, load, proof_checker
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts
from spak.datalog.values import from_json, show_atom

SEEDS = st.integers(0, 10**6)


def proofs(seed: int) -> tuple[Any, Any, Any, list[Any]]:
    rules, facts = random_program(seed)
    policy = load({"random.mg": text_of(rules)})
    session = policy.session(given(facts))
    found = [prove(session, name, *row).to_json() for name in IDB for row in session.query(name)]
    return policy, (rules, facts), given(facts), found


def test_it_is_short_enough_to_be_read() -> None:
    assert len(inspect.getsource(proof_checker).splitlines()) <= 150


@LAW
@drawn(seed=SEEDS)
def test_every_proof_is_accepted(seed: int) -> None:
    policy, _, facts, found = proofs(seed)
    for document in found:
        assert accepts(policy, facts, document)
        assert accepts(policy, facts, json.loads(json.dumps(document)))


@LAW
@drawn(seed=SEEDS, data=st.data())
def test_no_change_of_a_proof_is_accepted(seed: int, data: Any) -> None:
    policy, _, facts, found = proofs(seed)
    if not found:
        return
    document = data.draw(st.sampled_from(found))
    places = [place for place in _places(document) if place[-1] not in ("at", "version")]
    for place in data.draw(st.lists(st.sampled_from(places), min_size=5, max_size=20)):
        changed = copy.deepcopy(document)
        holder: Any = changed
        for step in place[:-1]:
            holder = holder[step]
        match data.draw(st.sampled_from(["drop", "alter", "twice"])):
            case "drop":
                del holder[place[-1]]
            case "twice" if isinstance(holder, list) and place[0] != "nodes":
                holder.insert(place[-1], holder[place[-1]])
            case _:
                holder[place[-1]] = _other(holder[place[-1]])
        if changed != document:
            assert not accepts(policy, facts, changed), place


@LAW
@drawn(seed=SEEDS, data=st.data())
def test_a_forged_proof_with_true_hashes_proves_nothing_false(seed: int, data: Any) -> None:
    policy, (rules, raw), facts, found = proofs(seed)
    if not found:
        return
    true = naive(rules, raw)
    document = copy.deepcopy(data.draw(st.sampled_from(found)))
    others = [node for other in found for node in other["nodes"]]
    for _ in range(data.draw(st.integers(1, 4))):
        node = data.draw(st.sampled_from(document["nodes"]))
        other = data.draw(st.sampled_from(others))
        match data.draw(st.sampled_from(["args", "binding", "rule", "how", "body", "absent"])):
            case "args":
                node["args"] = [
                    data.draw(st.sampled_from([{"name": "/a"}, {"name": "/c"}])) for _ in node["args"]
                ]
            case "binding" if node.get("bindings"):
                node["bindings"] = [
                    [data.draw(st.sampled_from([value, {"name": "/b"}])) for value in node["bindings"][0]]
                ]
            case "rule" if "rule" in node and "rule" in other:
                node["rule"] = other["rule"]
            case "how":
                node["how"] = other["how"]
            case "body" if node.get("body") and other.get("body"):
                node["body"] = other["body"]
            case "absent" if node.get("body"):
                node["body"] = [entry if "node" in entry else {"absent": "p(/d)"} for entry in node["body"]]
    _seal(document)
    if accepts(policy, facts, document):
        root = document["nodes"][-1]
        row = tuple(str(from_json(value)) for value in root["args"])
        assert (root["pred"], row) in true


def test_a_proof_under_another_rule_or_of_another_policy_is_refused() -> None:
    text = "Decl q(X). Decl bad(X). p(X) :- q(X), !bad(X)."
    policy = load({"a.mg": text})
    facts = [("q", (Name("/a"),))]
    proof = prove(policy.session(facts), "p", Name("/a")).to_json()
    assert accepts(policy, facts, proof)
    assert not accepts(load({"a.mg": text + " p(X) :- bad(X)."}), facts, proof)
    assert not accepts(load({"a.mg": text.replace("!bad(X)", "!bad(/b)")}), facts, proof)
    for wrong in (None, 3, [], {}, {"nodes": []}, {"nodes": [1], "root": "", "policy": policy.hash}):
        assert not accepts(policy, facts, wrong)


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to everything in a document but the document itself."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for step, inner in steps:
        found += [(*above, step), *_places(inner, (*above, step))]
    return found


def _other(value: Any) -> Any:
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return [*value, "x"] if isinstance(value, list) else {**value, "x": 1} if isinstance(value, dict) else 0


def _seal(document: Any) -> None:
    """New names for all nodes, and new texts: whatever can be made to fit, fits."""
    names: dict[str, str] = {}
    for node in document["nodes"]:
        for entry in node.get("body", ()):
            if "node" in entry:
                entry["node"] = names.get(entry["node"], entry["node"])
        node["text"] = show_atom(node["pred"], [from_json(value) for value in node["args"]])
        content = {name: value for name, value in node.items() if name not in ("id", "text", "at")}
        names[node["id"]] = node["id"] = canon.content_hash(content)
    document["root"] = document["nodes"][-1]["id"]
