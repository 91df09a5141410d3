"""`find_symbol`, `references`, `impact`, `code_map`: what a workspace defines, and what rests on what.

The answers are those of `spak world` (docs/world.md), each with what it covers; `path` narrows them to a file
or folder. The index is a file beside the workspace, a cache that goes with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spak import canon, paths
from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results

if TYPE_CHECKING:
    from spak.world.ask import Model, Unknown

MOST = 500
Within = Callable[[str], bool]


def _entry(name: str, summary: str) -> ToolEntry:
    return ToolEntry(
        name=name,
        version=1,
        summary=summary,
        schema=parts.members(
            ["symbol"],
            symbol=parts.text("`PATH#NAME`, a path, or a name.", 1024),
            path=parts.path(default="."),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"symbol": "text", "path": "reads=."},
    )


class FindSymbol:
    """The tool `find_symbol`."""

    entry = _entry("find_symbol", "Lists symbols of the workspace's code with lines and signatures, as JSON.")

    def run(self, call: Call) -> ToolResult:
        """Exit 0; 1 for a symbol that is not there."""
        return results.guarded(lambda call: _answer(call, _found), call)


class References:
    """The tool `references`."""

    entry = _entry("references", "Lists the places of the workspace's code that refer to a symbol, as JSON.")

    def run(self, call: Call) -> ToolResult:
        """Exit 0; 1 for a symbol that is not there."""
        return results.guarded(lambda call: _answer(call, _references), call)


class Impact:
    """The tool `impact`."""

    entry = _entry(
        "impact", "Lists what depends on a symbol, directly or not, and the tests among it, as JSON."
    )

    def run(self, call: Call) -> ToolResult:
        """Exit 0; 1 for a symbol that is not there."""
        return results.guarded(lambda call: _answer(call, _impact), call)


class CodeMap:
    """The tool `code_map`."""

    entry = ToolEntry(
        name="code_map",
        version=1,
        summary="Prints the signatures of the workspace's code that matter most, by file, as many as fit.",
        schema=parts.members(
            [],
            tokens=parts.whole("How long the map may be.", 20, 100_000, 1000),
            path=parts.path(default="."),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"tokens": "text", "path": "reads=."},
    )

    def run(self, call: Call) -> ToolResult:
        """Exit 0, with an empty map where there is no code."""
        return results.guarded(_mapped, call)


def _mapped(call: Call) -> ToolResult:
    from spak.world import rank

    with _model(call) as (model, within):
        found = rank.overview(model, (), int(call.args.get("tokens", 1000)))
        covers = model.covers().to_json()
    lines = []
    for path, symbols in sorted(found.items()):
        if within(path):
            lines += [f"{path}:", *map(rank.line, symbols)]
    counts = ", ".join(f"{count} {name}" for name, count in covers.items())
    return results.done("\n".join((*lines, f"covers: {counts}\n")).encode())


def _answer(call: Call, question: Callable[[Model, str, Within], Mapping[str, Any]]) -> ToolResult:
    with _model(call) as (model, below):

        def within(symbol: str) -> bool:
            return below(symbol.partition("#")[0].partition(":")[2])

        shown = question(model, str(call.args["symbol"]), within)
    return results.done(canon.dumps(shown) + b"\n")


@contextmanager
def _model(call: Call) -> Iterator[tuple[Model, Within]]:
    """The model of the workspace as it is now, and which paths are asked for."""
    from spak.world.ask import Model
    from spak.world.index import update
    from spak.world.store import Store

    top = "/".join(paths.normalise(str(call.args.get("path", "."))))
    store = Store(call.workspace.parent / paths.CODE)
    try:
        update(store, call.workspace, call.cancel)
        yield Model(store, call.workspace), lambda path: top in ("", path) or path.startswith(f"{top}/")
    finally:
        store.close()


def _found(model: Model, words: str, within: Within) -> Mapping[str, Any]:
    found = [symbol for symbol in model.symbols(words) if within(symbol.id)]
    rows = [
        {"symbol": one.id, "kind": one.kind, "line": one.line, "end": one.end, "signature": one.signature}
        for one in (found or [symbol for symbol in model.target(words) if within(symbol.id)])
    ]
    return _cut("symbols", rows) | {"covers": model.covers().to_json()}


def _references(model: Model, words: str, within: Within) -> Mapping[str, Any]:
    targets = model.target(words)
    edges = model.callers(symbol.id for symbol in targets)
    rows = [
        {
            "symbol": caller,
            "of": callee,
            "how": how,
            "role": role,
            "lines": [int(line) for line in lines.split()],
        }
        for caller, callee, how, role, lines in edges
        if within(caller)
    ]
    return _cut("references", rows) | _unresolved(model.unknown(targets, ()), model, within)


def _impact(model: Model, words: str, within: Within) -> Mapping[str, Any]:
    targets = model.target(words)
    whole = model.impact(targets)
    reach = [item for item in whole if within(item.symbol)]
    rows = [{"symbol": one.symbol, "line": one.line, "how": one.how, "via": one.via} for one in reach]
    tests = [item.symbol for item in reach if model.is_test(item.symbol)]
    return (
        _cut("impacted", rows)
        | _cut("tests", tests)
        | _unresolved(model.unknown(targets, whole), model, within)
    )


def _unresolved(unknown: Unknown, model: Model, within: Within) -> dict[str, Any]:
    sites, dynamic = (sorted(place for place in places if within(place[0])) for places in unknown)
    may = [{"symbol": caller, "name": name, "line": line} for caller, name, line in sites]
    by = [{"symbol": caller, "by": means, "line": line} for caller, means, line in dynamic]
    covers = model.covers(unknown.total).to_json()
    return _cut("may", may) | _cut("dynamic", by) | {"covers": covers}


def _cut(name: str, rows: list[Any]) -> dict[str, Any]:
    """The first rows, and how many there are besides."""
    left = {f"{name}_left_out": len(rows) - MOST} if len(rows) > MOST else {}
    return {name: rows[:MOST], **left}
