"""The rule `recorded`: the tests that ran the lines that changed, by a recording of coverage.

Takes the recorded text of a file and another one; gives the pieces that differ, each with its tests. Where
each line of a change has its counterpart of the same form, these are the tests that ran the statement. Where
lines come, go or get another form (a name is bound, a block begins), they are those that ran the function.
What runs outside of tests, while a module loads, and what no test ran, has no such answer: there the tests
that ran the symbol are joined with those of the static rule, and the piece says why.

New and changed tests are always chosen. What runs once for many tests (a fixture of the session, a cache) is
recorded for the first of them only.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spak.files import beneath
from spak.world import rank
from spak.world.ask import Model, Symbol
from spak.world.index import symbol_id
from spak.world.selection.recording import File, Recording, lines_of

OUTSIDE, NEVER, UNKNOWN = "runs outside of tests", "no test ran it", "is not in the recording"
MOST_PAIRS = 400_000_000
"""Lines times lines that are compared; files beyond it are one change."""
_BINDS = re.compile(r"\b(?:await|case|class|def|as|del|for|global|import|nonlocal|with|yield)\b")
_ASSIGNS = re.compile(r"(?<![=!<>])(?:\*\*|//|>>|<<|[-+*/%&|^@:])?=(?!=)")


class Piece(NamedTuple):
    """A part of a change: the line where it begins in the new text, the tests that it needs, the symbol that
    it is in, and why the static rule is asked about that as well; empty where the recording suffices."""

    line: int
    tests: frozenset[str]
    owner: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Without:
    """A part of a change for which the static rule was asked, and why."""

    path: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Tests by the rule that chose them: `recorded`, `new`, `changed`, and for the parts without a recording
    `static`, `importers` or `all`. A test that two rules chose is with the first; of a changed file of tests
    all run, and only the file is named."""

    by: Mapping[str, tuple[str, ...]]
    without: tuple[Without, ...] = ()

    @property
    def rule(self) -> str:
        """The first that chose a test."""
        return next(iter(self.by), "recorded")

    @property
    def tests(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(sorted({test for tests in self.by.values() for test in tests}))


def pieces(file: File, text: str) -> Iterator[Piece]:
    """The parts in which a text differs from the recorded one."""
    old, new = file.lines, lines_of(text)
    for first, last, begin, end in _blocks(old, new):
        alike = last - first == end - begin and all(
            _form(one) == _form(other) for one, other in zip(old[first:last], new[begin:end], strict=True)
        )
        heads = {file.statements.get(number, (0, 0))[0] for number in range(first + 1, last + 1)}
        for line in sorted(heads - {0}):  # comments need no tests
            yield _piece(file, line, begin + 1, alike)
        if not alike and not (all(map(_silent, new[begin:end])) and file.between(first)):
            yield _inserted(file, first + 1 if last > first else first, new[begin:end], begin + 1)


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    head = next(
        (at for at, (one, two) in enumerate(zip(old, new, strict=False)) if one != two),
        min(len(old), len(new)),
    )
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    ends = len(old) - tail, len(new) - tail
    if (ends[0] - head) * (ends[1] - head) > MOST_PAIRS:
        yield head, ends[0], head, ends[1]
        return
    for kind, *at in difflib.SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]]).get_opcodes():
        if kind != "equal":
            yield at[0] + head, at[1] + head, at[2] + head, at[3] + head


def _silent(line: str) -> bool:
    """Whether a line is empty or a comment, if it is not inside of a text."""
    return not line.strip() or line.lstrip().startswith("#")


def _form(line: str) -> tuple[object, ...]:
    """What of a line may matter to other lines: blocks, brackets, bound names, kinds of functions."""
    text = line.strip()
    parts = _ASSIGNS.split(text)[:-1]
    return (
        _silent(line),
        len(line) - len(line.lstrip()),
        [text.count(sign) for sign in ("(", ")", "[", "]", "{", "}", '"""', "'''")],
        text.endswith(("\\", ":")),
        _BINDS.findall(text),
        parts[:1],
        [part.split()[-1:] for part in parts[1:]],
    )


def _piece(file: File, line: int, now: int, alike: bool) -> Piece:
    first, last = file.statement(line)
    function, tests = file.inside(first), file.tests(first, last)
    whole = file.body(function) if function else set()
    if not function or not file.outside.isdisjoint(range(first, last + 1)):
        owner = file.owner(first)
        return Piece(now, frozenset(tests | file.body(owner)), owner, OUTSIDE)
    if alike and tests:
        return Piece(now, frozenset(tests), function)
    return Piece(now, frozenset(whole), function, "" if whole else NEVER)


def _inserted(file: File, line: int, lines: Sequence[str], now: int) -> Piece:
    """Lines that have no counterpart: what they are in says the indentation."""
    depth = min((len(one) - len(one.lstrip()) for one in lines if one.strip()), default=1 << 20)
    owner = file.owner(line, ("function",))
    while owner and depth <= _depth(file, owner):
        owner = file.owner(file.spans[owner].first - 1, ("function",)) if "." in owner else ""
    whole = file.body(owner) if owner else set()
    if whole:
        return Piece(now, frozenset(whole), owner)
    within = owner or file.owner(line, ("class",))
    while within and not owner and depth <= _depth(file, within):
        within = within.rpartition(".")[0] if within.rpartition(".")[0] in file.spans else ""
    return Piece(now, frozenset(file.body(within)), within, NEVER if owner else OUTSIDE)


def _depth(file: File, qual: str) -> int:
    line = file.lines[file.spans[qual].first - 1]
    return len(line) - len(line.lstrip())


def since(model: Model, recording: Recording) -> Selection:
    """The tests that the changes since the recording need."""
    found = _Found(model, recording)
    found.files()
    return found.selection()


def tests(model: Model, recording: Recording, targets: Sequence[Symbol]) -> Selection:
    """The tests that a change of symbols needs, and those of the static rule whose recording is old."""
    found, chosen = _Found(model, recording), rank.tests(model, targets)
    if chosen.rule == "static":
        old = set(since(model, recording).tests)
        found.by["static"] |= {test for test in chosen.tests if not old.isdisjoint((test, _module(test)))}
    parts = [(target.path, _target(recording.file(target.path), target)) for target in targets]
    ran = frozenset().union(*(piece.tests for _, piece in parts))
    for path, piece in parts:
        found.put(path, piece._replace(tests=ran), chosen)
    return found.selection()


def _target(file: File | None, target: Symbol) -> Piece:
    """One symbol; of a function the body counts, as it is what changes most."""
    span = file.spans.get(target.qual) if file is not None else None
    if file is None or span is None:
        return Piece(target.line, frozenset(), target.qual, UNKNOWN)
    tests = frozenset(file.body(target.qual))
    inner = range(file.statement(span.first)[1] + 1, span.last + 1)
    inside = span.kind == "function" and file.outside.isdisjoint(inner)
    why = (NEVER if not tests else "") if inside else OUTSIDE
    return Piece(target.line, tests, target.qual, why)


class _Found:
    """Tests as they are found, by rule."""

    def __init__(self, model: Model, recording: Recording) -> None:
        self.model, self.recording = model, recording
        rules = ("recorded", "new", "changed", "static", "importers", "all")
        self.by: dict[str, set[str]] = {rule: set() for rule in rules}
        self.without: dict[Without, None] = {}
        self.known = {symbol.id: symbol for symbol in model.symbols()}
        self.here = dict(
            model.store.rows(
                "SELECT path, hash FROM file WHERE tree = ? AND language = 'python'", [model.tree]
            )
        )
        found = {
            test for test, symbol in self.known.items() if symbol.path in self.here and model.is_test(test)
        }
        self.tested = {_path(test) for test in found | recording.tests}
        recorded = {_path(test) for test in recording.tests}
        self.new: set[str] = set()
        self.silent: set[str] = set()
        """Tests that the recording does not know: of files that it knows otherwise, and others. The first may
        have run nothing that was recorded."""
        for test in found - recording.tests:
            (self.silent if self._same(_path(test)) and _path(test) in recorded else self.new).add(test)

    def _same(self, path: str) -> bool:
        return self.here.get(path) == self.recording.hashes.get(path)

    def files(self) -> None:
        """All files that are not as they were recorded."""
        for path in sorted(self.here.keys() | self.recording.hashes.keys()):
            if not self._same(path):
                self._file(path)

    def _file(self, path: str) -> None:
        if path in self.recording.hashes and path in self.here:
            if path in self.tested:
                self.by["changed"].add(symbol_id(path, ""))
            elif path.rpartition("/")[2] == "conftest.py":
                folder = path.removesuffix("conftest.py")
                below = {one for one in self.tested & self.here.keys() if one.startswith(folder)}
                self.by["changed"] |= {symbol_id(one, "") for one in below}
        elif path in self.tested:
            return  # its tests are new, or gone
        file = self.recording.file(path)
        data = beneath.content(self.model.root, path) if path in self.here else None
        if data is None or file is None:
            self.add(path, Piece(1, frozenset(file.body("") if file else ()), "", UNKNOWN))
        else:
            for piece in pieces(file, data.decode("utf-8", "replace")):
                self.add(path, piece)

    def add(self, path: str, piece: Piece) -> None:
        """One part of a change."""
        chosen = None
        if piece.why or self.silent:
            module = Symbol(symbol_id(path, ""), path, "", "module", "public", 1, 1, "")
            chosen = rank.tests(self.model, [self.known.get(symbol_id(path, piece.owner), module)])
        self.put(path, piece, chosen)

    def put(self, path: str, piece: Piece, chosen: rank.Chosen | None) -> None:
        """One part of a change with what the static rule chooses for it."""
        self.by["recorded"] |= piece.tests
        if piece.why:
            self.without[Without(path, piece.line, piece.why)] = None
        if chosen is not None and piece.why and (chosen.rule == "static" or not piece.tests):
            self.by[chosen.rule] |= set(chosen.tests)
        elif chosen is not None and chosen.rule == "static":
            self.by["static"] |= self.silent.intersection(chosen.tests)

    def selection(self) -> Selection:
        """What was found, with tests that the recording does not know."""
        self.by["new"] |= self.new
        seen: set[str] = set()
        by = {}
        for rule, found in self.by.items():
            by[rule] = tuple(sorted(test for test in found - seen if self._counts(test)))
            seen |= found
        return Selection({rule: found for rule, found in by.items() if found}, tuple(self.without))

    def _counts(self, test: str) -> bool:
        """Whether a test exists and is not chosen with its whole file."""
        module = _module(test)
        return test == module or (
            module not in self.by["changed"] and (test in self.known or self._same(_path(test)))
        )


def _path(test: str) -> str:
    return test.partition("#")[0].partition(":")[2]


def _module(test: str) -> str:
    return test.partition("#")[0]
