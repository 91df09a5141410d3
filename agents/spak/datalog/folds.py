"""Folds: predicates whose rows somebody keeps from one evaluation to the next.

`Decl moved(To, N) bound [/string, /number] descr [fold("sum"), within("24h")].` says that the rows of `moved`
are made from the rows of `feed_moved` that each event derives; what an `open` fold holds ends with a row of
`close_` and its name. Takes declarations and clauses; gives each Fold, or findings (`policy.fold`). Folds
that count (`count`, `sum`, `pending`) are asked by their keys like an external predicate, so that a key of
which nothing is known answers 0. The language knows what a fold is made of; who keeps it is not its business
(spak.policy.history).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spak.datalog.plan import Key
from spak.datalog.syntax import Atom, Bound, Clause, Const, Decl, Finding, Literal_, Place
from spak.datalog.values import decode, encode

KINDS = ("seen", "open", "count", "sum", "last", "pending")
ASKED = ("count", "sum", "pending")
"""Kinds that are asked by a key and answer a number."""
COUNTS = ("held", "asked", "done")
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_KEYS, MAX_ENTRIES = 4096, 16_384
MAX_WINDOW = 2**53
FEED, CLOSE = "feed_", "close_"
_WINDOW = re.compile(r"([0-9]{1,15}) ?(ms|s|m|h|d|steps?)\Z")
_WORDS = ("fold", "within", "counts", "keys", "entries")
_KEY_TYPES = ("name", "string", "number", "prefix", "one")


@dataclass(frozen=True, slots=True)
class Window:
    """How far back counts: closed, so that exactly `amount` ago is within."""

    amount: int
    """Milliseconds, or steps."""
    steps: bool = False

    def __str__(self) -> str:
        if self.steps:
            return f"{self.amount} step{'' if self.amount == 1 else 's'}"
        unit = next(unit for unit in reversed(UNITS) if self.amount % UNITS[unit] == 0)
        return f"{self.amount // UNITS[unit]}{unit}"


@dataclass(frozen=True, slots=True)
class Fold:
    """One declared fold."""

    name: str
    kind: str
    """One of KINDS."""
    keys: int
    """Columns of its key."""
    window: Window | None = None
    counts: str = "held"
    """`asked` (each request), `done` (each that was carried out) or `held` (permitted and not failed)."""
    most_keys: int = 256
    most_entries: int = 1024
    place: Place = field(default=Place(), compare=False)

    @property
    def key(self) -> Key:
        """The relation that holds the results."""
        return (self.name, self.keys + (self.kind != "open"))

    @property
    def feed(self) -> Key:
        """The relation of the rows that are folded."""
        return (FEED + self.name, self.keys + (self.kind in ("sum", "last")))

    @property
    def close(self) -> Key:
        """The relation whose rows end what an `open` fold holds."""
        return (CLOSE + self.name, self.keys)

    @property
    def mode(self) -> tuple[int, ...] | None:
        """The places of what a question names; None for a fold whose rows are simply there."""
        return tuple(range(self.keys)) if self.kind in ASKED else None

    def __str__(self) -> str:
        """As the hash of a policy names it."""
        return f"{self.kind} {self.window or ''} {self.counts} {self.most_keys} {self.most_entries}"


def fold_of(decl: Decl) -> Fold | None:
    """The fold that is declared, None for another predicate. Raises: ValueError with what is wrong."""
    words: dict[str, Atom] = {}
    for atom in decl.descr:
        if atom.pred in _WORDS and words.setdefault(atom.pred, atom) is not atom:
            raise ValueError(f"{atom.pred} is given twice")
    if "fold" not in words:
        if words:
            raise ValueError(f'{min(words)} says how a fold is kept, and there is no fold("...")')
        return None
    kind, counts = _word(words["fold"], KINDS), _word(words.get("counts"), COUNTS)
    columns = len(decl.names) - (kind != "open")
    if columns < 0:
        raise ValueError(f"a fold of {kind} has a column more than its keys: the last one is its value")
    if decl.external or decl.temporal:
        raise ValueError("a fold is neither external nor temporal")
    if len(decl.bounds) != 1 or any(not _keyed(bound) for bound in decl.bounds[0][:columns]):
        raise ValueError("a fold has one bound, and its keys are names, strings or numbers")
    value = decl.bounds[0][columns:]
    if value and not (_keyed(value[0]) if kind == "last" else value[0].kind == "number"):
        wanted = "a name, a string or a number" if kind == "last" else "a /number"
        raise ValueError(f"the last column of a fold of {kind} is {wanted}")
    if "entries" in words and (kind not in ("count", "sum") or "within" not in words):
        raise ValueError("entries are what a count or a sum within a window keeps")
    if kind == "pending" and ("within" in words or "counts" in words):
        raise ValueError("what is pending is under way now: it has no window and counts nothing else")
    return Fold(
        decl.atom.pred,
        kind,
        columns,
        _window(words["within"]) if "within" in words else None,
        counts or "held",
        _size(words.get("keys"), MAX_KEYS, 256),
        _size(words.get("entries"), MAX_ENTRIES, 1024),
        decl.place,
    )


def folds_of(decls: Iterable[Decl]) -> dict[Key, Fold]:
    """Every fold that is declared well, by its predicate."""
    found: dict[Key, Fold] = {}
    for decl in decls:
        try:
            fold = fold_of(decl)
        except ValueError:
            continue
        if fold is not None:
            found[decl.atom.key] = fold
    return found


def check_folds(decls: Iterable[Decl], clauses: Iterable[Clause]) -> list[Finding]:
    """What is wrong with folds: their words, who feeds and who reads them."""
    findings: list[Finding] = []
    for decl in decls:
        try:
            fold_of(decl)
        except ValueError as error:
            hint = 'such as descr [fold("sum"), within("24h"), counts("held"), keys(256)]'
            if Atom("fold", (Const(encode("pending")),)) in decl.descr:
                hint = 'such as descr [fold("pending"), keys(256)]; it takes neither within nor counts'
            findings.append(Finding("policy.fold", "error", f"{decl.atom.pred}: {error}", decl.place, hint))
    folds = folds_of(decls)
    if not folds:
        return findings
    rules: dict[Key, list[Clause]] = {}
    for clause in clauses:
        rules.setdefault(clause.head.key, []).append(clause)
    read = {part.atom.key for clause in clauses for part in clause.body if isinstance(part, Literal_)}
    for fold in folds.values():
        findings += _checked(fold, folds, rules, read)
    return findings


def _checked(
    fold: Fold, folds: Mapping[Key, Fold], rules: Mapping[Key, list[Clause]], read: set[Key]
) -> Iterable[Finding]:
    for clause in rules.get(fold.key, ()):
        message = f"{fold.name} is a fold: its rows are kept, no rule or fact makes one"
        hint = f"derive {fold.feed[0]}, from which it is made"
        yield Finding("policy.fold", "error", message, clause.place, hint)
    fed = (fold.feed, fold.close) if fold.kind == "open" else (fold.feed,)
    for key in fed:
        columns = f"{key[1]} column{'' if key[1] == 1 else 's'}"
        if key not in rules:
            message = f"nothing derives {key[0]} with {columns}, so {fold.name} never changes"
            yield Finding("policy.fold", "error", message, fold.place, "write the rule, or drop the fold")
            continue
        for clause in rules[key]:
            if not clause.body:
                message = f"{key[0]} is a fact, which every event would feed"
                yield Finding("policy.fold", "error", message, clause.place, "feed it from event(E)")
        for found in sorted(_below(key, rules) & {*folds}):
            message = f"{key[0]} rests on the fold {found[0]}: folds are made from events alone"
            yield Finding("policy.fold", "error", message, rules[key][0].place, "feed it from the event")
    if fold.key not in read:
        message = f"nothing reads {fold.name}"
        yield Finding("policy.fold", "error", message, fold.place, "a rule that forbids should read it")


def _below(key: Key, rules: Mapping[Key, list[Clause]]) -> set[Key]:
    """All that the rules of a predicate rest on."""
    found: set[Key] = set()
    waiting = [key]
    while waiting:
        for clause in rules.get(waiting.pop(), ()):
            for part in clause.body:
                if isinstance(part, Literal_) and part.atom.key not in found:
                    found.add(part.atom.key)
                    waiting.append(part.atom.key)
    return found


def _keyed(bound: Bound) -> bool:
    return bound.kind in _KEY_TYPES or (bound.kind == "union" and all(map(_keyed, bound.args)))


def _argument(atom: Atom) -> object:
    if len(atom.args) != 1 or not isinstance(atom.args[0], Const):
        raise ValueError(f"{atom.pred} takes one value")
    return decode(atom.args[0].value)


def _word(atom: Atom | None, words: tuple[str, ...]) -> str:
    if atom is None:
        return ""
    found = _argument(atom)
    if found not in words:
        raise ValueError(f"{atom.pred} is one of {', '.join(words)}")
    return str(found)


def _size(atom: Atom | None, most: int, otherwise: int) -> int:
    if atom is None:
        return otherwise
    found = _argument(atom)
    if type(found) is not int or not 1 <= found <= most:
        raise ValueError(f"{atom.pred} is a number from 1 to {most}")
    return found


def _window(atom: Atom) -> Window:
    found = _argument(atom)
    match = _WINDOW.match(found) if isinstance(found, str) else None
    if match is None:
        raise ValueError('within takes "30s", "15m", "24h", "7d", "500ms" or "20 steps"')
    amount, unit = int(match[1]), match[2]
    steps = unit.startswith("step")
    amount *= 1 if steps else UNITS[unit]
    if not 1 <= amount <= MAX_WINDOW:
        raise ValueError("a window of nothing, or of more than 285,000 years")
    return Window(amount, steps)
