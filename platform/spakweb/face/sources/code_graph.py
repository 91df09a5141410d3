"""The graph around one symbol, as boxes and lines for a template: callers on the left, callees on the right.

Takes the edges of `Model.around` and the places that could not be followed; gives rows for the table, and the
drawing of the first of them. Pure; the template escapes every name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spak.lang.graph.measure import clean, shorten
from spak.world.ask import RULES, Edge

MOST_DRAWN = 9
"""Boxes on each side; the table has more."""
WIDE, HIGH, APART, BETWEEN, TIP = 252, 46, 10, 76, 8
INSET, FIRST, SECOND = 12, 20, 36
"""Where the texts of a box are, from its upper left corner."""
FOOT = 20
"""Room below the boxes for the reason of the edge that is pointed at."""
LETTERS, SMALL_LETTERS, REASON_LETTERS = 29, 36, 110
ROLES = {"over": "replaces", "base": "inherits from", "def": "is defined by"}
Site = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One edge, and why it is there. `other` is the symbol at the other end; empty where it is not known."""

    other: str
    name: str
    words: str
    """What the caller does: `uses`, `replaces`."""
    how: str
    path: str
    line: int
    rule: str
    guessed: bool = False

    @property
    def query(self) -> str:
        """As the page's search field names the symbol."""
        return query_of(self.other)

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Box:
    """A symbol next to the one in the middle, with the line between them as paths of SVG."""

    x: int
    y: int
    label: str
    where: str
    rows: tuple[Row, ...]
    """Its edges, a certain one first."""
    line: str
    tip: str

    @property
    def row(self) -> Row:
        """The first of its edges."""
        return self.rows[0]

    @property
    def why(self) -> str:
        """The reason of that edge, on one line."""
        return shorten(clean(f"{self.row.where} {self.row.words}: {self.row.rule}"), REASON_LETTERS)

    @property
    def text_x(self) -> int:
        """Where its texts begin."""
        return self.x + INSET

    @property
    def lines(self) -> tuple[int, int]:
        """The base lines of its two texts."""
        return self.y + FIRST, self.y + SECOND


@dataclass(frozen=True, slots=True)
class Drawing:
    """All boxes, and where the one in the middle is."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    x: int
    y: int
    label: str
    where: str
    left: int
    """Neighbours that are not drawn."""
    wide: int = WIDE
    high: int = HIGH
    reason_x: int = APART

    @property
    def reason_y(self) -> int:
        """The base line of the reason of an edge."""
        return self.height - APART // 2

    @property
    def text_x(self) -> int:
        """Where the texts of the one in the middle begin."""
        return self.x + INSET

    @property
    def lines(self) -> tuple[int, int]:
        """The base lines of its two texts."""
        return self.y + FIRST, self.y + SECOND


def query_of(symbol: str) -> str:
    """A symbol's id without its language: `src/cart.py#Cart.total`."""
    return symbol.partition(":")[2]


def name_of(symbol: str) -> str:
    """What a symbol is called within its file; of a module the path."""
    return symbol.partition("#")[2] or query_of(symbol)


def callers(edges: Iterable[Edge], sites: Iterable[Site]) -> list[Row]:
    """Who uses the symbol: certain edges, then places that name it without saying what they mean."""
    found = [_row(caller, caller, how, role, lines) for caller, _, how, role, lines in edges]
    return found + [
        Row(caller, name_of(caller), "may use", "", _path(caller), line, _unknown(name), True)
        for caller, name, line in sites
    ]


def callees(edges: Iterable[Edge], sites: Iterable[Site]) -> list[Row]:
    """What the symbol uses: certain edges, then what it names and could not be followed."""
    found = [_row(callee, caller, how, role, lines) for caller, callee, how, role, lines in edges]
    return found + [
        Row("", name, "names", "", _path(caller), line, _unknown(name), True) for caller, name, line in sites
    ]


def drawn(label: str, where: str, into: Sequence[Row], out: Sequence[Row]) -> Drawing:
    """The drawing of the first neighbours on each side. Lines lead from the caller to what it uses."""
    left, right = _grouped(into), _grouped(out)
    rows = max(1, *(min(len(side), MOST_DRAWN) for side in (left, right)))
    height = rows * (HIGH + APART) + APART
    middle = height // 2
    start = WIDE + BETWEEN + APART if left else APART
    end = start + WIDE
    boxes = [
        _box(APART, y, group, (APART + WIDE, y + HIGH // 2), (start, middle))
        for y, group in _stacked(left, height)
    ] + [
        _box(end + BETWEEN, y, group, (end, middle), (end + BETWEEN, y + HIGH // 2))
        for y, group in _stacked(right, height)
    ]
    return Drawing(
        width=(end + BETWEEN + WIDE if right else end) + APART,
        height=height + FOOT,
        boxes=tuple(boxes),
        x=start,
        y=middle - HIGH // 2,
        label=shorten(clean(label), LETTERS),
        where=shorten(clean(where), SMALL_LETTERS),
        left=sum(max(0, len(side) - MOST_DRAWN) for side in (left, right)),
    )


def _row(other: str, caller: str, how: str, role: str, lines: str) -> Row:
    line = int(lines.partition(" ")[0] or 0)
    rule = RULES.get(how, "")
    return Row(
        other, name_of(other), ROLES.get(role, "uses"), how, _path(caller), line,
        rule or "found by its name alone", not rule,
    )  # fmt: skip


def _unknown(name: str) -> str:
    return f"it names {shorten(clean(name), 60)}, and what that is there is not known"


def _path(symbol: str) -> str:
    return query_of(symbol).partition("#")[0]


def _grouped(rows: Sequence[Row]) -> list[tuple[Row, ...]]:
    """The rows by the symbol at their other end, those with a certain edge first."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.guessed):
        found.setdefault(row.other or f"?{row.name}", []).append(row)
    return [tuple(group) for group in found.values()]


def _stacked(groups: Sequence[tuple[Row, ...]], height: int) -> list[tuple[int, tuple[Row, ...]]]:
    shown = groups[:MOST_DRAWN]
    top = (height - len(shown) * (HIGH + APART) + APART) // 2
    return [(top + number * (HIGH + APART), group) for number, group in enumerate(shown)]


def _box(x: int, y: int, rows: tuple[Row, ...], start: tuple[int, int], end: tuple[int, int]) -> Box:
    half = (start[0] + end[0]) // 2
    row = rows[0]
    return Box(
        x=x,
        y=y,
        label=shorten(clean(row.name), LETTERS),
        where=shorten(clean(row.where), SMALL_LETTERS),
        rows=rows,
        line=f"M{start[0]} {start[1]}C{half} {start[1]} {half} {end[1]} {end[0] - TIP} {end[1]}",
        tip=f"M{end[0]} {end[1]}l-{TIP} -4v8z",
    )
