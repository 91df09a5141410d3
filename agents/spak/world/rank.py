"""Which tests a change needs, and which symbols a reader needs first.

Takes a Model; gives tests with the rule that chose them, and a map: signatures by file, the most important
ones that fit a budget. Importance spreads from the symbols that are asked for along edges in both directions;
without any, it is how many others depend on a symbol.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spak.world import scan
from spak.world.ask import Model, Symbol
from spak.world.index import symbol_id

ROUNDS = 3
SPREAD = 0.5
CHARACTERS = 4
"""Of a token, about."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Tests and the rule: `static` edges with changes widened to their class, `importers` of the files, or
    `all` where neither leads to a test."""

    rule: str
    tests: tuple[str, ...]


def tests(model: Model, targets: Sequence[Symbol]) -> Chosen:
    """The tests that may notice a change. Where no edge leads to one: those of files that import the changed
    files, directly or through others, and where there is none of these either, all."""
    reached = {reach.symbol for reach in model.impact(targets, wide=True)} | {item.id for item in targets}
    loading = {path for path in map(_path, reached) if f"py:{path}" in reached and scan.is_test(path)}
    everything = [symbol for symbol in model.symbols() if model.is_test(symbol.id)]
    found = [item.id for item in everything if item.id in reached or item.path in loading]
    found += sorted(item for item in reached if "#" not in item and model.is_test(item))
    if found:
        return Chosen("static", tuple(found))
    return _of_files(model, {item.path for item in targets}, everything)


def node(test: str) -> str:
    """A test as pytest names it, without parameters; of one that is defined again both are meant. A file of
    JavaScript's tests is its path."""
    path, _, qual = test.partition(":")[2].partition("#")
    return "::".join((path, *(part.partition("~")[0] for part in qual.split(".") if part)))


def _of_files(model: Model, paths: set[str], everything: Sequence[Symbol]) -> Chosen:
    files = _importers(model, paths)
    found = tuple(item.id for item in everything if item.path in files)
    return Chosen("importers", found) if found else Chosen("all", tuple(item.id for item in everything))


def cover(model: Model, changed: str) -> list[tuple[str, str]]:
    """What a change of a file or symbol would touch outside of tests, each as `tested`, `untested`,
    `unresolved` (it names something that the change has or reaches, and what it means is not known) or
    `unparsed` (facts of a file are missing: it may depend on anything). A symbol of a file with places whose
    meaning only a run reveals counts as the whole file."""
    path = _path(changed) if "#" in changed else changed
    if scan.is_test(path):
        return []
    if model.dynamic([path]):
        changed = path
    targets = model.meant(changed)
    reach = model.impact(targets)
    symbols = [item.symbol for item in reach]
    tested = model.tested(symbols)
    found = {symbol: "tested" if symbol in tested else "untested" for symbol in symbols}
    own = model.own(targets)
    for caller, _, _ in (place for places in model.unknown(targets, reach) for place in places):
        if caller not in own and (changed != path or _path(caller) != path):
            found.setdefault(caller, "unresolved")
    found.update((symbol_id(where, ""), "unparsed") for where in model.partial(path))
    return sorted(
        (symbol, how)
        for symbol, how in found.items()
        if not scan.is_test(_path(symbol)) and not model.is_test(symbol)
    )


def _importers(model: Model, paths: Iterable[str]) -> set[str]:
    found, front = set(paths), list(paths)
    while front:
        rows = model.store.rows(
            "SELECT DISTINCT file.path FROM dep JOIN file ON file.id = dep.file"
            " JOIN file own ON own.id = target WHERE own.tree = ? AND own.path = ?",
            [model.tree, front.pop()],
        )
        fresh = {row[0] for row in rows} - found
        found |= fresh
        front += fresh
    return found


def overview(model: Model, targets: Sequence[Symbol], tokens: int) -> dict[str, list[Symbol]]:
    """The symbols of a map by file, in the order of the text; both as many as fit."""
    symbols = {symbol.id: symbol for symbol in model.symbols() if not model.is_test(symbol.id)}
    edges = model.store.rows(
        "SELECT DISTINCT a.text, b.text FROM link JOIN name a ON a.id = caller JOIN name b ON b.id = callee"
        " WHERE tree = ?",
        [model.tree],
    )
    energy = _spread([item.id for item in targets], edges) if targets else _degrees(edges)
    ranked = sorted(symbols, key=lambda name: (-energy.get(name, 0.0), name))
    kept: dict[str, list[Symbol]] = defaultdict(list)
    left = tokens * CHARACTERS
    for name in ranked:
        symbol = symbols[name]
        cost = len(line(symbol)) + 1 + (0 if symbol.path in kept else len(symbol.path) + 2)
        if cost > left:
            break
        left -= cost
        kept[symbol.path].append(symbol)
    return {path: sorted(found, key=lambda item: (item.line, item.qual)) for path, found in kept.items()}


def line(symbol: Symbol) -> str:
    """A symbol as a map shows it."""
    sign = symbol.signature if symbol.kind in ("function", "class", "interface") else ""
    return f"  {symbol.line}: {symbol.kind} {symbol.qual}{sign}"


def _degrees(edges: Sequence[tuple[str, ...]]) -> Mapping[str, float]:
    found: dict[str, float] = defaultdict(float)
    for _, callee in edges:
        found[callee] += 1.0
    return found


def _spread(starts: Sequence[str], edges: Sequence[tuple[str, ...]]) -> Mapping[str, float]:
    near: dict[str, list[str]] = defaultdict(list)
    for caller, callee in edges:
        near[caller].append(callee)
        near[callee].append(caller)
    energy: dict[str, float] = dict.fromkeys(starts, 1.0)
    front = dict(energy)
    for _ in range(ROUNDS):
        after: dict[str, float] = defaultdict(float)
        for name, amount in sorted(front.items()):
            for other in near[name]:
                after[other] += SPREAD * amount / len(near[name])
        for name, amount in after.items():
            energy[name] = energy.get(name, 0.0) + amount
        front = after
    return energy


def _path(symbol: str) -> str:
    return symbol.partition("#")[0].partition(":")[2]
