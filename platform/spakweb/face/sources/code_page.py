"""What the page Code shows of a model: one symbol with its neighbours, impact, tests and text, or the whole.

Takes a model and what was typed into the search field; gives a dictionary for the template. Everything of it
is as the repository has it, and hostile: the template escapes it, and the page shows signs that hide text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spak.errors import UsageError
from spak.world import rank
from spak.world.ask import Model, Reach, Symbol
from spak.world.index import symbol_id
from spakweb.face.sources import code_graph
from spakweb.face.sources.code_graph import name_of, query_of
from spakweb.ground.text import plural

MOST, MOST_TESTS = 100, 30
"""Rows of a table, tests of a list."""
MOST_FOUND, MOST_LISTED = 50, 2000
"""Symbols to choose from, and symbols whose files are listed for a folder."""
MOST_LINES, LONGEST_LINE = 400, 400
OVERVIEW_TOKENS = 700
CHOSEN = {
    "static": "Edges lead from each of them to the symbol, or to its class, whose members may be called too.",
    "importers": "No edge leads to a test: these are in files that import it, directly or not.",
    "all": "Nothing leads to a test, so any test may notice: these are all of them.",
}
Text = Callable[[str], str | None]


def shown(model: Model, words: str, text: Text) -> dict[str, Any]:
    """The page of what was asked for, or why there is none. `text` gives the text of a file by its path."""
    words = words.removeprefix("./")
    folder = _files(model, words) if "#" not in words else []
    if folder:
        return {"folder": words, "paths": folder, "covers": model.covers()}
    try:
        targets = model.target(words)
    except UsageError as why:
        found = model.symbols(words, MOST_FOUND) if why.code == "world.ambiguous" else []
        hint = "" if found else why.hint.replace("spak world symbols lists them", "Check the spelling.")
        return {
            "found": [(query_of(item.id), item) for item in found],
            "why": UsageError(why.code, f"{why.message[:1].upper()}{why.message[1:]}.", hint),
            "covers": model.covers(),
        }
    return _symbol(model, words, targets, text)


def _files(model: Model, words: str) -> list[str]:
    """The files of a folder; none where the words mean something else."""
    found = dict.fromkeys(item.path for item in model.symbols(words, MOST_LISTED)) if "/" in words else {}
    return [] if words in found else list(found)


def overview(model: Model) -> list[tuple[str, list[tuple[str, Symbol]]]]:
    """The symbols on which most depends, by file."""
    found = rank.overview(model, (), OVERVIEW_TOKENS)
    return [(path, [(query_of(item.id), item) for item in items]) for path, items in sorted(found.items())]


def _symbol(model: Model, words: str, targets: Sequence[Symbol], text: Text) -> dict[str, Any]:
    first, whole = targets[0], words == targets[0].path
    title = words if whole else first.qual
    around = [_module(words)] if whole else targets
    own = {item.id for item in (*around, *targets)}
    edges_in, edges_out, open_ends = model.around(around)
    sites = sorted(model.unknown(targets, ()).named)
    into, out = code_graph.callers(edges_in, sites), code_graph.callees(edges_out, open_ends)
    reach = model.impact(around)
    unknown = model.unknown(around, reach)
    chosen = rank.tests(model, targets)
    where = plural(len(targets), "symbol") if whole else f"{first.path}:{first.line}"
    return {
        "title": title,
        "symbol": None if whole else first,
        "path": first.path,
        "drawing": code_graph.drawn(title, where, into, out),
        "edges": [("from", into[:MOST], len(into)), ("to", out[:MOST], len(out))],
        "impact": [_reached(item, own) for item in reach[:MOST]],
        "impact_count": len(reach),
        "direct_count": sum(1 for item in reach if item.via in own),
        "files_count": len({item.path for item in reach}),
        "may": [row for row in into if row.guessed][:MOST],
        "tests": [(query_of(test), rank.node(test)) for test in chosen.tests[:MOST_TESTS]],
        "tests_count": len(chosen.tests),
        "rule": CHOSEN[chosen.rule],
        "source_text": _lines(text(first.path), targets, whole),
        "covers": model.covers(unknown.total),
    }


def _module(path: str) -> Symbol:
    return Symbol(symbol_id(path, ""), path, "", "module", "public", 1, 1, "")


def _reached(item: Reach, own: set[str]) -> dict[str, Any]:
    return {
        "query": query_of(item.symbol), "name": name_of(item.symbol), "path": item.path, "line": item.line,
        "how": item.how, "direct": item.via in own, "via": name_of(item.via), "via_query": query_of(item.via),
    }  # fmt: skip


def _lines(text: str | None, targets: Sequence[Symbol], whole: bool) -> dict[str, Any] | None:
    """The lines of a definition, or the first ones of a file, each with its number."""
    if text is None:
        return None
    lines = text.split("\n")
    start, end = (1, len(lines)) if whole else (targets[0].line, min(targets[0].end, len(lines)))
    chosen = lines[start - 1 : min(end, start - 1 + MOST_LINES)]
    return {
        "lines": [
            (number, line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…")
            for number, line in enumerate(chosen, start)
        ],
        "more": max(0, end - start + 1 - len(chosen)),
    }
