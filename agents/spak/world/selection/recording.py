"""A recording of coverage in the store: which lines of which text each test ran.

`keep` takes what `coverage_file` read and puts it beside the index, with the text that it is of; a file that
changed after the recording began has no lines in it. `Recording` answers from there. A recording replaces the
one before it, so it should be of all tests.

Contexts are ids of pytest (`pytest --cov-context=test`) or names of functions (`dynamic_context =
test_function`). What a test's fixtures ran counts for all tests of its file, since a fixture may run for the
first of them only. A context that is no test of the folder counts for none: a test without a recording runs.
"""

from __future__ import annotations

import hashlib
import io
import os.path
import re
import tokenize
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from spak.errors import UsageError
from spak.files import beneath
from spak.world import scan
from spak.world.ask import Model
from spak.world.index import symbol_id
from spak.world.selection.coverage_file import Recorded
from spak.world.store import Store

_PYTEST = re.compile(
    r"(?P<path>[^\[]+?\.py)::(?P<qual>[^\[|]+)(?:.*\|(?P<phase>setup|run|teardown))?.*", re.S
)
_BREAK = re.compile(r"\r\n|\r|\n")
ENOUGH_TESTS = 10
"""Tests of which two have some line in common."""
_NOT_RUN = frozenset({"setup", "teardown"})


class Kept(NamedTuple):
    """What was kept: tests, files that they ran, files that changed too late, and contexts without a test."""

    tests: int
    files: int
    changed: tuple[str, ...]
    unknown: tuple[str, ...]


def keep(model: Model, recorded: Recorded) -> Kept:
    """Put a recording into the store. Raises: UsageError `world.recording_elsewhere`, `world.store`."""
    files = {
        row[0]: row[1:]
        for row in model.store.rows(
            "SELECT path, hash, mtime FROM file WHERE tree = ? AND language = 'python'", [model.tree]
        )
    }
    places = {name: path for name in recorded.paths if (path := _below(model.root, name)) in files}
    late = {path for path in places.values() if files[path][1] >= (recorded.begun + 1) * 1e9}
    texts: dict[str, bytes] = {}
    for path in sorted(set(places.values()) - late):
        data = beneath.content(model.root, path) or b""
        if (hashlib.sha256(data).hexdigest() if data else "") == files[path][0]:
            texts[path] = data
        else:
            late.add(path)
    ran, outside, unknown = _by_test(model, recorded, places)
    if len(ran) >= ENOUGH_TESTS and _first_only(recorded):
        why = "no line of it was run by two tests: coverage.py kept only the first test of each"
        raise UsageError("world.recording_contexts", why, "record again with COVERAGE_CORE=ctrace")
    for path, text in texts.items():  # lines that the text has not: it is another one
        if (
            max((max(rows.get(path, {0})) for rows in (*ran.values(), outside)), default=0)
            > text.count(b"\n") + 1
        ):
            late.add(path)
    known = texts.keys() - late
    if not any(known & rows.keys() for rows in ran.values()):
        why = "all its files changed since" if late else "no context of it is a test of this folder"
        why = why if places else "no file of it is of this folder"
        raise UsageError(
            "world.recording_elsewhere", f"the recording cannot be used: {why}", "record again here"
        )
    with model.store.writing():
        _forget(model)
        ids = model.store.numbers(ran)
        for path, (digest, _) in files.items():
            packed = zlib.compress(texts[path]) if path in known else None
            number = model.store.db.execute(
                "INSERT INTO recorded (tree, path, hash, text, outside) VALUES (?, ?, ?, ?, ?)",
                (model.tree, path, "" if path in late else digest, packed, _ranges(outside.get(path, ()))),
            ).lastrowid
            if packed is not None:
                model.store.db.executemany(
                    "INSERT INTO test_covers VALUES (?, ?, ?)",
                    [(number, ids[test], _ranges(rows[path])) for test, rows in ran.items() if path in rows],
                )
    return Kept(len(ran), len(known), tuple(sorted(late)), tuple(sorted(unknown)))


def _first_only(recorded: Recorded) -> bool:
    """Whether no line was run in two contexts, as coverage.py's core `sysmon` records."""
    seen: dict[str, set[int]] = defaultdict(set)
    for rows in recorded.contexts.values():
        for path, lines in rows.items():
            if not seen[path].isdisjoint(lines):
                return False
            seen[path] |= lines
    return True


def _forget(model: Model) -> None:
    of = "(SELECT id FROM recorded WHERE tree = ?)"
    model.store.db.execute(f"DELETE FROM test_covers WHERE file IN {of}", (model.tree,))
    model.store.db.execute("DELETE FROM recorded WHERE tree = ?", (model.tree,))


def _below(root: Path, name: str) -> str:
    """A path of a recording as the index has it."""
    path = os.path.normpath(root / name)
    return path[len(str(root)) + 1 :] if path.startswith(f"{root}/") else ""


Rows = dict[str, set[int]]


def _by_test(
    model: Model, recorded: Recorded, places: Mapping[str, str]
) -> tuple[dict[str, Rows], Rows, set[str]]:
    """The lines of each test and those outside of tests, by path; the contexts that are no test."""
    named = _Named(model)
    ran: dict[str, Rows] = defaultdict(lambda: defaultdict(set))
    outside: Rows = defaultdict(set)
    fixtures: dict[str, Rows] = defaultdict(lambda: defaultdict(set))
    unknown = set()
    for context, rows in recorded.contexts.items():
        tests, phase = named.tests(context) if context else ([], "")
        if context and not tests:
            unknown.add(context)
        into = [ran[test] for test in tests] if context else [outside]
        if phase in _NOT_RUN:
            into += [fixtures[_file(test)] for test in tests]
        for name, lines in rows.items():
            if name in places:
                for each in into:
                    each[places[name]] |= lines
    for test, own in ran.items():
        for path, more in fixtures.get(_file(test), {}).items():
            own[path] |= more
    return ran, outside, unknown


def _file(test: str) -> str:
    return test.partition("#")[0]


class _Named:
    """The tests of a model by the names that a recording has for them."""

    def __init__(self, model: Model) -> None:
        self._files: dict[str, list[str]] = defaultdict(list)
        self._dotted: dict[str, list[str]] = defaultdict(list)
        tests = [symbol for symbol in model.symbols() if model.is_test(symbol.id)]
        for path in {symbol.path for symbol in tests}:
            parts = path.split("/")
            for at in range(len(parts)):
                self._files["/".join(parts[at:])].append(path)
        for symbol in tests:
            parts = symbol.path.removesuffix(".py").split("/")
            for at in range(len(parts)):
                self._dotted[".".join((*parts[at:], symbol.qual.partition("~")[0]))].append(symbol.id)

    def tests(self, context: str) -> tuple[list[str], str]:
        """The tests that a context may be, and pytest's word for what of them ran."""
        found = _PYTEST.fullmatch(context)
        if found is None:
            return self._dotted.get(context.rpartition("|")[2], []), ""
        qual = found["qual"].replace("::", ".")
        path = found["path"]
        places = [path] if path in self._files.get(path, ()) else self._files.get(path, [])
        return [symbol_id(one, qual) for one in places], found["phase"] or ""


def lines_of(text: str) -> list[str]:
    """The lines of a text as Python counts them."""
    return _BREAK.split(text)


class File:
    """A Python file as it was recorded: its text and which tests ran which line."""

    def __init__(
        self, text: str, outside: set[int], ran: dict[int, set[str]], spans: Mapping[str, Span]
    ) -> None:
        self.lines = lines_of(text)
        self.outside, self.ran, self.spans = outside, ran, spans

    @cached_property
    def statements(self) -> dict[int, tuple[int, int]]:
        """The first and last line of the statement's head that a line is of: one line may hold what decides
        whether another one of it runs."""
        found: dict[int, tuple[int, int]] = {}
        first = 0
        try:
            for token in tokenize.generate_tokens(io.StringIO("\n".join(self.lines) + "\n").readline):
                if token.type == tokenize.NEWLINE:
                    found.update(dict.fromkeys(range(first, token.end[0] + 1), (first, token.end[0])))
                    first = 0
                elif not first and token.type not in _NOTHING:
                    first = token.start[0]
        except (tokenize.TokenError, SyntaxError):  # another version of Python may read it
            return dict.fromkeys(range(1, len(self.lines) + 1), (1, len(self.lines)))
        return found

    def between(self, line: int) -> bool:
        """Whether lines that come behind this one are not inside of a statement."""
        return self.statements.get(line) != self.statements.get(line + 1, (0, 0))

    def statement(self, line: int) -> tuple[int, int]:
        """First and last line of the statement with this line; a comment is one of its own."""
        return self.statements.get(line, (line, line))

    def owner(self, line: int, kinds: tuple[str, ...] = ()) -> str:
        """The innermost symbol with this line, of these kinds; a decorator is of what it decorates. Empty for
        a line of the module."""
        while self.text(line).startswith("@") and line < len(self.lines):
            line = self.statement(line)[1] + 1
        within = [
            (span.first, -span.last, qual)
            for qual, span in self.spans.items()
            if span.first <= line <= span.last and (not kinds or span.kind in kinds)
        ]
        return max(within)[2] if within else ""

    def text(self, line: int) -> str:
        """A line without its indentation."""
        return self.lines[line - 1].lstrip() if 0 < line <= len(self.lines) else ""

    def inside(self, line: int) -> str:
        """The innermost function in whose body the line is, behind its head."""
        qual = self.owner(line, ("function",))
        return qual if qual and line > self.statement(self.spans[qual].first)[1] else ""

    def tests(self, first: int, last: int) -> set[str]:
        """The tests that ran one of the lines."""
        return set().union(*(self.ran.get(line, ()) for line in range(first, last + 1)))

    def body(self, qual: str) -> set[str]:
        """The tests that ran a symbol: of a function its body, of anything else all of the text that it is
        in, its class or the module."""
        span = self.spans.get(qual)
        if span is None:
            return self.tests(1, len(self.lines))
        if span.kind == "function":
            return self.tests(self.statement(span.first)[1] + 1, span.last)
        if span.kind == "class":
            return self.tests(span.first, span.last)
        return self.body(qual.rpartition(".")[0])


_NOTHING = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})


class Span(NamedTuple):
    """The lines of a symbol."""

    kind: str
    first: int
    last: int


class Recording:
    """The recording of one folder."""

    def __init__(self, store: Store, root: Path) -> None:
        """Empty where there is none."""
        self.store = store
        rows = store.rows(
            "SELECT path, recorded.id, hash, text IS NOT NULL FROM recorded JOIN tree ON tree.id = tree"
            " WHERE root = ?",
            [str(root.resolve())],
        )
        self.hashes = {row[0]: str(row[2]) for row in rows}
        """The Python files that there were, with the hash of each."""
        self._ids = {row[0]: row[1] for row in rows if row[3]}

    def __bool__(self) -> bool:
        return bool(self._ids)

    @cached_property
    def tests(self) -> frozenset[str]:
        """All tests that it knows."""
        rows = self.store.rows(
            "SELECT DISTINCT name.text FROM recorded JOIN test_covers ON file = recorded.id"
            " JOIN name ON name.id = test WHERE tree ="
            " (SELECT tree FROM recorded WHERE id = ?)",
            [next(iter(self._ids.values()), 0)],
        )
        return frozenset(row[0] for row in rows)

    def file(self, path: str) -> File | None:
        """What is recorded of a file; None where no test ran it, or it changed meanwhile."""
        if path not in self._ids:
            return None
        text, outside, digest = self.store.rows(
            "SELECT text, outside, hash FROM recorded WHERE id = ?", [self._ids[path]]
        )[0]
        source = zlib.decompressobj().decompress(text, scan.MAX_FILE_BYTES).decode("utf-8", "replace")
        most = len(source) + 1
        ran: dict[int, set[str]] = defaultdict(set)
        for test, lines in self.store.rows(
            "SELECT text, lines FROM test_covers JOIN name ON name.id = test WHERE file = ?",
            [self._ids[path]],
        ):
            for line in _numbers(lines, most):
                ran[line].add(test)
        spans = self.store.rows(
            "SELECT qual, kind, line, end FROM symbol JOIN content ON content.id = content WHERE hash = ?"
            " AND language = 'python'",
            [digest],
        )
        return File(
            source,
            set(_numbers(outside, most)),
            ran,
            {qual: Span(kind, first, last) for qual, kind, first, last in spans},
        )


def _ranges(lines: Iterable[int]) -> str:
    """`3-5,8`: numbers as text."""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in found)


def _numbers(ranges: str, most: int) -> Iterator[int]:
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first), most) + 1)
