"""What the model of the code says to laws: symbols, links between them, and what a change would touch.

    symbol_graph(Symbol, Kind, Visibility, DefinedAt, Signature)   the symbols of a file, or one symbol
    symbol_link(Caller, Callee, How)                               edges, and how each was found
    symbol_impact(Symbol, Changed, Cover)                          what depends on a file or symbol

Each is a Predicate (spak.ports.predicates). The model is brought up to date before each answer (spak.world);
symbols are its ids, `py:src/a.py#C.f`. Cover is `/tested` where a test depends on the symbol too, `/untested`
where none does, `/unresolved` where code only names something that the change has, or `/unparsed` for a file
without all of its facts, which may depend on anything. Symbols of files of tests are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.datalog.values import Name, Value
from spak.ports.predicates import Look, Predicate, PredicateEntry

if TYPE_CHECKING:
    from spak.world.ask import Model

Row = tuple[Any, ...]
MAX_ROWS = 5000
TIMEOUT_S = 300.0


@contextmanager
def _model(look: Look) -> Iterator[Model]:
    from spak.world.ask import Model
    from spak.world.index import update
    from spak.world.store import Store

    store = Store(look.index or Path(":memory:"))
    try:
        update(store, look.root, look.cancel)
        yield Model(store, look.root)
    finally:
        store.close()


def _graph(args: Sequence[Value | None], look: Look) -> Iterable[Row]:
    asked = args[0] if args[0] is not None else args[3]
    with _model(look) as model:
        found = model.meant(str(asked))
    return [
        (one.id, Name(f"/{one.kind}"), Name(f"/{one.visibility}"), one.path, one.signature) for one in found
    ]


def _link(args: Sequence[Value | None], look: Look) -> Iterable[Row]:
    with _model(look) as model:
        edges = model.callers([str(args[1])]) if args[0] is None else model.callees([str(args[0])])
    return sorted({(caller, callee, Name(f"/{how}")) for caller, callee, how, _, _ in edges}, key=str)


def _impact(args: Sequence[Value | None], look: Look) -> Iterable[Row]:
    from spak.world.rank import cover

    changed = str(args[1])
    if changed not in look.shared.setdefault("impact", {}):
        with _model(look) as model:
            look.shared["impact"][changed] = cover(model, changed)
    return [
        (symbol, changed, Name(f"/{how}"))
        for symbol, how in look.shared["impact"][changed]
        if args[2] in (None, Name(f"/{how}"))
    ]


@dataclass(slots=True)
class OfSymbols:
    """A Predicate about the symbols of the workspace's code."""

    entry: PredicateEntry
    answer: Callable[[Sequence[Value | None], Look], Iterable[Row]]

    def rows(self, args: Sequence[Value | None], look: Look) -> Iterable[Row]:
        return self.answer(args, look)


def _of(
    columns: str, modes: str, summary: str, answer: Callable[..., Iterable[Row]]
) -> tuple[str, OfSymbols]:
    name, *names = columns.split()
    entry = PredicateEntry(name, 1, summary, tuple(names), tuple(modes.split()), MAX_ROWS, TIMEOUT_S)
    return name, OfSymbols(entry, answer)


OF_SYMBOLS: Mapping[str, Predicate] = dict(
    (
        _of(
            "symbol_graph Symbol Kind Visibility DefinedAt Signature",
            "+---- ---+-",
            "A symbol, or the symbols of a file.",
            _graph,
        ),
        _of("symbol_link Caller Callee How", "+-- -+- ++-", "Which symbol depends on which.", _link),
        _of("symbol_impact Symbol Changed Cover", "-+- -++", "What a change would touch.", _impact),
    )
)
"""What can be asked, by name."""
