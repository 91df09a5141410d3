"""The state of folds: what a run keeps of its past, bounded by the declarations.

Takes folds (spak.datalog.folds), the rows that events feed and how each event ended; gives a new History, the
rows that a decision sees, and the answer to a question by key. A History is a value that never changes, and
does not grow with the number of events. The order in which calls end changes nothing: what a call fed counts
from its request, and is merged by the sequence of events. It reads no clock and derives nothing.

What an event feeds counts at once (`asked`), once it was carried out (`done`), or from the moment it was
permitted until it is known to have failed (`held`). A row that closes and follows from the request is `held`
whatever the fold counts, so that one approval is used once; one that follows from the answer closes then.
Time is an input and never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from spak import canon
from spak.datalog.folds import Fold
from spak.datalog.values import MAX_INT, MIN_INT, Fact, Row, decode, from_json, order_row, to_json

KEY_BYTES = 256
"""Bytes of JSON of one column of a key, or of the value that `last` keeps."""
MOST_CALLS = 256
"""Calls under way at once."""

Folds = Mapping[str, Fold]
Fed = tuple[tuple[str, bool, Row], ...]
"""What one event feeds: the fold, whether the row closes, the row (inside form)."""


class Full(Exception):
    """A fold has no room for what an event feeds."""


class Moment(NamedTuple):
    """When an event was: its time in milliseconds, its step, its place in the order, its record."""

    at: int
    step: int
    seq: int
    record: int


class Addend(NamedTuple):
    """One addend of a window."""

    mark: Moment
    value: int


class Total(NamedTuple):
    """What was added without a window, with the first and the last record that added to it."""

    value: int
    entries: int
    first: int
    last: int


class Open(NamedTuple):
    """What was opened last, and the sequence of what closed it last (0 for never)."""

    mark: Moment | None
    closed: int


class Last(NamedTuple):
    """The newest value."""

    mark: Moment
    value: Any


Cell = Moment | Open | Last | Total | tuple[Addend, ...]
Table = Mapping[Row, Cell]
_NONE: Mapping[str, Any] = {}


class Call(NamedTuple):
    """A call under way: when it was asked for, and what it feeds until it is known to have failed."""

    mark: Moment
    fed: Fed


class History(NamedTuple):
    """All that is kept."""

    seq: int = 0
    step: int = 0
    """Requests so far, the one that is judged included."""
    now: int = 0
    """The greatest time so far, in milliseconds."""
    tables: Mapping[str, Table] = _NONE
    calls: Mapping[str, Call] = _NONE
    full: Mapping[str, Moment] = _NONE
    """Folds that had no room for what had happened already: nothing is permitted while that could matter."""


def begin(history: History, at: int) -> History:
    """The history in which a request of this time is judged."""
    return history._replace(seq=history.seq + 1, step=history.step + 1, now=max(history.now, at))


def requested(
    folds: Folds, history: History, call: str, fed: Fed, *, allow: bool, record: int
) -> tuple[History, str]:
    """The history after the request that `begin` began was judged; and why it must be denied, or nothing.

    A request that finds no room for what it would feed is denied, and was then denied in the history too.
    """
    mark = Moment(history.now, history.step, history.seq, record)
    trouble = ""
    if allow:
        trouble = blocked(folds, history) or _no_room(folds, history, fed, mark)
        if len(history.calls) >= MOST_CALLS:
            trouble = trouble or f"more than {MOST_CALLS} calls are under way"
    history = _take(folds, history, [item for item in fed if _counts(folds, item) == "asked"], mark)
    if allow and not trouble:
        held = tuple(item for item in fed if _counts(folds, item) in ("held", "pending"))
        history = history._replace(calls={**history.calls, call: Call(mark, held)})
    return history, trouble


def settled(
    folds: Folds, history: History, call: str, at: int, *, done: bool, record: int, fed: Fed = ()
) -> History:
    """The history after a call ended; `fed` is what its answer feeds, `done` whether it was carried out."""
    history = history._replace(seq=history.seq + 1, now=max(history.now, at))
    found = history.calls.get(call)
    before: Fed = ()
    if found is not None:
        before = found.fed
        calls = {name: other for name, other in history.calls.items() if name != call}
        history = history._replace(calls=calls)
        if done:
            kept = [item for item in before if _counts(folds, item) == "held"]
            history = _take(folds, history, kept, found.mark)
    if done:
        mark = Moment(history.now, history.step, history.seq, record)
        answered = [item for item in fed if item[1] or folds[item[0]].counts == "done"]
        history = _take(folds, history, [item for item in answered if item not in before], mark)
    return history


def lost(folds: Folds, history: History, record: int) -> History:
    """The history after an answer of which nobody could say what it feeds: it blocks what follows."""
    moment = Moment(history.now, history.step, history.seq, record)
    return history._replace(full={**history.full, **dict.fromkeys(folds, moment)})


def rows(folds: Folds, history: History) -> list[Fact]:
    """The rows of folds that are simply there, as facts, in one order."""
    found: list[Fact] = []
    for name in sorted(folds):
        fold = folds[name]
        if fold.mode is not None:
            continue
        for key, cell in sorted(_now(fold, history).items(), key=lambda item: order_row(item[0])):
            for more in _shown(fold, history, cell):
                found.append((name, (*map(decode, key), *more)))
    return found


def answer(folds: Folds, history: History, name: str, key: Row) -> int:
    """The number that a fold has for a key: 0 where nothing is known of it."""
    fold = folds[name]
    if fold.kind == "pending":
        return sum(item == (name, False, key) for call in history.calls.values() for item in call.fed)
    cell = _now(fold, history).get(key)
    if isinstance(cell, Total):
        return cell.value
    return sum(entry.value for entry in _within(fold, history, cell or ()))


def records(folds: Folds, history: History, name: str, key: Row) -> tuple[int, ...]:
    """The records that the answer, or the row, of a key rests on; of a total the first and the last."""
    cell = _now(folds[name], history).get(key)
    match cell:
        case Total():
            return (cell.first, cell.last) if cell.first != cell.last else (cell.first,)
        case Moment():
            return (cell.record,)
        case Open() | Last():
            return (cell.mark.record,) if cell.mark is not None else ()
        case None:
            calls = history.calls.values()
            return tuple(call.mark.record for call in calls if (name, False, key) in call.fed)
        case _:
            return tuple(entry.mark.record for entry in _within(folds[name], history, cell))


def keys(fold: Fold, history: History) -> list[Row]:
    """The keys of which a fold knows something, in its window or not, calls under way included."""
    if fold.kind == "pending":
        fed = (item for call in history.calls.values() for item in call.fed)
        return list(dict.fromkeys(row for name, close, row in fed if name == fold.name and not close))
    return list(_now(fold, history))


def mark_of(fold: Fold, history: History, key: Row) -> Moment | None:
    """When the newest event of a key was, where the fold keeps that."""
    return _mark(_now(fold, history).get(key))


def newest(folds: Folds, history: History, name: str) -> tuple[Row, Moment] | None:
    """The newest event that fed a fold and is still known, in its window or not."""
    found: list[tuple[Row, Moment]] = []
    for key, cell in _now(folds[name], history).items():
        mark = cell if isinstance(cell, Moment) else getattr(cell, "mark", None)
        if mark is not None:
            found.append((key, mark))
    return max(found, key=lambda item: item[1].seq, default=None)


def at_rest(fold: Fold, history: History) -> History:
    """A history in which a fold has the same rows, so that each question of many is answered in one step."""
    if fold.kind == "pending":
        return history
    return history._replace(tables={fold.name: _now(fold, history)}, calls={})


def newest_keys(fold: Fold, history: History, most: int) -> list[Row]:
    """The keys that were fed last, of those that `keys` gives, the newest first."""
    found = keys(fold, history)
    if fold.kind == "pending":
        return found[::-1][:most]
    table = _now(fold, history)
    return sorted(found, key=lambda key: _newest(table[key]), reverse=True)[:most]


def blocked(folds: Folds, history: History) -> str:
    """Why nothing may be permitted now, or nothing: a fold lost what had happened already."""
    for name in sorted(history.full):
        if name in folds and is_within(folds[name], history, history.full[name]):
            return f"the fold {name} had no room at record {history.full[name].record}"
    return ""


def bound(fold: Fold) -> int:
    """The most bytes of JSON that the fold's state can have."""
    column, mark = KEY_BYTES + 1, 4 * 20 + 5
    cell = {"count": 20, "sum": 20, "last": column, "open": 21}.get(fold.kind, 0) + mark + 8
    total = fold.most_keys * (fold.keys * column + cell)
    return total + (fold.most_entries * (mark + 24) if fold.window and fold.kind in ("count", "sum") else 0)


def to_data(history: History) -> dict[str, Any]:
    """As JSON, for R7."""
    tables = {
        name: [[list(map(to_json, key)), _cell_json(cell)] for key, cell in table.items()]
        for name, table in history.tables.items()
    }
    calls = {
        name: [list(call.mark), [[fold, close, list(map(to_json, row))] for fold, close, row in call.fed]]
        for name, call in history.calls.items()
    }
    full = {name: list(mark) for name, mark in history.full.items()}
    return {
        "seq": history.seq,
        "step": history.step,
        "now": history.now,
        "tables": tables,
        "calls": calls,
        "full": full,
    }


def from_data(data: Mapping[str, Any]) -> History:
    """The History that `to_data` gave. Raises: KeyError, TypeError, ValueError, PolicyError for others."""
    tables = {
        name: {tuple(map(from_json, key)): _cell(cell) for key, cell in table}
        for name, table in data["tables"].items()
    }
    calls = {
        name: Call(
            Moment(*mark), tuple((fold, close, tuple(map(from_json, row))) for fold, close, row in fed)
        )
        for name, (mark, fed) in data["calls"].items()
    }
    full = {name: Moment(*mark) for name, mark in data["full"].items()}
    return History(data["seq"], data["step"], data["now"], tables, calls, full)


def _counts(folds: Folds, item: tuple[str, bool, Row]) -> str:
    """What a row of a request counts as."""
    fold = folds[item[0]]
    return "pending" if fold.kind == "pending" else "held" if item[1] else fold.counts


def _mark(cell: Cell | None) -> Moment | None:
    match cell:
        case Moment():
            return cell
        case Open() | Last():
            return cell.mark
        case Total() | None:
            return None
    return cell[-1].mark if cell else None


def _newest(cell: Cell) -> int:
    """The newest record of a cell, or that which closed it."""
    if isinstance(cell, Total):
        return cell.last
    mark = _mark(cell)
    return mark.record if mark is not None else 0


# ---- one fold ---------------------------------------------------------------------------------------------


def _take(folds: Folds, history: History, fed: Iterable[tuple[str, bool, Row]], mark: Moment) -> History:
    """The history with rows that have happened; what finds no room is remembered as missing."""
    tables, full = dict(history.tables), dict(history.full)
    for name, close, row in sorted(fed, key=lambda item: not item[1]):
        fold = folds[name]
        try:
            tables[name] = _merged(fold, history, tables.get(name, {}), close, row, mark)
        except Full:
            full[name] = mark
    full = {name: at for name, at in full.items() if name in folds and is_within(folds[name], history, at)}
    return history._replace(tables=tables, full=full)


def _no_room(folds: Folds, history: History, fed: Fed, mark: Moment) -> str:
    """Why what a request feeds could not be kept, or nothing."""
    made: dict[str, Table] = {}
    waiting: dict[str, set[Row]] = {}
    for name, close, row in sorted(fed, key=lambda item: not item[1]):
        fold = folds[name]
        try:
            if fold.kind == "pending":
                _small(row)
                known = {item[2] for call in history.calls.values() for item in call.fed if item[0] == name}
                waiting.setdefault(name, known).add(row)
                if len(waiting[name]) > fold.most_keys:
                    raise Full(f"more than {fold.most_keys} keys")
            else:
                table = made[name] if name in made else _now(fold, history)
                made[name] = _merged(fold, history, table, close, row, mark)
        except Full as trouble:
            return f"the fold {name} is full: {trouble}"
    return ""


def _now(fold: Fold, history: History) -> Table:
    """The table with what calls under way hold."""
    table: Table = history.tables.get(fold.name, {})
    for call in history.calls.values():
        for name, close, row in sorted(call.fed, key=lambda item: not item[1]):
            if name == fold.name and fold.kind != "pending":
                table = _merged(fold, history, table, close, row, call.mark, roomy=True)
    return table


def _merged(
    fold: Fold, history: History, table: Table, close: bool, row: Row, mark: Moment, roomy: bool = False
) -> Table:
    """The table with one row more. Raises: Full, unless it is `roomy`, as for a look at what is held."""
    key = row[: fold.keys]
    if not roomy:
        _small(row if fold.kind == "last" else key)
    known = table.get(key)
    if known is None and not roomy and len(table) >= fold.most_keys:
        oldest = min((call.mark.seq for call in history.calls.values()), default=history.seq)
        table = {other: cell for other, cell in table.items() if not _is_over(fold, history, cell, oldest)}
        if len(table) >= fold.most_keys:
            raise Full(f"more than {fold.most_keys} keys")
    value = row[-1] if fold.kind in ("sum", "last") else 1
    cell: Cell
    match fold.kind:
        case "seen":
            cell = max(known, mark, key=lambda item: item.seq) if isinstance(known, Moment) else mark
        case "last":
            kept = isinstance(known, Last) and known.mark.seq > mark.seq
            cell = known if kept and known is not None else Last(mark, value)
        case "open":
            cell = _opened(known if isinstance(known, Open) else Open(None, 0), close, mark)
        case _ if fold.window is None:
            cell = _added(known if isinstance(known, Total) else None, value, mark)
        case _:
            entries = _within(fold, history, known if known is not None else ())
            cell = tuple(sorted((*entries, Addend(mark, value)), key=lambda entry: entry.mark.seq))
            _number(sum(entry.value for entry in cell))
            others = {} if roomy else {other: item for other, item in table.items() if other != key}
            if sum(map(_length, others.values())) + len(cell) > fold.most_entries and not roomy:
                pruned = {other: _within(fold, history, item) for other, item in others.items()}
                table = {other: item for other, item in pruned.items() if item}
                if sum(map(len, table.values())) + len(cell) > fold.most_entries:
                    raise Full(f"more than {fold.most_entries} entries within {fold.window}")
    return {**table, key: cell}


def _opened(known: Open, close: bool, mark: Moment) -> Open:
    if close:
        return known._replace(closed=max(known.closed, mark.seq))
    return known if known.mark is not None and known.mark.seq > mark.seq else known._replace(mark=mark)


def _added(known: Total | None, value: int, mark: Moment) -> Total:
    if known is None:
        return Total(_number(value), 1, mark.record, mark.record)
    first, last = min(known.first, mark.record), max(known.last, mark.record)
    return Total(_number(known.value + value), known.entries + 1, first, last)


def _number(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise Full("its sum passes 64 bits")
    return value


def _small(row: Row) -> None:
    if any(len(canon.dumps(to_json(value))) > KEY_BYTES for value in row):
        raise Full(f"a value of more than {KEY_BYTES} bytes")


def _length(cell: Any) -> int:
    return len(cell)


def is_within(fold: Fold, history: History, mark: Moment) -> bool:
    """Whether an event of this time is within the fold's window now; both ends belong to it."""
    if fold.window is None:
        return True
    ago = history.step - mark.step if fold.window.steps else history.now - mark.at
    return ago <= fold.window.amount


def _within(fold: Fold, history: History, entries: Any) -> tuple[Addend, ...]:
    return tuple(entry for entry in entries if is_within(fold, history, entry.mark))


def _is_over(fold: Fold, history: History, cell: Any, oldest: int) -> bool:
    """Whether the cell can no longer show; `oldest` is the first event that may still be merged."""
    match cell:
        case Moment():
            return not is_within(fold, history, cell)
        case Last():
            return not is_within(fold, history, cell.mark)
        case Open():
            shows = bool(list(_shown(fold, history, cell)))
            return not shows and cell.closed < oldest
        case Total():
            return False
        case _:
            return not _within(fold, history, cell)


def _shown(fold: Fold, history: History, cell: Any) -> Iterator[tuple[Any, ...]]:
    """The last columns of the cell's row, when it has one now."""
    mark = cell if isinstance(cell, Moment) else cell.mark
    if mark is None or not is_within(fold, history, mark):
        return
    if isinstance(cell, Open):
        if mark.seq >= cell.closed:
            yield ()
    elif isinstance(cell, Last):
        yield (decode(cell.value),)
    else:
        steps = fold.window is None or fold.window.steps
        yield (history.step - mark.step if steps else history.now - mark.at,)


def _cell_json(cell: Cell) -> list[Any]:
    match cell:
        case Moment():
            return ["seen", *cell]
        case Open():
            return ["open", list(cell.mark) if cell.mark is not None else None, cell.closed]
        case Last():
            return ["last", list(cell.mark), to_json(cell.value)]
        case Total():
            return ["total", *cell]
        case _:
            return ["ring", *([*entry.mark, entry.value] for entry in cell)]


def _cell(data: Any) -> Cell:
    kind, *rest = data
    match kind:
        case "seen":
            return Moment(*rest)
        case "open":
            return Open(Moment(*rest[0]) if rest[0] is not None else None, rest[1])
        case "last":
            return Last(Moment(*rest[0]), from_json(rest[1]))
        case "total":
            return Total(*rest)
        case "ring":
            return tuple(Addend(Moment(*entry[:4]), entry[4]) for entry in rest)
    raise ValueError(f"no cell of a fold: {kind!r}")
