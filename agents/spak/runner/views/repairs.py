"""What the last search of a repair ended with: its counts, and its patch with the verdicts or its refusal.

Takes records in order and the blobs that they name; gives the dictionary that `spak repair --json` has under
`repair`. A projection of the ledger for the command line and for pages: it decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spak.ports import Blobs
from spak.records import Kind, Record
from spak.runner.blobs import expand

PROPOSER = "repair"


def ended(records: Iterable[Record], blobs: Blobs, proposer: str = PROPOSER) -> dict[str, Any]:
    """`search`, `refusal`, `patch` and `checks`, as far as the newest plan of the proposer has them; empty
    where it made no plan yet. `by` says that the patch is a model's, and which; `model` is the model's name
    with why its patch was refused.

    Raises: LedgerError where a blob is missing.
    """
    plans = [record.body for record in records if record.kind == Kind.PLAN]
    bodies = [body for body in plans if body.get("by") == proposer]
    if not bodies:
        return {}
    body: Mapping[str, Any] = expand(bodies[-1], blobs)
    found = {name: body[name] for name in ("search", "refusal") if name in body}
    search = found.get("search", {})
    if isinstance(refused := search.get("model"), Mapping):
        found["model"] = {"name": body.get("model", ""), **refused}
    if search.get("by") == "model":
        found["by"] = f"model {body.get('model', '')}"
    for candidate in body["candidates"]:
        found |= {"patch": candidate["args"]["patch"], "checks": candidate["checks"]}
    return found


def unsafe(records: Iterable[Record], blobs: Blobs) -> dict[str, Any]:
    """`path` and `symbols` where the guard of symbols holds the newest plan's patch back: the file that it
    changes, and each symbol that depends on it with why that is not safe (`untested`, `unresolved`,
    `unparsed`). Empty where the law permitted it or had another reason.

    Raises: LedgerError where a blob is missing.
    """
    rows: list[Any] = []
    denied = False
    for record in records:
        if record.kind == Kind.PLAN:
            rows, denied = [], False
        elif record.kind == Kind.OBSERVE:
            rows += expand(record.body, blobs).get("facts", {}).get("rows", ())
        elif record.kind == Kind.PERMIT and record.body["act"] == "tool":
            denied = record.body["allow"] is not True
    impacts = [row for (pred, _), found in rows if pred == "symbol_impact" for row in found]
    if not denied or not impacts:
        return {}
    return {
        "path": impacts[0][1],
        "symbols": {symbol: cover["name"].removeprefix("/") for symbol, _, cover in impacts},
    }


def counts(found: Mapping[str, Any]) -> str:
    """The figures of a search in a line; empty where it did not come to the tests."""
    search = found.get("search", {})
    if "tests" not in search:
        return ""
    visible, hidden, tried, of, passing = (
        search.get(name, 0) for name in ("visible", "hidden", "tried", "candidates", "passing")
    )
    return (
        f"{search['tests']} tests, {visible} seen and {hidden} hidden;"
        f" {tried} of {of} edits tried, {passing} pass"
    )


def shown(patch: str) -> list[str]:
    """The lines of a patch as people read them: without the hashes of the files before it."""
    return [line for line in patch.rstrip("\n").split("\n") if not line.startswith("before-hash ")]


def changed(patch: str) -> list[str]:
    """The lines that a patch adds or removes."""
    return [
        line for line in patch.split("\n") if line[:1] in ("+", "-") and not line.startswith(("+++", "---"))
    ]
