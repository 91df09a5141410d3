"""Genesis: the first record of a run, which holds all that its replay will need.

Takes the spec's text, what it was compiled with and where it runs; gives the body of the record. `rules` is
all that `step` may read; `host` is for people and for resuming, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from spak import data
from spak.lang.catalog import Catalog
from spak.policy.law import GUARD, Law, policy_hash
from spak.program.semantics import SEMANTICS
from spak.records import FORMAT

GUARDS = {
    "flow": "specs/laws/flow.mg",
    "refactor": "specs/policy/guards/lines.mg",
    "symbols": "specs/policy/guards/lines.mg",
    "tdd": "specs/policy/strategies/tdd.mg",
}
"""Shipped laws that apply where a spec asks for them, `guard(/NAME)`: a guard, or the moves of a strategy."""

SERVERS = "specs/policy/guards/mcp.mg"
"""The shipped law of runs that have tools of MCP servers."""


def genesis(
    spec: str,
    catalog: Catalog,
    inputs: Mapping[str, Any],
    r3: str,
    seed: int,
    host: Mapping[str, Any],
    proposer: str = "",
    policy: str = "",
    axioms: Mapping[str, str] | None = None,
    keys: Sequence[Mapping[str, Any]] = (),
    law: Law | None = None,
    problems: Mapping[str, str] | None = None,
    searches: Mapping[str, Mapping[str, Any]] | None = None,
    sealed: str = "",
) -> dict[str, Any]:
    """The body of a genesis record. `spec` has its imports resolved; `proposer` overrides who fills plans
    (`model`: nobody but a model); `policy` is the text of the spec's POLICY, `axioms` its AXIOMs that are
    rules, by name; `keys` are the approvers'; `law` is that of those in charge, else the one that ships;
    `problems` are the files that its validators measure by, and `searches` what each task's search begins
    with (spak.runner.searches); `sealed` is the hash of the checks that judge what it made at its end.

    Raises: PolicyError when the policy does not load.
    """
    law = shipped() if law is None else law
    rules: dict[str, Any] = {
        "kernel": SEMANTICS,
        "spec": spec,
        "policy": {
            **law.to_json(),
            "spec": policy,
            "axioms": dict(axioms or {}),
            "hash": policy_hash(law, policy, axioms or {}),
        },
        "inputs": dict(inputs),
        "catalog": catalog.to_json(),
        "limits": {},
        "seed": seed,
        "r3": r3,
        "keys": [dict(key) for key in keys],
    }
    if proposer:
        rules["proposer"] = proposer
    if problems:
        rules["problems"] = dict(problems)
    if searches:
        rules["searches"] = {task: dict(search) for task, search in searches.items()}
    if sealed:
        rules["sealed"] = sealed
    return {"v": FORMAT, "rules": rules, "host": dict(host)}


@cache
def constitution() -> Mapping[str, str]:
    """The files of the shipped constitution that always stand, by name."""
    files = sorted(data.path("specs/policy").glob("*.mg"))
    return {file.name: file.read_text(encoding="utf-8") for file in files}


@cache
def all_shipped() -> Mapping[str, str]:
    """The constitution, and the files that stand where somebody asks for their guard (`Law.with_guards`)."""
    files = {f"{GUARD}{name}.mg": data.path(path) for name, path in GUARDS.items()}
    return {**constitution(), **{name: file.read_text(encoding="utf-8") for name, file in files.items()}}


def of_servers(law: Law) -> Law:
    """The law with the rules about tools of MCP servers, for runs that have some."""
    text = data.path(SERVERS).read_text(encoding="utf-8")
    return replace(law, shipped={**law.shipped, SERVERS.rpartition("/")[2]: text})


def shipped() -> Law:
    """The law where no operator and no team says more."""
    return Law(all_shipped())
