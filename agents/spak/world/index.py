"""Keeping the model of a folder up to date: only what changed is read, parsed and linked.

Takes a folder and a Store; gives a Report. What a file's links depend on was noted when they were made, as
(file, name at its top) and as words of imports: a change of one name makes only the links anew that looked
at it. The result is the same as that of a first index (a test compares them after random edits).
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Container, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from spak.cancel import Cancel, check
from spak.errors import UsageError
from spak.world import scan
from spak.world.facts import EXTRACTOR, Body, Face
from spak.world.languages import PREFIXES, indexed_as
from spak.world.link import Links, link
from spak.world.modules import Modules, word
from spak.world.resolve import Resolver
from spak.world.scan import Found
from spak.world.store import Store
from spak.world.values import NOTHING, TYPED, shared
from spak.world.worker import Parsers

_RACY_NS = 2_000_000_000
"""A file that changed so shortly before it was read may change again under the same stamp."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an update did."""

    files: int
    read: int
    parsed: int
    linked: int
    removed: int


@dataclass(slots=True)
class _Known:
    """A file as the store has it."""

    id: int
    language: str
    hash: str
    content: int
    stamp: scan.Stamp
    seen: int


@dataclass(slots=True)
class _New:
    """A file that is new or changed."""

    found: Found
    hash: str
    content: int
    reason: str
    errors: int


class Indexer:
    """One update of one tree."""

    def __init__(self, store: Store, root: Path, cancel: Cancel | None) -> None:
        self.store = store
        self.root = root
        self.cancel = cancel
        self.tree = store.tree(root)
        self.parsed = 0
        self._faces: dict[int, Face] = {}
        self._bodies: dict[int, Body] = {}
        self._contents: dict[str, int] = {}
        self.known = self._known()

    def _known(self) -> dict[str, _Known]:
        rows = self.store.rows(
            "SELECT path, id, language, hash, content, size, mtime, ctime, inode, seen FROM file"
            " WHERE tree = ?",
            [self.tree],
        )
        return {row[0]: _Known(row[1], row[2], row[3], row[4], row[5:9], row[9]) for row in rows}

    def run(self) -> Report:
        """Bring the tree up to date."""
        here = {item.path: item for item in scan.files(self.root, self.cancel)}
        changed = [item for item in here.values() if not self._same(item)]
        gone = [path for path in self.known if path not in here]
        if not changed and not gone and self.tree:
            return Report(len(here), 0, 0, 0, 0)
        with self.store.writing():
            if not self.tree:
                self.store.db.execute(
                    "INSERT OR IGNORE INTO tree (root, state) VALUES (?, '')", (str(self.root),)
                )
                self.tree = self.store.tree(self.root)
            self.known = self._known()  # another process may have been faster
            new = self._read(changed)
            linked = self._update(here, new, [path for path in self.known if path not in here])
        return Report(len(here), len(changed), self.parsed, linked, len(gone))

    def _same(self, item: Found) -> bool:
        known = self.known.get(item.path)
        return (
            known is not None
            and known.stamp == item.stamp
            and known.language == item.language
            and item.stamp[2] < known.seen - _RACY_NS
        )

    def _read(self, changed: Iterable[Found]) -> dict[str, _New]:
        made: dict[str, _New] = {}
        with Parsers() as parsers:
            for item in changed:
                check(self.cancel)
                data, reason = scan.read(self.root, item)
                digest = hashlib.sha256(data).hexdigest() if data else ""
                content, errors = 0, 0
                if not reason:
                    content, errors = self._content(parsers, item.language, digest, data)
                    reason = "" if content else "unknown"
                made[item.path] = _New(item, digest, content, reason, errors)
        return made

    def _content(self, parsers: Parsers, language: str, digest: str, data: bytes) -> tuple[int, int]:
        """The facts of a file's bytes: those in the store, else parsed now; 0 where the parser gave up."""
        row = self.store.db.execute(
            "SELECT id, body FROM content WHERE hash = ? AND language = ? AND extractor = ?",
            (digest, language, EXTRACTOR),
        ).fetchone()
        if row is not None:
            body = self._bodies.get(row[0]) or orjson.loads(row[1])
            return row[0], len(body["errors"])
        self.parsed += 1
        parsed = parsers.parse(language, data)
        if parsed is None:
            return 0, 0
        content = self.store.db.execute(
            "INSERT INTO content (hash, language, extractor, face, body) VALUES (?, ?, ?, ?, ?)",
            (digest, language, EXTRACTOR, *parsed),
        ).lastrowid
        assert content is not None
        face, body = orjson.loads(parsed[0]), orjson.loads(parsed[1])
        self._faces[content], self._bodies[content] = face, body
        spans = body["spans"]
        self.store.db.executemany(
            "INSERT INTO symbol VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    content,
                    qual,
                    qual.rpartition(".")[2].partition("~")[0],
                    about["k"],
                    about["v"],
                    *spans[qual],
                )
                for group in face["symbols"].values()
                for qual, about in group.items()
            ],
        )
        return content, len(body["errors"])

    def _update(self, here: dict[str, Found], new: dict[str, _New], gone: list[str]) -> int:
        """Write the files that changed, and the links of all that depend on them."""
        db = self.store.db
        before = {path: known.content for path, known in self.known.items()}
        affected = {path for path, item in new.items() if before.get(path) != item.content}
        added = [path for path in new if path not in self.known]
        shape, words = False, {word(path) for path in (*added, *gone)}
        if words:
            was, now_ = Modules(self.known), Modules(here)
            shape = was.bases != now_.bases
            words |= {folder.rpartition("/")[2] for folder in was.folders ^ now_.folders}
        for path, item in new.items():
            if path in before and not shape:
                affected |= self._dependents(path, self._differ(before[path], item.content))
        for path in gone:
            affected |= self._dependents(path, None)
        for path in {*new, *gone} if before else ():
            fresh = new[path].content if path in new else 0
            names = self._differ(before.get(path, 0), fresh)
            words |= {shared(path, name) for name in names if path.endswith(TYPED)}
        affected |= self._dependents("/", words)
        for path in gone:
            self._forget(path)
            db.execute("DELETE FROM file WHERE id = ?", (self.known.pop(path).id,))
        now = time.time_ns()
        for path, item in new.items():
            self._write(path, item, now)
        after = {path: known.content for path, known in self.known.items()}
        affected = set(after) if shape else affected & after.keys()
        self._link(sorted(affected), after, before)
        return len(affected)

    def _differ(self, old: int, new: int) -> set[str]:
        """The names at the top of a file that other files see otherwise than before."""
        if old == new:
            return set()
        was, now = self._face(old) or NOTHING, self._face(new) or NOTHING
        found = {
            name
            for part in ("names", "symbols")
            for name in was[part].keys() | now[part].keys()
            if was[part].get(name) != now[part].get(name)
        }
        if was["all"] != now["all"] or was["stars"] != now["stars"]:
            found.add("*")
        return found

    def _dependents(self, path: str, names: set[str] | None) -> set[str]:
        sql = "SELECT path FROM dep JOIN file ON file.id = dep.file WHERE target = ?"
        target = self._target(path)
        if names is None:
            return {row[0] for row in self.store.rows(sql, [target])}
        return {row[0] for name in names for row in self.store.rows(f"{sql} AND name = ?", [target, name])}

    def _target(self, path: str) -> int:
        return -self.tree if path == "/" else self.known[path].id

    def _write(self, path: str, item: _New, now: int) -> None:
        values = (
            item.found.language, item.hash, item.content, *item.found.stamp, now,
            int(scan.is_test(path)), item.reason, item.errors,
        )  # fmt: skip
        known = self.known.get(path)
        if known is None:
            made = self.store.db.execute(
                "INSERT INTO file (language, hash, content, size, mtime, ctime, inode, seen, test, reason,"
                " errors, tree, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, self.tree, path),
            ).lastrowid
            assert made is not None
            self.known[path] = _Known(
                made, item.found.language, item.hash, item.content, item.found.stamp, now
            )
        else:
            self.store.db.execute(
                "UPDATE file SET language = ?, hash = ?, content = ?, size = ?, mtime = ?, ctime = ?,"
                " inode = ?, seen = ?, test = ?, reason = ?, errors = ? WHERE id = ?",
                (*values, known.id),
            )
            known.content = item.content

    def _forget(self, path: str) -> None:
        own = symbol_id(path, "")
        callers = "caller IN (SELECT id FROM name WHERE text = ? OR (text > ? AND text < ?))"
        for table in ("link", "site"):
            self.store.db.execute(
                f"DELETE FROM {table} WHERE tree = ? AND {callers}", (self.tree, own, f"{own}#", f"{own}$")
            )
        self.store.db.execute("DELETE FROM dep WHERE file = ?", (self.known[path].id,))

    def _link(self, paths: list[str], contents: dict[str, int], old: Container[str]) -> None:
        modules = Modules(path for path, content in contents.items() if content)
        values = Resolver(lambda path: self._face(contents.get(path, 0)), modules)
        for path in paths:
            check(self.cancel)
            if path in old:
                self._forget(path)
            if contents[path]:
                self._keep(path, link(path, self._body(contents[path]), values))

    def _keep(self, path: str, links: Links) -> None:
        tree, db = self.tree, self.store.db
        edges = [
            (symbol_id(where, callee), symbol_id(path, caller), how, role, " ".join(map(str, lines)))
            for caller, where, callee, how, role, lines in links.edges
        ]
        sites = [(name, symbol_id(path, caller), line) for caller, name, line in links.unresolved]
        ids = self.store.numbers(
            [*(text for edge in edges for text in edge[:2]), *(site[1] for site in sites)]
        )
        db.executemany(
            "INSERT INTO link VALUES (?, ?, ?, ?, ?, ?)",
            [(tree, ids[callee], ids[caller], *rest) for callee, caller, *rest in edges],
        )
        db.executemany(
            "INSERT INTO site VALUES (?, ?, ?, ?)", [(tree, name, ids[at], line) for name, at, line in sites]
        )
        file = self.known[path].id
        db.executemany(
            "INSERT INTO dep VALUES (?, ?, ?)",
            [(self._target(where), name, file) for where, name in links.deps],
        )

    def _face(self, content: int) -> Face | None:
        return self._loaded(self._faces, "face", content)

    def _body(self, content: int) -> Body:
        body = self._loaded(self._bodies, "body", content)
        assert body is not None
        return body

    def _loaded(self, cache: dict[int, dict[str, Any]], column: str, content: int) -> dict[str, Any] | None:
        if not content:
            return None
        found = cache.get(content)
        if found is None:
            row = self.store.db.execute(f"SELECT {column} FROM content WHERE id = ?", (content,)).fetchone()
            found = cache[content] = orjson.loads(row[0])
        return found


def update(store: Store, root: Path, cancel: Cancel | None = None) -> Report:
    """Bring the model of a folder up to date. Raises: UsageError `world.*`; Cancelled."""
    if not root.is_dir():
        raise UsageError("usage.workspace", f"{root} is not a folder", "name an existing one")
    with _without_collection():
        return Indexer(store, root.resolve(), cancel).run()


def symbol_id(path: str, qual: str) -> str:
    """The id of a symbol: stable under edits elsewhere; that of a module has no `#`."""
    return f"{_own(path)}#{qual}" if qual else _own(path)


@lru_cache(50_000)
def _own(path: str) -> str:
    return f"{PREFIXES[indexed_as(path)]}:{path}"


@contextmanager
def _without_collection() -> Any:
    """Millions of small values that all stay: the collector would look through them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
