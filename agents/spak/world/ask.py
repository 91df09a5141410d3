"""Questions about the model of a folder: symbols, references, impact, tests, and why an edge is there.

Takes a Store and a tree that `spak.world.index` brought up to date; gives rows with what they rest on. Every
answer has `Covers`: how many files it knows, how many it could not read as they are now, and how many places
name something in reach that could not be followed. What is not known is never left out silently.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from spak.errors import UsageError
from spak.world import scan
from spak.world.index import symbol_id
from spak.world.link import link
from spak.world.modules import Modules
from spak.world.resolve import Resolver
from spak.world.store import Store

_CHUNK = 500


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


@dataclass(frozen=True, slots=True)
class Reach:
    """A symbol that depends on another, directly or through `via`, and how that edge was found."""

    symbol: str
    path: str
    line: int
    how: str
    via: str


class Model:
    """The model of one folder."""

    def __init__(self, store: Store, root: Path) -> None:
        """Raises: UsageError `world.missing` where the folder was never indexed."""
        self.store = store
        self.root = root.resolve()
        self.tree = store.tree(self.root)
        if not self.tree:
            raise UsageError("world.missing", f"{root} has no index", "spak world index makes one")

    def covers(self, unresolved: int = 0) -> Covers:
        """What answers rest on now."""
        rows = self.store.rows(
            "SELECT path, size, mtime, ctime, inode, reason, errors, language FROM file WHERE tree = ?",
            [self.tree],
        )
        known = {row[0]: row for row in rows}
        here = {item.path: item.stamp for item in scan.files(self.root)}
        stale = sum(1 for path, stamp in here.items() if path not in known or known[path][1:5] != stamp)
        stale += len(known.keys() - here.keys())
        return Covers(
            indexed=sum(1 for row in rows if not row[5]),
            stale=stale,
            unresolved=unresolved,
            unparsed=sum(1 for row in rows if row[6]),
            unknown=sum(1 for row in rows if row[5]),
        )

    def unparsed(self, path: str) -> bool:
        """Whether a file is not known as it is: it has parts that do not parse, or no facts."""
        sql = "SELECT errors, reason FROM file WHERE tree = ? AND path = ?"
        rows = self.store.rows(sql, [self.tree, path])
        return not rows or any(rows[0])

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

    def callers(self, ids: Iterable[str]) -> list[tuple[str, str, str, str, str]]:
        """Edges into symbols: caller, callee, how, role, lines."""
        return self._edges("callee", self._numbers(ids))

    def callees(self, ids: Iterable[str]) -> list[tuple[str, str, str, str, str]]:
        """Edges out of symbols."""
        return self._edges("caller", self._numbers(ids))

    def _edges(self, column: str, numbers: Sequence[int]) -> list[tuple[str, str, str, str, str]]:
        found: list[Any] = []
        for at in range(0, len(numbers), _CHUNK):
            part = numbers[at : at + _CHUNK]
            found += self.store.rows(
                "SELECT a.text, b.text, how, role, lines FROM link JOIN name a ON a.id = caller"
                f" JOIN name b ON b.id = callee WHERE tree = ? AND {column} IN ({_marks(part)})",
                [self.tree, *part],
            )
        return sorted(found)

    def _numbers(self, ids: Iterable[str]) -> list[int]:
        wanted, found = list(ids), []
        for at in range(0, len(wanted), _CHUNK):
            part = wanted[at : at + _CHUNK]
            found += [
                row[0] for row in self.store.rows(f"SELECT id FROM name WHERE text IN ({_marks(part)})", part)
            ]
        return found

    def impact(self, targets: Sequence[Symbol], wide: bool = False) -> list[Reach]:
        """All that depends on the targets, nearest first; their members count as the targets do.

        A changed class also reaches the members of subclasses that replace its own; a changed member that
        replaces one of a base also reaches what calls that. `wide` begins with the whole class of a member.
        """
        seeds = {row[0]: row[1] for row in self._seeds(targets, wide)}
        over = self._overridden(list(seeds))
        steps: dict[int, tuple[int, str, int]] = {}
        front, first = [*seeds, *over], True
        while front:
            rows: list[tuple[Any, ...]] = []
            for at in range(0, len(front), _CHUNK):
                part = front[at : at + _CHUNK]
                rows += self.store.rows(
                    "SELECT caller, callee, how, role, CAST(lines AS INTEGER) FROM link"
                    f" WHERE tree = ? AND callee IN ({_marks(part)})",
                    [self.tree, *part],
                )
            front = []
            for caller, callee, how, role, line in rows:
                if caller in seeds or caller in steps or (role == "over" and not (first and callee in seeds)):
                    continue
                steps[caller] = (callee, how, line)
                front.append(caller)
            first = False
        texts = self._texts([*steps, *(step[0] for step in steps.values())])
        return [
            Reach(texts[caller], _path(texts[caller]), line, how, texts[callee])
            for caller, (callee, how, line) in steps.items()
        ]

    def _seeds(self, targets: Sequence[Symbol], wide: bool) -> list[tuple[Any, ...]]:
        found: dict[int, str] = {}
        for symbol in targets:
            qual = symbol.qual
            if wide and "." in qual:
                qual = qual.rpartition(".")[0]
            whole = symbol_id(symbol.path, qual)
            inner = f"{whole}." if qual else f"{whole}#"
            rows = self.store.rows(
                "SELECT id, text FROM name WHERE text = ? OR (text > ? AND text < ?)",
                [whole, inner, inner + "\U0010ffff"],
            )
            found.update({row[0]: row[1] for row in rows})
        return list(found.items())

    def _overridden(self, seeds: list[int]) -> list[int]:
        rows: list[tuple[Any, ...]] = []
        for at in range(0, len(seeds), _CHUNK):
            part = seeds[at : at + _CHUNK]
            rows += self.store.rows(
                f"SELECT callee FROM link WHERE tree = ? AND role = 'over' AND caller IN ({_marks(part)})",
                [self.tree, *part],
            )
        return [row[0] for row in rows]

    def _texts(self, numbers: Iterable[int]) -> dict[int, str]:
        wanted = list(dict.fromkeys(numbers))
        found: dict[int, str] = {}
        for at in range(0, len(wanted), _CHUNK):
            part = wanted[at : at + _CHUNK]
            found.update(self.store.rows(f"SELECT id, text FROM name WHERE id IN ({_marks(part)})", part))
        return found

    def unresolved(self, names: Iterable[str]) -> list[tuple[str, str, int]]:
        """The places that name one of these and could not be followed: caller, name, line."""
        wanted, found = sorted({name for name in names if name}), []
        for at in range(0, len(wanted), _CHUNK):
            part = wanted[at : at + _CHUNK]
            found += self.store.rows(
                "SELECT text, site.name, line FROM site JOIN name ON name.id = caller"
                f" WHERE tree = ? AND site.name IN ({_marks(part)})",
                [self.tree, *part],
            )
        return sorted(found)

    def dynamic(self, paths: Iterable[str]) -> list[tuple[str, str, int]]:
        """The places of files whose meaning only a run reveals (`getattr`, `exec`): caller, what, line."""
        found = []
        for path in paths:
            row = self.store.rows(
                "SELECT body FROM content JOIN file ON content.id = content WHERE tree = ? AND path = ?",
                [self.tree, path],
            )
            for caller, what, line in orjson.loads(row[0][0])["dynamic"] if row else ():
                found.append((symbol_id(path, caller), what, line))
        return sorted(found)

    def is_test(self, reach: str) -> bool:
        """Whether a symbol is a test: a function `test*` in a file of tests."""
        return _last(reach).startswith("test") and scan.is_test(_path(reach))

    def replayed(self, caller: str, callee: str) -> list[tuple[str, str, tuple[int, ...]]]:
        """The edges between two symbols, made anew from the facts alone: how, role, lines."""
        rows = self.store.rows("SELECT path, content FROM file WHERE tree = ? AND content != 0", [self.tree])
        contents = dict(rows)
        path = _path(caller)
        if path not in contents:
            return []

        def load(column: str, where: str) -> Any:
            content = contents.get(where)
            row = content and self.store.rows(f"SELECT {column} FROM content WHERE id = ?", [content])
            return orjson.loads(row[0][0]) if row else None

        links = link(
            path, load("body", path), Resolver(_cached(lambda where: load("face", where)), Modules(contents))
        )
        return [
            (how, role, lines)
            for own, where, qual, how, role, lines in links.edges
            if symbol_id(path, own) == caller and symbol_id(where, qual) == callee
        ]


def _cached(load: Any) -> Any:
    known: dict[str, Any] = {}

    def face(path: str) -> Any:
        if path not in known:
            known[path] = load(path)
        return known[path]

    return face


def _marks(part: Sequence[Any]) -> str:
    return ",".join("?" * len(part))


def _bare(path: str) -> str:
    return path.removeprefix("./")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _path(symbol: str) -> str:
    return symbol.partition("#")[0].partition(":")[2]


def _last(symbol: str) -> str:
    return symbol.partition("#")[2].rpartition(".")[2].partition("~")[0]
