"""Questions about the model of a folder: symbols, references, impact, tests, and why an edge is there.

Takes a Store and a tree that `spak.world.index` brought up to date; gives rows with what they rest on. Every
answer has `Covers`: how many files it knows, how many it could not read as they are now, and how many places
name something in reach that could not be followed. What is not known is never left out silently.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from spak.errors import UsageError
from spak.world import scan
from spak.world.facts import RUST_TEST, Face
from spak.world.index import symbol_id
from spak.world.languages import language_of
from spak.world.link import link
from spak.world.modules import Modules
from spak.world.resolve import Resolver
from spak.world.store import Store, marks, parts

RULES = {
    "scope": "the name is bound in a scope around it",
    "import": "the name comes through an import",
    "self": "the first parameter of a method is an instance of its class",
    "super": "the next class in the order of the bases has the name",
    "type": "a declared type, or the class that was called, says what it is",
}
"""What each way of finding an edge rests on."""

GO_TESTS = ("Test", "Benchmark", "Fuzz", "Example")
Edge = tuple[str, str, str, str, str]
"""Caller, callee, how, role, lines."""


@dataclass(frozen=True, slots=True)
class Covers:
    """What an answer rests on. `unknown` are source files without facts, `unparsed` those with parts that do
    not parse, `stale` those that are not as they were when they were read."""

    indexed: int
    stale: int
    unresolved: int
    unparsed: int
    unknown: int

    def to_json(self) -> dict[str, int]:
        """As answers hold it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One row of symbol_graph, with its lines."""

    id: str
    path: str
    qual: str
    kind: str
    visibility: str
    line: int
    end: int
    signature: str


class Reach(NamedTuple):
    """A symbol that depends on another, directly or through `via`, and how that edge was found."""

    symbol: str
    line: int
    how: str
    via: str

    @property
    def path(self) -> str:
        """The file of the symbol."""
        return _path(self.symbol)


class Unknown(NamedTuple):
    """Places that may depend on a change without an edge: caller, name or means, line; in any order."""

    named: list[tuple[str, str, int]]
    """They name the change, or what depends on it, and could not be followed."""
    dynamic: list[tuple[str, str, int]]
    """In files that may look at the change, and only a run reveals what they mean."""

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.named) + len(self.dynamic)


class Model:
    """The model of one folder, as it was when it was made: edges that were read once are kept."""

    def __init__(self, store: Store, root: Path, *, stale: int | None = None) -> None:
        """`stale`: how many files changed since, for a folder that was a copy and may be gone; None: look.

        Raises: UsageError `world.missing` where the folder was never indexed.
        """
        self.store = store
        self.root = root.resolve()
        self.known_stale = stale
        self.tree = store.tree(self.root)
        if not self.tree:
            raise UsageError("world.missing", f"{root} has no index", "spak world index makes one")
        self._into: dict[int, list[tuple[int, Reach]]] = {}
        self._replacing: dict[int, list[tuple[int, Reach]]] = {}
        self._texts: dict[int, str] = {}
        self._sites: dict[str, list[tuple[str, str, int]]] = {"": []}
        self._dynamic: dict[str, list[tuple[str, str, int]]] = {}
        self._quals: dict[str, list[str]] = {}
        self._tests: set[str] | None = None

    def covers(self, unresolved: int = 0) -> Covers:
        """What answers rest on now."""
        rows = self.store.rows(
            "SELECT path, size, mtime, ctime, inode, reason, errors, language FROM file WHERE tree = ?",
            [self.tree],
        )
        known = {row[0]: row for row in rows}
        return Covers(
            indexed=sum(1 for row in rows if not row[5]),
            stale=self._stale({path: row[1:5] for path, row in known.items()}),
            unresolved=unresolved,
            unparsed=sum(1 for row in rows if row[6]),
            unknown=sum(1 for row in rows if row[5]),
        )

    def _stale(self, known: Mapping[str, scan.Stamp]) -> int:
        if self.known_stale is not None:
            return self.known_stale
        here = {item.path: item.stamp for item in scan.files(self.root)}
        changed = sum(1 for path, stamp in here.items() if known.get(path) != stamp)
        return changed + len(known.keys() - here.keys())

    # symbols

    def symbols(self, words: str = "", most: int = 100_000) -> list[Symbol]:
        """The symbols of a path, with a name, or all of them."""
        sql = (
            "SELECT file.path, qual, kind, symbol.seen, line, end, sign FROM symbol JOIN file USING (content)"
            " WHERE file.tree = ?{} ORDER BY file.path, line, qual LIMIT ?"
        )
        path, mark, name = words.partition("#")
        if mark:
            rows = self.store.rows(
                sql.format(" AND file.path = ? AND (qual = ? OR qual LIKE ? ESCAPE '\\')"),
                [self.tree, _bare(path), name, _escaped(name) + "~%", most],
            )
        elif not words:
            rows = self.store.rows(sql.format(""), [self.tree, most])
        elif "/" in words or self._is_file(_bare(words)):
            rows = self.store.rows(
                sql.format(" AND (file.path = ? OR file.path LIKE ? ESCAPE '\\')"),
                [self.tree, _bare(words), _escaped(_bare(words).rstrip("/")) + "/%", most],
            )
        else:
            last = words.rpartition(".")[2]
            rows = self.store.rows(sql.format(" AND symbol.name = ?"), [self.tree, last, most])
            rows = [row for row in rows if f".{row[1]}".endswith(f".{words}")]
        return [Symbol(symbol_id(row[0], row[1]), *row) for row in rows]

    def target(self, words: str) -> list[Symbol]:
        """The symbols that a target means: `PATH#NAME`, a path, or a name that only one symbol has.

        Raises: UsageError `world.no_symbol`, `world.ambiguous`.
        """
        found = self.symbols(words)
        if not found:
            path, mark, name = words.partition("#")
            if not mark and self._is_file(_bare(words)):
                return [Symbol(symbol_id(_bare(words), ""), _bare(words), "", "module", "public", 1, 1, "")]
            raise UsageError(
                "world.no_symbol",
                f"there is no symbol {words!a}",
                self._near(path if mark else "", name or words),
            )
        paths = {symbol.path for symbol in found}
        if "#" not in words and "/" not in words and not self._is_file(_bare(words)):
            kinds = {(symbol.path, symbol.qual.partition("~")[0]) for symbol in found}
            if len(kinds) > 1:
                shown = ", ".join(f"{path}#{qual}" for path, qual in sorted(kinds)[:5])
                raise UsageError(
                    "world.ambiguous",
                    f"{words!a} is {len(kinds)} symbols in {len(paths)} files",
                    f"name one: {shown}",
                )
        return found

    def meant(self, words: str) -> list[Symbol]:
        """The symbols of a file, or the one with an id; none where there is no such file or symbol."""
        path, mark, _ = words.partition("#")
        path = path.partition(":")[2] if mark else path
        found = self.symbols(path) if self._is_file(path) else []
        return [one for one in found if one.path == path and (not mark or one.id == words)]

    def partial(self, changed: str) -> list[str]:
        """Files outside of tests without all of their facts: `changed` too, where only its name is known, and
        those of its language that could not be read. Generated and vendored files are not meant."""
        rows = self.store.rows(
            "SELECT path, errors, reason FROM file WHERE tree = ? AND NOT test AND (errors OR reason != '')",
            [self.tree],
        )
        family = symbol_id(changed, "").partition(":")[0] if language_of(changed) else ""
        return [
            path
            for path, errors, reason in rows
            if errors
            or reason == "unknown"
            or path == changed
            or (reason in scan.UNREAD and symbol_id(path, "").startswith(f"{family}:"))
        ]

    def tested(self, reach: Iterable[str]) -> set[str]:
        """Those of the symbols in reach on which a test depends, directly or through others of them."""
        known = set(reach)
        below: dict[str, list[str]] = {}
        for edges in self._into.values():
            for _, edge in edges:
                below.setdefault(edge.symbol, []).append(edge.via)
        found: set[str] = set()
        front = [symbol for symbol in known if self.is_test(symbol)]
        while front:
            for symbol in below.get(front.pop(), ()):
                if symbol in known and symbol not in found:
                    found.add(symbol)
                    front.append(symbol)
        return found

    def _is_file(self, path: str) -> bool:
        return bool(self.store.rows("SELECT 1 FROM file WHERE tree = ? AND path = ?", [self.tree, path]))

    def _near(self, path: str, name: str) -> str:
        rows = self.store.rows(
            "SELECT DISTINCT file.path || '#' || qual FROM symbol JOIN file USING (content)"
            " WHERE file.tree = ?" + (" AND file.path = ?" if path else ""),
            [self.tree, _bare(path)] if path else [self.tree],
        )
        if not rows:
            return f"no file {path!a} is indexed" if path else "spak world symbols lists them"
        last = {row[0].rpartition("#")[2].rpartition(".")[2]: row[0] for row in rows}
        close = difflib.get_close_matches(name.rpartition(".")[2], last, 3) if len(last) < 50_000 else []
        return (
            f"near: {', '.join(last[item] for item in close)}" if close else "spak world symbols lists them"
        )

    # edges

    def callers(self, ids: Iterable[str]) -> list[Edge]:
        """Edges into symbols."""
        return self._edges("callee", ids)

    def callees(self, ids: Iterable[str]) -> list[Edge]:
        """Edges out of symbols."""
        return self._edges("caller", ids)

    def around(self, targets: Sequence[Symbol]) -> tuple[list[Edge], list[Edge], list[tuple[str, str, int]]]:
        """The edges into the targets and their members, those out of them, and what they name that could not
        be followed (caller, name, line); edges from one of these symbols to another are left out."""
        seeds = self._seeds(targets, False)
        ids = set(seeds.values())
        sites = self._some(
            "SELECT text, site.name, line FROM site JOIN name ON name.id = caller"
            f" WHERE tree = {self.tree} AND caller IN ({{}})",
            list(seeds),
        )
        into = [edge for edge in self.callers(ids) if edge[0] not in ids]
        return into, [edge for edge in self.callees(ids) if edge[1] not in ids], sorted(sites)

    def _edges(self, column: str, ids: Iterable[str]) -> list[Edge]:
        numbers = [row[0] for row in self._some("SELECT id FROM name WHERE text IN ({})", list(ids))]
        sql = (
            "SELECT a.text, b.text, how, role, lines FROM link JOIN name a ON a.id = caller"
            f" JOIN name b ON b.id = callee WHERE tree = {self.tree} AND {column} IN ({{}})"
        )
        return sorted(self._some(sql, numbers))

    def _some(self, sql: str, values: Sequence[Any]) -> list[Any]:
        """The rows of a question about values, of which there may be many."""
        return [row for part in parts(values) for row in self.store.rows(sql.format(marks(part)), part)]

    def impact(self, targets: Sequence[Symbol], wide: bool = False) -> list[Reach]:
        """All that depends on the targets, nearest first; their members count as the targets do.

        A changed class also reaches the members of subclasses that replace its own; a changed member that
        replaces one of a base also reaches what calls that. `wide` begins with the whole class of a member.
        """
        seeds = self._seeds(targets, wide)
        over = self._some(
            "SELECT callee, text FROM link JOIN name ON name.id = callee"
            f" WHERE tree = {self.tree} AND role = 'over' AND caller IN ({{}})",
            list(seeds),
        )
        self._texts.update(seeds)
        self._texts.update(over)
        front = list(dict.fromkeys([*seeds, *(row[0] for row in over)]))
        steps = set(seeds)
        found: list[Reach] = []
        while front:
            self._read(front)
            after: list[int] = []
            for callee in front:
                edges = self._into[callee]
                if callee in seeds:
                    edges = edges + self._replacing.get(callee, [])
                for caller, reach in edges:
                    if caller not in steps:
                        steps.add(caller)
                        after.append(caller)
                        found.append(reach)
            front = after
        return found

    def _read(self, front: Iterable[int]) -> None:
        """Read the edges into symbols that no question of this model has asked for yet."""
        missing = [callee for callee in front if callee not in self._into]
        self._into.update((callee, []) for callee in missing)
        sql = (
            "SELECT callee, caller, how, role, CAST(lines AS INTEGER), text FROM link"
            f" JOIN name ON name.id = caller WHERE tree = {self.tree} AND callee IN ({{}})"
        )
        for callee, caller, how, role, line, text in self._some(sql, missing):
            self._texts[caller] = text
            edges = self._replacing.setdefault(callee, []) if role == "over" else self._into[callee]
            edges.append((caller, Reach(text, line, how, self._texts[callee])))

    def _seeds(self, targets: Sequence[Symbol], wide: bool) -> dict[int, str]:
        found: dict[int, str] = {}
        for symbol in targets:
            qual = symbol.qual
            if wide and "." in qual:
                qual = qual.rpartition(".")[0]
            whole = symbol_id(symbol.path, qual)
            inner = f"{whole}." if qual else f"{whole}#"
            found.update(
                self.store.rows(
                    "SELECT id, text FROM name WHERE text = ? OR (text > ? AND text < ?)",
                    [whole, inner, inner + "\U0010ffff"],
                )
            )
        return found

    def unknown(self, targets: Sequence[Symbol], reach: Iterable[Reach]) -> Unknown:
        """What `impact` can not say of targets and what it found: whatever follows from these places depends
        on the targets too. The file of a target counts as a whole for what only a run reveals."""
        names = set(map(_last, map(itemgetter(0), reach)))
        names.update(map(_last, self.own(targets)))
        places: list[tuple[str, str, int]] = []
        for path in {item.path for item in targets}:
            if path not in self._dynamic:
                self._dynamic[path] = self.dynamic({path} | self.dependents([path]))
            places += self._dynamic[path]
        return Unknown(self._named(names), list(dict.fromkeys(places)))

    def own(self, targets: Sequence[Symbol]) -> set[str]:
        """The targets and all that is defined in them."""
        found = {item.id for item in targets}
        sql = "SELECT qual FROM symbol JOIN file USING (content) WHERE tree = ? AND path = ?"
        for path in {item.path for item in targets}:
            inner = tuple(f"{item.qual}." if item.qual else "" for item in targets if item.path == path)
            if path not in self._quals:
                self._quals[path] = [qual for (qual,) in self.store.rows(sql, [self.tree, path])]
            found.update(symbol_id(path, qual) for qual in self._quals[path] if qual.startswith(inner))
        return found

    def unresolved(self, names: Iterable[str]) -> list[tuple[str, str, int]]:
        """The places that name one of these and could not be followed: caller, name, line."""
        return sorted(self._named(set(names)))

    def _named(self, names: set[str]) -> list[tuple[str, str, int]]:
        sql = (
            "SELECT text, site.name, line FROM site JOIN name ON name.id = caller"
            f" WHERE tree = {self.tree} AND site.name IN ({{}})"
        )
        missing = names - self._sites.keys()
        self._sites.update((name, []) for name in missing)
        for row in self._some(sql, sorted(missing)):
            self._sites[row[1]].append(row)
        return [*chain.from_iterable(map(self._sites.__getitem__, names))]

    def dynamic(self, paths: Iterable[str]) -> list[tuple[str, str, int]]:
        """The places of files whose meaning only a run reveals (`getattr`, `exec`): caller, what, line."""
        sql = (
            "SELECT path, body FROM content JOIN file ON content.id = content"
            f" WHERE tree = {self.tree} AND instr(body, '\"dynamic\":[]') = 0 AND path IN ({{}})"
        )
        return sorted(
            (symbol_id(path, caller), what, line)
            for path, body in self._some(sql, sorted(paths))
            for caller, what, line in orjson.loads(body)["dynamic"]
        )

    def is_test(self, reach: str) -> bool:
        """Whether a symbol is a test: a function `test*` in a file of tests (`Test*` and its kind in Go),
        such a file of JavaScript, or a function of Rust with an attribute that says so."""
        if reach.startswith("rs:"):
            return reach in self._marked()
        if reach.startswith("go:"):
            return _last(reach).startswith(GO_TESTS) and scan.is_test(_path(reach))
        whole = "#" not in reach and reach.startswith(("js:", "ts:"))
        return (whole or _last(reach).startswith("test")) and scan.is_test(_path(reach))

    def _marked(self) -> set[str]:
        """The tests of Rust."""
        if self._tests is None:
            sql = "SELECT path, qual FROM symbol JOIN file USING (content) WHERE tree = ? AND sign LIKE ?"
            rows = self.store.rows(sql, [self.tree, f"% {RUST_TEST}"])
            self._tests = {symbol_id(path, qual) for path, qual in rows}
        return self._tests

    def replayed(self, caller: str, callee: str) -> list[tuple[str, str, tuple[int, ...]]]:
        """The edges between two symbols, made anew from the facts alone: how, role, lines."""
        path = _path(caller)
        body = self.facts("body", path)
        return [
            (how, role, lines)
            for own, where, qual, how, role, lines in (
                link(path, body, self.resolver()).edges if body else ()
            )
            if symbol_id(path, own) == caller and symbol_id(where, qual) == callee
        ]

    def facts(self, part: str, path: str) -> Any:
        """`face` or `body` of a file (spak.world.facts), None where it has none."""
        row = self.store.rows(
            f"SELECT {part} FROM content JOIN file ON content.id = content WHERE tree = ? AND path = ?",
            [self.tree, path],
        )
        return orjson.loads(row[0][0]) if row else None

    def dependents(self, paths: Iterable[str]) -> set[str]:
        """The files whose links look at one of these files."""
        sql = (
            "SELECT DISTINCT user.path FROM dep JOIN file user ON user.id = dep.file"
            f" JOIN file ON file.id = target WHERE file.tree = {self.tree} AND file.path IN ({{}})"
        )
        return {row[0] for row in self._some(sql, sorted(paths))}

    def resolver(self, changed: Mapping[str, Face] = MappingProxyType({})) -> Resolver:
        """What links the files, some of them with another face than they have."""
        rows = self.store.rows("SELECT path FROM file WHERE tree = ? AND content != 0", [self.tree])
        return Resolver(
            lambda path: changed.get(path) or self.facts("face", path), Modules(row[0] for row in rows)
        )


def _bare(path: str) -> str:
    return path.removeprefix("./")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _path(symbol: str) -> str:
    return symbol.partition("#")[0].partition(":")[2]


@lru_cache(100_000)
def _last(symbol: str) -> str:
    return symbol.partition("#")[2].rpartition(".")[2].partition("~")[0]
