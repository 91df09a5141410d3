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


def genesis(
    spec: str,
    catalog: Catalog,
    inputs: Mapping[str, Any],
    r3: str,
    seed: int,
    host: Mapping[str, Any],
    proposer: str = "",
) -> dict[str, Any]:
    """The body of a genesis record. `proposer` overrides who fills plans (`model`: nobody but a model)."""
    rules: dict[str, Any] = {
        "semantics": SEMANTICS,
        "spec": spec,
        "policy": "builtin:tool-in-TOOLS-and-launcher",
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
