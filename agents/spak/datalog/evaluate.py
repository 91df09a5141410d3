"""Evaluation of a policy over facts, and its upkeep when facts change.

Components of predicates are evaluated from below. Inside one, evaluation is semi-naive: each round joins only
what the round before has added. When facts change, only components above a changed predicate are looked at,
and in them only what the change can touch:

1. `drop` finds the rows that may have lost a derivation: what was removed below (or added under a negation)
  is put into each literal in turn, with the removed rows back in place for the others;
2. these rows are taken out, and those that still have a derivation (`check`) come back;
3. `emit` adds what the new rows (or those that went, under a negation) allow, round by round.

A component with a grouping is evaluated anew instead. Two memories make most changes cheaper: a change that
takes the last one back undoes it row by row, and rows that led to nothing when they came (a counter within
its bounds) lead to nothing when they go. Rows are counted and every step of every join is counted: a limit
ends the evaluation in the middle of a join.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from spak.datalog.errors import PolicyError, PolicyLimit
from spak.datalog.grouping import transformed
from spak.datalog.plan import Body, Code, Key, write
from spak.datalog.relation import Relation
from spak.datalog.strata import Component
from spak.datalog.syntax import Decl
from spak.datalog.types import guarded, misfit
from spak.datalog.values import Row, size_of

Rows = dict[Row, None]
Change = dict[Key, Rows]
Asserted = Mapping[Key, list[Row]]
Reads = dict[tuple[str, Key], list[tuple[int, int]]]
"""The rules of a component, and the items of them, that read a predicate: as `row` or as `neg`."""

KEPT = 4096
"""Rows of the last change that are remembered, for when it is taken back."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Steps of joins per update, rows held, and bytes of one row."""

    steps: int = 10_000_000
    facts: int = 1_000_000
    atom_bytes: int = 1 << 18


class Rules:
    """The rules of a policy with the code of each way to run them, made when it is first wanted."""

    def __init__(
        self, bodies: tuple[Body, ...], strata: tuple[Component, ...], decls: Mapping[Key, Decl] | None = None
    ) -> None:
        self.bodies = bodies
        self.guarded = guarded(bodies, decls or {})
        self.components = strata
        self.place: dict[Key, int] = {key: at for at, part in enumerate(strata) for key in part.keys}
        self.readers: dict[Key, list[tuple[int, int]]] = {}
        self.derived = frozenset(key for part in strata if part.rules for key in part.keys)
        self.reads: list[Reads] = [{} for _ in strata]
        for rule, body in enumerate(bodies):
            reads = self.reads[self.place[body.head.key]]
            for at, item in enumerate(body.items):
                if item.kind in ("row", "neg"):
                    self.readers.setdefault(item.key, []).append((rule, at))
                    reads.setdefault((item.kind, item.key), []).append((rule, at))
        self.above: dict[Key, tuple[int, ...]] = {
            key: tuple(sorted({self.place[bodies[rule].head.key] for rule, _ in readers}))
            for key, readers in self.readers.items()
        }
        self.plain = frozenset(
            key
            for key, readers in self.readers.items()
            if key not in self.derived
            and all(
                bodies[rule].items[at].kind == "row" and not strata[self.place[bodies[rule].head.key]].grouped
                for rule, at in readers
            )
        )
        """Predicates that no rule derives, and that no grouping or negation reads."""
        self._codes: dict[tuple[int, str, int], Code] = {}
        self.builds = [_builds(body) for body in bodies]

    def code(self, rule: int, way: str, start: int) -> Code:
        """The code of a rule's body that starts with the item `start`, written when it is first needed."""
        found = self._codes.get((rule, way, start))
        if found is None:
            found = self._codes[rule, way, start] = write(self.bodies[rule], way, start)
        return found


def _builds(body: Body) -> bool:
    """True when the rule can make values that no fact holds."""
    return any(item.kind in ("compare", "find") for item in body.items) or body.clause.transform is not None


class Evaluation:
    """Relations kept as the rules say. After an exception it is stale until `rebuild`."""

    def __init__(self, rules: Rules, limits: Limits) -> None:
        self.rules = rules
        self.limits = limits
        self.relations: dict[Key, Relation] = {}
        self.count = 0
        self.steps = 0
        self.idle: dict[Key, Rows] = {}
        """Rows without which the same follows: when they go, nothing has to be derived anew."""
        self._last: tuple[Asserted, Asserted, Change, Change] | None = None
        """The last change, and the rows that went and came with it."""
        self._linked: dict[tuple[int, str, int], Callable[..., int]] = {}

    def relation(self, key: Key) -> Relation:
        """The relation of a predicate, made empty when there is none yet."""
        found = self.relations.get(key)
        if found is None:
            found = self.relations[key] = Relation()
        return found

    def rebuild(self) -> None:
        """Everything from what is asserted."""
        self.count, self.steps, self._last, self.idle = 0, self.limits.steps, None, {}
        for relation in self.relations.values():
            relation.clear()
        for key in sorted(self.relations):
            if key not in self.rules.place:
                self._fill(key)
        for part in self.rules.components:
            self._evaluate(part)

    def apply(self, removed: Asserted, added: Asserted) -> None:
        """Bring all up to date after `base` has changed by these rows."""
        last, self._last = self._last, None
        self.steps = self.limits.steps
        if last is not None and last[0] == added and last[1] == removed:
            new, gone = last[2:]
            self._back(gone, new)
        else:
            gone, new = self._applied(removed, added)
        if sum(map(len, gone.values())) + sum(map(len, new.values())) <= KEPT:
            self._last = removed, added, gone, new

    def _back(self, gone: Change, new: Change) -> None:
        """Undo the last change, row by row: nothing has to be derived for that."""
        for key, rows in gone.items():
            relation = self.relations[key]
            for row in rows:
                relation.remove(row)
            self.count -= len(rows)
        for key, rows in new.items():
            relation = self.relations[key]
            for row in rows:
                relation.add(row)
            self.count += len(rows)

    def _applied(self, removed: Asserted, added: Asserted) -> tuple[Change, Change]:
        """Derive what the change leads to; gives the rows that went and came, of every predicate."""
        rules = self.rules
        gone: Change = {}
        new: Change = {}
        waiting: list[int] = []
        queued: set[int] = set()

        def queue(places: Iterable[int]) -> None:
            for place in places:
                if place not in queued:
                    queued.add(place)
                    heapq.heappush(waiting, place)

        dropped: Change = {}
        for key in {**removed, **added}:
            if key in rules.derived:
                queue((rules.place[key],))
            else:
                went, came = self._state(key, removed.get(key, ()), added.get(key, ()))
                if went and key in self.idle:
                    idle = self.idle[key]
                    dropped[key] = {row: None for row in went if idle.pop(row, 0) is None}
                    went = {row: None for row in went if row not in dropped[key]}
                if went:
                    gone[key] = went
                if came:
                    new[key] = came
                if went or came:
                    queue(rules.above.get(key, ()))
        quiet = True
        while waiting:
            place = heapq.heappop(waiting)
            changed = self._change(place, removed, added, gone, new)
            if changed is not None:
                quiet = False
                for key in changed:
                    queue(rules.above.get(key, ()))
        if not quiet:
            self.idle.clear()
        else:
            for key, rows in new.items():
                if key in rules.plain:
                    self.idle.setdefault(key, {}).update(rows)
        for key, rows in dropped.items():
            gone.setdefault(key, {}).update(rows)
        return gone, new

    # ---- one component --------------------------------------------------------------------------------

    def _evaluate(self, part: Component) -> None:
        """From scratch: its relations are empty, all below is done."""
        fresh: Change = {}
        for key in part.keys:
            self._fill(key)
            fresh[key] = dict(self.relation(key).rows)
        for rule in part.rules:
            self._add(rule, self._heads(rule), fresh)
        if part.recursive:
            self._rounds(part, fresh)

    def _heads(self, rule: int) -> Rows:
        body = self.rules.bodies[rule]
        if body.clause.transform is None:
            return self.run(rule, "emit")
        return dict.fromkeys(transformed(body, self.run(rule, "match")))

    def _rounds(self, part: Component, fresh: Change, every: Change | None = None) -> None:
        """Semi-naive rounds until nothing is new; all that came is put into `every`."""
        own = set(part.keys)
        while any(fresh.values()):
            following: Change = {}
            for key, rows in fresh.items():
                if not rows:
                    continue
                for rule, at in self.rules.readers.get(key, ()):
                    if self.rules.bodies[rule].head.key in own:
                        self._add(rule, self.run(rule, "emit", at, rows), following)
            if every is not None:
                for key, rows in following.items():
                    every.setdefault(key, {}).update(rows)
            fresh = following

    def _change(
        self, place: int, removed: Asserted, added: Asserted, gone: Change, new: Change
    ) -> list[Key] | None:
        """One component with rules; gives the predicates that changed, None where no row was in doubt."""
        part = self.rules.components[place]
        if part.grouped:
            return self._rederive(part, gone, new)
        reads = self.rules.reads[place]
        lost = self._lost(part, reads, removed, gone, new)
        for key, rows in lost.items():
            relation = self.relation(key)
            for row in rows:
                relation.remove(row)
            self.count -= len(rows)
        fresh = self._recovered(part, lost) if lost else {}
        for key in part.keys:
            if key in added:
                relation = self.relation(key)
                for row in added[key]:
                    if row not in relation.rows:
                        self._insert(relation, row)
                        fresh.setdefault(key, {})[row] = None
        for changes, kind in ((new, "row"), (gone, "neg")):
            for key, rows in changes.items():
                for rule, at in reads.get((kind, key), ()):
                    self._add(rule, self.run(rule, "emit", at, rows), fresh)
        if not lost and not fresh:
            return None
        every: Change = fresh
        if part.recursive:
            every = {key: dict(rows) for key, rows in fresh.items()}
            self._rounds(part, fresh, every)
        changed = []
        for key in part.keys:
            came, went = every.get(key, {}), lost.get(key, {})
            rows = self.relation(key).rows
            left = {row: None for row in went if row not in rows}
            more = {row: None for row in came if row not in went}
            if left:
                gone[key] = left
            if more:
                new[key] = more
            if left or more:
                changed.append(key)
        return changed

    def _lost(self, part: Component, reads: Reads, removed: Asserted, gone: Change, new: Change) -> Change:
        """Rows of this component that may have lost a derivation."""
        lost: Change = {}
        for key in part.keys:
            if key in removed:
                relation = self.relation(key)
                for row in removed[key]:
                    if row in relation.rows and not relation.is_given(row):
                        lost.setdefault(key, {})[row] = None
        touched = [
            (rule, at, rows)
            for changes, kind in ((gone, "row"), (new, "neg"))
            for key, rows in changes.items()
            for rule, at in reads.get((kind, key), ())
        ]
        if not lost and not touched:
            return lost
        frontier: Change = {key: dict(rows) for key, rows in lost.items()}
        back = [(self.relation(key), row) for key, rows in gone.items() for row in rows]
        for relation, row in back:
            relation.add(row)
        try:
            for rule, at, rows in touched:
                self._mark(rule, self.run(rule, "drop", at, rows), lost, frontier)
            own = set(part.keys)
            while part.recursive and frontier:
                following: Change = {}
                for key, rows in frontier.items():
                    for rule, at in self.rules.readers.get(key, ()):
                        if self.rules.bodies[rule].head.key in own:
                            self._mark(rule, self.run(rule, "drop", at, rows), lost, following)
                frontier = following
        finally:
            for relation, row in back:
                relation.remove(row)
        return lost

    def _mark(self, rule: int, found: Rows, lost: Change, frontier: Change) -> None:
        if not found:
            return
        key = self.rules.bodies[rule].head.key
        relation = self.relation(key)
        known = lost.setdefault(key, {})
        for row in found:
            if row not in known and not relation.is_given(row):
                known[row] = None
                frontier.setdefault(key, {})[row] = None

    def _recovered(self, part: Component, lost: Change) -> Change:
        """The lost rows that still have a derivation, put back."""
        fresh: Change = {}
        for key, rows in lost.items():
            rules = [rule for rule in part.rules if self.rules.bodies[rule].head.key == key]
            left = dict(rows)
            for rule in rules:
                if not left:
                    break
                found: Rows = {}
                for row in left:
                    found.update(self.run(rule, "check", -1, (row,)))
                relation = self.relation(key)
                for row in found:
                    del left[row]
                    self._insert(relation, row)
                    fresh.setdefault(key, {})[row] = None
        return fresh

    def _rederive(self, part: Component, gone: Change, new: Change) -> list[Key]:
        before = {key: dict(self.relation(key).rows) for key in part.keys}
        for key in part.keys:
            self.count -= len(before[key])
            self.relation(key).clear()
        self._evaluate(part)
        for key in part.keys:
            rows = self.relation(key).rows
            came = {row: None for row in rows if row not in before[key]}
            went = {row: None for row in before[key] if row not in rows}
            if came:
                new[key] = came
            if went:
                gone[key] = went
        return [key for key in part.keys if key in new or key in gone]

    # ---- rows -----------------------------------------------------------------------------------------

    def _fill(self, key: Key) -> None:
        relation = self.relation(key)
        for rows in (relation.fixed, relation.base):
            for row in rows:
                if row not in relation.rows:
                    self._insert(relation, row)

    def _state(self, key: Key, removed: Iterable[Row], added: Iterable[Row]) -> tuple[Rows, Rows]:
        """Rows of a predicate that no rule derives: those that went and that came."""
        relation = self.relation(key)
        went = {row: None for row in removed if row in relation.rows and not relation.is_given(row)}
        for row in went:
            relation.remove(row)
        self.count -= len(went)
        came = {row: None for row in added if row not in relation.rows}
        for row in came:
            self._insert(relation, row)
        return went, came

    def _insert(self, relation: Relation, row: Row) -> None:
        self.count += 1
        if self.count > self.limits.facts:
            raise PolicyLimit("too many facts", "narrow the rules, or give a higher limit")
        relation.add(row)

    def _add(self, rule: int, rows: Rows, fresh: Change) -> None:
        if not rows:
            return
        key = self.rules.bodies[rule].head.key
        relation = self.relation(key)
        came = fresh.setdefault(key, {})
        decl = self.rules.guarded.get(key)
        for row in rows:
            if row not in relation.rows:
                if decl is not None and (wrong := misfit(row, decl)):
                    raise PolicyError(
                        "policy.type", f"a rule derives what its declaration rules out: {wrong}"
                    )
                if self.rules.builds[rule] and size_of(row) > self.limits.atom_bytes:
                    raise PolicyLimit(f"a row of {key[0]} grew beyond its limit")
                self._insert(relation, row)
                came[row] = None

    def run(self, rule: int, way: str, start: int = -1, delta: Iterable[Row] = ()) -> Rows:
        """One way of one rule over the relations as they are."""
        name = (rule, way, start)
        linked = self._linked.get(name)
        if linked is None:
            linked = self._linked[name] = self.rules.code(*name).link(
                lambda key: self.relation(key).rows, lambda key, columns: self.relation(key).index(columns)
            )
        out: Rows = {}
        self.steps = linked(delta, out, self.steps, self.limits.facts - self.count)
        return out
