"""What external predicates say: rows about the workspace's code, for guards that a policy may switch on.

Each is a Predicate (spak.ports.predicates), asked by spak.tools.observe.predicates. Files are read and never
run. Everything is bounded (files, bytes, rows); a tree beyond a bound is an error and no shorter answer, so
that whoever asked denies.

    dependency_link(Caller, Callee, Import)   Python's imports and C's includes of files of the workspace
    test_coverage(File)                       whether tests reach a file
    entropy(Text, Score)                      Shannon's entropy in bits per character, three decimals

Files are named by their path below the workspace, as facts about paths name them. What is hidden (`.git`),
made by programs (`__pycache__`, `node_modules`) or a link is no file here. An import that only running the
program would reveal is not seen; a Python file that does not parse is read line by line instead.

A file is covered if it is a test itself (`test_*`, `*_test`, `conftest.py`, or below a folder `test` or
`tests`), if a test imports or includes it, if it is a C source whose header of the same name is included by a
test, or if `coverage.json` at the workspace's top (coverage.py's report) names a line of it that ran.
"""

from __future__ import annotations

import ast
import errno
import json
import math
import os
import posixpath
import re
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from spak import canon
from spak.cancel import Cancel, check
from spak.datalog.values import Value
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import Entry, walk
from spak.ports.predicates import Look, Predicate, PredicateEntry

Row = tuple[Any, ...]

MAX_FILES = 20_000
MAX_FILE_BYTES = 512 << 10
MAX_BYTES = 8 << 20
MAX_LINKS = 20_000
MAX_TEXT = 65_536
MAX_REPORT = 16 << 20
MAX_DEPTH = 64
TIMEOUT_S = 300.0

_PYTHON = (".py", ".pyi")
_C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".cu", ".cuh")
_HEADERS = (".h", ".hh", ".hpp", ".cuh")
_SKIPPED = frozenset({"__pycache__", "node_modules"})
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]{1,400})[">]', re.M)
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]{1,400})[ \t]+import[ \t]|import[ \t]+([\w. ,]{1,400}))", re.M
)

Import = tuple[int, str, tuple[str, ...]]
"""Level (0 is absolute), module, and the names taken from it."""


@dataclass(slots=True)
class Tree:
    """The source files of a workspace and what each names: made for one question, or for several."""

    root: Path
    files: dict[str, bytes] = field(default_factory=dict)
    """Sources by path, in order."""
    bases: tuple[str, ...] = ()
    """The folders that hold packages: an absolute import of any file may start there."""
    cancel: Cancel | None = None

    @classmethod
    def of(cls, root: Path, cancel: Cancel | None = None) -> Tree:
        """Raises: UsageError `world.too_large`; OSError when the host is in trouble; Cancelled."""
        tree, total = cls(root, cancel=cancel), 0
        for path, data in _sources(root):
            check(cancel)
            total += len(data)
            if len(tree.files) >= MAX_FILES or total > MAX_BYTES:
                raise _too_large(f"more than {MAX_FILES} source files or {MAX_BYTES} bytes of them")
            tree.files[path] = data
        tree.files = dict(sorted(tree.files.items()))
        packages = {
            posixpath.dirname(path) for path in tree.files if posixpath.basename(path) == "__init__.py"
        }
        parents = {posixpath.dirname(package) for package in packages if package}
        tree.bases = tuple(sorted(parents - packages))
        return tree

    def links(self) -> list[tuple[str, str, str]]:
        """Who depends on whom, and by which words. Raises: UsageError `world.too_large`."""
        found: dict[tuple[str, str, str], None] = {}
        for path, data in self.files.items():
            for target, words in self._named(path, data):
                if target != path:
                    found[path, target, words] = None
            if len(found) > MAX_LINKS:
                raise _too_large(f"more than {MAX_LINKS} dependencies")
        return sorted(found)

    def covered(self, report: bytes | None) -> set[str]:
        """The files that tests reach."""
        tested = {path for path in self.files if _is_test(path)}
        reached = {target for path in tested for target, _ in self._named(path, self.files[path])}
        headers = {posixpath.splitext(path)[0] for path in reached if path.endswith(_HEADERS)}
        units = {path for path in self.files if path.endswith(_C) and posixpath.splitext(path)[0] in headers}
        return tested | reached | units | (_ran(report) & self.files.keys())

    def _named(self, path: str, data: bytes) -> Iterator[tuple[str, str]]:
        check(self.cancel)
        if path.endswith(_PYTHON):
            for level, module, names in _imports(data):
                yield from self._modules(path, level, module, names)
        else:
            for words in _INCLUDE.findall(data.decode("utf-8", "replace")):
                target = self._included(path, words)
                if target:
                    yield target, words

    def _modules(
        self, path: str, level: int, module: str, names: tuple[str, ...]
    ) -> Iterator[tuple[str, str]]:
        """The files of a module, of its packages, and of the names that are modules themselves."""
        shown = "." * level + module
        folder = posixpath.dirname(path)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        for base in [folder] if level else dict.fromkeys([*_bases(folder), *self.bases]):
            parts = module.split(".") if module else []
            whole = [self._module(base, parts[: count + 1]) for count in range(len(parts))]
            whole += [self._module(base, [*parts, name]) for name in names]
            if level and not parts:
                whole.append(self._module(base, []))
            yield from ((target, shown) for target in whole if target)

    def _module(self, base: str, parts: list[str]) -> str:
        stem = posixpath.join(base, *parts)
        for name in (f"{stem}.py", posixpath.join(stem, "__init__.py"), f"{stem}.pyi"):
            if name in self.files:
                return name
        return ""

    def _included(self, path: str, words: str) -> str:
        folder = posixpath.dirname(path)
        for base in [folder, *(posixpath.join(base, "include") for base in _bases(folder)), *_bases(folder)]:
            target = posixpath.normpath(posixpath.join(base, words))
            if target in self.files:
                return target
        return ""


def _dependency_link(args: Sequence[Value | None], look: Look) -> Iterable[Row]:
    return _tree(look).links()


def _test_coverage(args: Sequence[Value | None], look: Look) -> Iterable[Row]:
    """By `coverage.json` where there is one."""
    seen = _tree(look)
    try:
        report = beneath.read_beneath(seen.root, "coverage.json", MAX_REPORT)
    except UsageError:
        report = None
    return [(path,) for path in sorted(seen.covered(report))]


def _entropy(args: Sequence[Value | None], look: Look) -> Iterable[Row]:
    text = args[0]
    if not isinstance(text, str):
        raise UsageError("world.unknown", "entropy is of texts", "ask for that of a text")
    return [(text, bits(text))]


def _tree(look: Look) -> Tree:
    """The workspace's sources, read once in a look. Raises: UsageError `world.too_large`; OSError."""
    if "tree" not in look.shared:
        look.shared["tree"] = Tree.of(look.root, look.cancel)
    tree: Tree = look.shared["tree"]
    return tree


@dataclass(slots=True)
class OfCode:
    """A Predicate about the workspace's code."""

    entry: PredicateEntry
    answer: Callable[[Sequence[Value | None], Look], Iterable[Row]]

    def rows(self, args: Sequence[Value | None], look: Look) -> Iterable[Row]:
        return self.answer(args, look)


def _of(
    name: str, summary: str, columns: str, modes: str, answer: Callable[..., Iterable[Row]]
) -> tuple[str, OfCode]:
    entry = PredicateEntry(
        name, 1, summary, tuple(columns.split()), tuple(modes.split()), MAX_LINKS, TIMEOUT_S
    )
    return name, OfCode(entry, answer)


OF_FILES: Mapping[str, Predicate] = dict(
    (
        _of(
            "dependency_link",
            "Which file depends on which, and by which words.",
            "Caller Callee Import",
            " ".join(map("".join, product("-+", repeat=3))),
            _dependency_link,
        ),
        _of("test_coverage", "The files that tests reach.", "File", "+ -", _test_coverage),
        _of("entropy", "The bits of entropy of a text.", "Text Score", "+-", _entropy),
    )
)
"""What can be asked, by name."""


def bits(text: str) -> float:
    """Bits per character of the text's first MAX_TEXT characters."""
    text = text[:MAX_TEXT]
    if not text:
        return 0.0
    shares = [count / len(text) for _, count in sorted(Counter(text).items())]
    return round(abs(math.fsum(share * math.log2(share) for share in shares)), 3)


def _sources(root: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of each source file; no link is followed, nothing hidden is entered."""
    try:
        for seen, entry in enumerate(walk(root, ".", MAX_DEPTH + 1, _skipped)):
            too_deep = entry.kind == "folder" and entry.path.count("/") >= MAX_DEPTH
            if seen >= 10 * MAX_FILES or (too_deep and not _skipped(entry.path)):
                raise _too_large(f"more than {10 * MAX_FILES} files, or folders {MAX_DEPTH} deep")
            if entry.trouble:
                raise _cannot_be_read(entry.trouble)
            data = _read(entry) if entry.kind == "file" and entry.name.endswith(_PYTHON + _C) else None
            if data is not None:
                yield entry.path.encode("utf-8", "backslashreplace").decode(), data
    except OSError as error:
        raise _cannot_be_read(str(error.strerror)) from error


def _skipped(folder: str) -> bool:
    name = folder.rpartition("/")[2]
    return name.startswith(".") or name in _SKIPPED


def _read(entry: Entry) -> bytes | None:
    """A regular file's content; None for what is none, or is gone.

    Raises: UsageError `world.too_large`; OSError.
    """
    try:
        fd = entry.open()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = os.read(fd, MAX_FILE_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(f"{entry.name!a} with more than {MAX_FILE_BYTES} bytes")
    return data


def _is_test(path: str) -> bool:
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    return (
        not {"test", "tests"}.isdisjoint(folders)
        or stem.startswith("test_")
        or stem.endswith("_test")
        or name == "conftest.py"
    )


_known: dict[str, tuple[Import, ...]] = {}
"""Imports by the digest of a file: a workspace changes by a file or two between two questions."""


def _imports(data: bytes) -> tuple[Import, ...]:
    digest = canon.digest(data)
    found = _known.get(digest)
    if found is None:
        if len(_known) >= MAX_FILES:
            _known.clear()
        found = _known[digest] = _parsed(data.decode("utf-8-sig", "replace"))
    return found


def _parsed(text: str) -> tuple[Import, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return tuple(_by_line(text))
    found: dict[Import, None] = {}
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            found.update({(0, alias.name, ()): None for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            found[node.level, node.module or "", tuple(alias.name for alias in node.names)] = None
    return tuple(found)


def _by_line(text: str) -> Iterator[Import]:
    """What the lines of a file that does not parse seem to import; more rather than less."""
    for module, modules in _IMPORT.findall(text):
        for name in [module] if module else [part.split()[0] for part in modules.split(",") if part.split()]:
            level = len(name) - len(name.lstrip("."))
            yield level, name[level:], ()


def _bases(folder: str) -> list[str]:
    """Where an absolute import or an include may start: each folder from the file's own up, and its `src`."""
    found = []
    while True:
        found += [folder, posixpath.join(folder, "src")]
        if not folder:
            return found
        folder = posixpath.dirname(folder)


def _ran(report: bytes | None) -> set[str]:
    """The files that coverage.py's JSON report saw running; an odd report names none."""
    try:
        files = json.loads(report or b"{}").get("files", {})
        return {posixpath.normpath(path) for path, about in files.items() if about.get("executed_lines")}
    except (ValueError, AttributeError, RecursionError):
        return set()


def _cannot_be_read(why: str) -> UsageError:
    return UsageError(
        "world.unreadable", f"a part of the workspace can not be read: {why}", "fix its permissions"
    )


def _too_large(what: str) -> UsageError:
    return UsageError("world.too_large", f"the workspace has {what}", "let the guard see a smaller workspace")
