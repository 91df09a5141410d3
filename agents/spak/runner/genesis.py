"""Genesis: the first record of a run, which holds all that its replay will need.

Takes the spec's text, what it was compiled with and where it runs; gives the body of the record. `rules` is
all that `step` may read; `host` is for people and for resuming, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel.rules import SEMANTICS
from spak.lang.catalog import Catalog
from spak.records import FORMAT

BUILTIN = "builtin:tool-in-TOOLS-and-launcher"
"""The policy of a spec that has none."""


def genesis(
    spec: str,
    catalog: Catalog,
    inputs: Mapping[str, Any],
    r3: str,
    seed: int,
    host: Mapping[str, Any],
    proposer: str = "",
    policy: str = "",
) -> dict[str, Any]:
    """The body of a genesis record. `spec` has its imports resolved; `proposer` overrides who fills plans
    (`model`: nobody but a model); `policy` is the text of the spec's POLICY, which is carried and not yet
    evaluated: the built-in rule decides."""
    rules: dict[str, Any] = {
        "semantics": SEMANTICS,
        "spec": spec,
        "policy": policy or BUILTIN,
        "inputs": dict(inputs),
        "catalog": catalog.to_json(),
        "limits": {},
        "seed": seed,
        "r3": r3,
        "keys": [],
    }
    if proposer:
        rules["proposer"] = proposer
    return {"v": FORMAT, "rules": rules, "host": dict(host)}
