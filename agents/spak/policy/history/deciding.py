"""Between a session of the policy and the state of folds: the past that it is given, and what it feeds.

Takes a session that holds the facts of one event, the folds and the history; answers the session's questions
about folds, reads the rows that the event feeds, and says what the past had to do with a decision. It decides
nothing and changes no history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spak.datalog.externals import Request
from spak.datalog.folds import Fold
from spak.datalog.plan import Key
from spak.datalog.session import Policy, Session
from spak.datalog.syntax import Clause, Literal_
from spak.datalog.values import Fact, Name, Value, encode, order_row, show
from spak.policy.history import state
from spak.policy.history.state import Fed, Folds, History
from spak.policy.toolfacts import ACTION, text

RESULT: Key = ("result", 3)
"""The predicate of what an action answered."""


def folds_of(policy: Policy) -> Folds:
    """The folds of a policy by name."""
    return {fold.name: fold for _, fold in sorted(policy.folds.items())}


def answers(folds: Folds, history: History, request: Request) -> list[tuple[Value, ...]] | None:
    """The rows that answer a question about a fold; None for a question about something else."""
    fold = folds.get(request.pred)
    if fold is None or request.key != fold.key or fold.mode is None:
        return None
    given = tuple(value for value in request.args[:-1] if value is not None)
    key = tuple(encode(value) for value in given)
    return [(*given, state.answer(folds, history, fold.name, key))]


def fed(folds: Folds, session: Session) -> Fed:
    """What the event in the session feeds, in one order."""
    session.require_complete()
    found: list[tuple[str, bool, Any]] = []
    for name, fold in folds.items():
        for key, close in ((fold.feed, False), (fold.close, True)):
            if close and fold.kind != "open":
                continue
            rows = session.matching(key[0], (None,) * key[1])
            found += [(name, close, row) for row in sorted(rows, key=order_row)]
    return tuple(found)


def feeding(policy: Policy) -> Policy | None:
    """The rules by which answers feed folds, as a policy of their own; None where no rule reads an answer and
    no fold counts what was done."""
    rules: dict[Key, list[Clause]] = {}
    for clause in policy.clauses:
        rules.setdefault(clause.head.key, []).append(clause)
    wanted = [key for fold in policy.folds.values() for key in (fold.feed, fold.close)]
    found: set[Key] = set(wanted)
    while wanted:
        for clause in rules.get(wanted.pop(), ()):
            more = {part.atom.key for part in clause.body if isinstance(part, Literal_)} - found
            found |= more
            wanted += more
    if RESULT not in found and all(fold.counts != "done" for fold in policy.folds.values()):
        return None
    kept = tuple(clause for clause in policy.clauses if clause.head.key in found)
    decls = tuple(decl for key, decl in policy.decls.items() if key in found)
    return Policy(kept, decls, ())


def results(output: Mapping[str, Any]) -> list[Fact]:
    """What a call answered, as facts: texts, numbers, and true or false; what is nested by its path."""
    found: list[Fact] = []
    for name, value in _flat(output, ""):
        if isinstance(value, bool):
            found.append(("result", (ACTION, text(name), Name("/true" if value else "/false"))))
        elif isinstance(value, str):
            found.append(("result", (ACTION, text(name), text(value))))
        elif isinstance(value, int | float):
            found.append(("result", (ACTION, text(name), value)))
    return found


def _flat(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and depth < 8:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list) and depth < 8:
        for place, item in enumerate(value[:64]):
            yield from _flat(item, f"{name}.{place}" if name else str(place), depth + 1)
    else:
        yield name, value


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of one key of a fold when something is decided."""

    fold: str
    key: tuple[str, ...]
    """As the language writes them."""
    value: int | str | None
    """The number or the newest value; None for a fold that only holds or does not."""
    holds: bool
    records: tuple[int, ...]
    text: str
    """One sentence."""

    def to_json(self) -> dict[str, Any]:
        """The fold as commands print it, with the records that it rests on."""
        return {
            "fold": self.fold,
            "key": list(self.key),
            "value": self.value,
            "holds": self.holds,
            "records": list(self.records),
            "text": self.text,
        }


def past(folds: Folds, history: History, session: Session) -> list[Past]:
    """What the folds that were read say, those that hold nothing now with the age of their newest event."""
    found: list[Past] = []
    asked = {(request.pred, request.args[:-1]): rows for request, rows in session.answers()}
    for (name, key), rows in asked.items():
        if name in folds and rows:
            inner = tuple(encode(value) for value in key)
            found.append(_number(folds, history, name, inner, rows[0][-1]))
    for fold in folds.values():
        if fold.mode is None:
            found += _rows(folds, history, fold)
    return found


def _number(folds: Folds, history: History, name: str, key: Any, value: Any) -> Past:
    numbers = state.records(folds, history, name, key)
    fold = folds[name]
    shown = tuple(map(show, key))
    of = f" of {', '.join(shown)}" if shown else ""
    within = f" within {fold.window}" if fold.window else ""
    return Past(name, shown, value, True, numbers, f"{name}{of}{within} is {value}{_records(numbers)}")


def _rows(folds: Folds, history: History, fold: Fold) -> list[Past]:
    found = []
    mine = {fold.name: fold}
    for _, row in state.rows(mine, history):
        key = tuple(encode(value) for value in row[: fold.keys])
        shown = tuple(map(show, key))
        numbers = state.records(folds, history, fold.name, key)
        sentence = f"{fold.name}({', '.join(show(encode(value)) for value in row)}) holds{_records(numbers)}"
        value = show(encode(row[-1])) if fold.kind == "last" else None
        found.append(Past(fold.name, shown, value, True, numbers, sentence))
    if found:
        return found
    newest = state.newest(folds, history, fold.name)
    if newest is None:
        return [Past(fold.name, (), None, False, (), f"{fold.name}: nothing fed it yet")]
    key, mark = newest
    shown = tuple(map(show, key))
    key_of = f"({', '.join(shown)})" if shown else ""
    if fold.kind == "open" and state.is_within(fold, history, mark):
        sentence = f"{fold.name}{key_of} is closed; record {mark.record} had opened it"
    else:
        limit = f"within {fold.window}: " if fold.window else ""
        sentence = f"{fold.name}: {limit}the last is {age(fold, history, mark)} old, record {mark.record}"
    return [Past(fold.name, shown, None, False, (mark.record,), sentence)]


def age(fold: Fold, history: History, mark: state.Moment) -> str:
    """How long ago, in the unit of the fold's window."""
    if fold.window is None or fold.window.steps:
        steps = history.step - mark.step
        return f"{steps} step{'' if steps == 1 else 's'}"
    seconds = (history.now - mark.at) // 1000
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _records(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    shown = ", ".join(map(str, numbers[:6])) + (f" and {len(numbers) - 6} more" if len(numbers) > 6 else "")
    return f": record{'' if len(numbers) == 1 else 's'} {shown}"
