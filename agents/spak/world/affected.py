"""Which tests the changes of a folder need, for the option `tests: affected` of PyTest.

Takes a folder and the files of it that changed, with what they held before; gives the tests that need not
run, and the rule that chose the others for each changed symbol. A test that the model does not know runs. Of
a changed Python file it looks at the symbols whose lines changed, and at the whole file where other lines
did. What it cannot judge leads to all tests: a change of another kind of file, of a conftest or of settings,
a file that does not parse, a symbol that nothing leads from.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spak.cancel import Cancel
from spak.errors import UsageError
from spak.world import rank
from spak.world.ask import Model, Symbol
from spak.world.index import update
from spak.world.store import Store

SHOWN = 20
UNSEEN = ("conftest.py", "setup.py", "__main__.py")
"""Names of Python files that no import leads to."""


class Affected(NamedTuple):
    """The tests that may be left out, as pytest names them without parameters, and what the record says."""

    left: tuple[str, ...]
    evidence: dict[str, Any]


def affected(
    folder: Path, changes: Mapping[str, bytes | None], index: Path, cancel: Cancel | None = None
) -> Affected:
    """The tests to leave out. `changes` has what a file held before, None where it was not there; `index` is
    the file of the model, which is brought up to date."""
    if not changes:
        return _all("nothing changed")
    for path in changes:
        if not path.endswith(".py") or path.rpartition("/")[2] in UNSEEN:
            return _all(f"{path} may concern any test")
    try:
        store = Store(index)
        try:
            update(store, folder, cancel)
            return _chosen(Model(store, folder), changes)
        finally:
            store.close()
    except UsageError as error:
        return _all(f"there is no model of the code: {error.message}")


def _all(reason: str) -> Affected:
    return Affected((), {"selection": {"rule": "all", "reason": reason}})


def _chosen(model: Model, changes: Mapping[str, bytes | None]) -> Affected:
    found: dict[str, None] = {}
    rules: dict[str, str] = {}
    for path, before in changes.items():
        there = model.root / path
        if before is None or not there.is_file() or model.unparsed(path):
            return _all(f"{path} is new, gone or does not parse")
        symbols = _touched(model, path, before, there.read_bytes())
        choices = {item.id: rank.tests(model, [item]) for item in symbols} or {
            path: rank.of_file(model, path)
        }
        for name, chosen in choices.items():
            if chosen.rule == "all":
                return _all(f"nothing leads from {name} to a test")
            rules[name] = chosen.rule
            found.update(dict.fromkeys(chosen.tests))
    known = {rank.node(item.id) for item in model.symbols() if model.is_test(item.id)}
    kept = set(map(rank.node, found))
    shown = {"rule": "symbols", "changed": dict(list(rules.items())[:SHOWN]), "tests": len(kept)}
    return Affected(tuple(sorted(known - kept)), {"selection": shown})


def _touched(model: Model, path: str, before: bytes, after: bytes) -> list[Symbol]:
    """The innermost symbols that hold all the lines that changed; none where other lines did too."""
    symbols = [item for item in model.symbols(path) if item.kind in ("function", "class", "interface")]
    touched: dict[str, Symbol] = {}
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    for tag, _, _, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        # lines that went leave no line behind: those around the gap hold what they were in
        low, high = (first + 1, last) if first < last else (max(first, 1), first + 1)
        around = [item for item in symbols if item.line <= low and high <= item.end]
        if not around:
            return []
        inner = max(around, key=lambda item: item.line)
        touched[inner.id] = inner
    return list(touched.values())
