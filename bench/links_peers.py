"""The call edges that other programs find in a package: repowise, code-review-graph and codegraph.

Each is installed as it is locked (requirements-repowise.lock, requirements-code-review-graph.lock,
bench/codegraph/package-lock.json), indexes a copy of the package in a folder and a home of its own, without
a model, and its edges are read from the database that it leaves. Counted are its edges of calls whose both
ends are symbols: what it only matches by name when somebody asks is left out. A symbol is the definition of
its name at its line, so that each program's way of naming does not matter.
"""

from __future__ import annotations

import ast
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bench_peers import installed

ROOT = Path(__file__).resolve().parents[1]
CODEGRAPH = ROOT / "bench" / "codegraph"
TIMEOUT_S = 600.0
Edge = tuple[str, str, str, str]
"""Caller's path and QUAL, callee's path and QUAL."""
End = tuple[str, str, int]
"""Path, name and line of a symbol; an empty name and 0 for a file."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One program: how it is installed, how it is started, and what it leaves."""

    name: str
    install: Callable[[], Sequence[str]]
    """Gives how it is started. Raises: OSError, CalledProcessError."""
    arguments: tuple[str, ...]
    database: str
    query: str
    """Two ends, each as path, name and line; a path may begin with that of the folder."""


def edges(peer: Peer, folder: Path) -> set[Edge] | None:
    """The edges of a package, None where the program can not be installed here, or fails."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as place:
        root, home = Path(place).resolve() / "code", Path(place).resolve() / "home"
        home.mkdir()
        shutil.copytree(folder, root / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
        env = {**os.environ, "HOME": str(home), "DO_NOT_TRACK": "1"}
        for name in [name for name in env if name.endswith(("_API_KEY", "_TOKEN"))]:
            del env[name]
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        try:
            command = [*peer.install(), *peer.arguments]
            for line in (["git", "init", "-q"], ["git", "add", "-A"], [*git, "commit", "-qm", "x"], command):
                subprocess.run(
                    line, cwd=root, env=env, stdout=sys.stderr, check=True, timeout=TIMEOUT_S
                )  # fmt: skip
            with closing(sqlite3.connect(root / peer.database)) as db:
                rows = db.execute(peer.query).fetchall()
        except (OSError, subprocess.SubprocessError, sqlite3.Error) as error:
            print(f"{peer.name}: {error}", file=sys.stderr)
            return None
        named = _Named(root)
        ends = {(named.of(row[:3]), named.of(row[3:])) for row in rows}
    return {(*caller, *callee) for caller, callee in ends}


class _Named:
    """Which symbol is at a line."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, list[tuple[str, int, int, int, str]]] = {}

    def of(self, end: Any) -> tuple[str, str]:
        """Path and QUAL: the definition of that name there, else what is around the line."""
        path, name, line = end
        path = path.removeprefix(f"{self.root}/")
        if path not in self._known:
            self._known[path] = list(_definitions(ast.parse((self.root / path).read_bytes())))
        around = ""
        for own, first, start, last, qual in self._known[path]:
            if own == name and first <= (line or 0) <= start:
                return path, qual
            if start <= (line or 0) <= last:
                around = qual
        return path, around


def _definitions(node: ast.AST, scope: str = "") -> Iterator[tuple[str, int, int, int, str]]:
    """Name, first line with decorators, line, last line and QUAL, those around others first."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _definitions(child, scope)
            continue
        qual = f"{scope}.{child.name}" if scope else child.name
        first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
        yield child.name, first, child.lineno, child.end_lineno or child.lineno, qual
        yield from _definitions(child, qual)


def _of_python(name: str) -> Callable[[], Sequence[str]]:
    def install() -> Sequence[str]:
        python = installed(ROOT / f".venv-{name}", ROOT / f"requirements-{name}.lock")
        return [str(python.with_name(name))]

    return install


def _of_node() -> Sequence[str]:
    place = ROOT / ".venv-codegraph"
    program = place / "node_modules" / "@colbymchenry" / "codegraph-linux-x64" / "bin" / "codegraph"
    if not program.exists():
        place.mkdir(exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(CODEGRAPH / name, place / name)
        line = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(line, cwd=place, stdout=sys.stderr, check=True)
    return [str(program)]


PEERS = (
    Peer(
        "repowise 0.59.0",
        _of_python("repowise"),
        ("init", ".", "-y", "--mode", "fast", "--embedder", "mock", "--no-editor-setup"),
        ".repowise/wiki.db",
        "SELECT coalesce(a.file_path, a.node_id), coalesce(a.name, ''), a.start_line,"
        " coalesce(b.file_path, b.node_id), coalesce(b.name, ''), b.start_line FROM graph_edges"
        " JOIN graph_nodes a ON a.node_id = source_node_id JOIN graph_nodes b ON b.node_id = target_node_id"
        " WHERE edge_type = 'calls'",
    ),
    Peer(
        "codegraph 1.6.1",
        _of_node,
        ("init", "."),
        ".codegraph/codegraph.db",
        "SELECT a.file_path, a.name, a.start_line, b.file_path, b.name, b.start_line FROM edges"
        " JOIN nodes a ON a.id = source JOIN nodes b ON b.id = target"
        " WHERE edges.kind IN ('calls', 'instantiates')",
    ),
    Peer(
        "code-review-graph 2.3.9",
        _of_python("code-review-graph"),
        ("build",),
        ".code-review-graph/graph.db",
        "SELECT a.file_path, a.name, a.line_start, b.file_path, b.name, b.line_start FROM edges"
        " JOIN nodes a ON a.qualified_name = source_qualified"
        " JOIN nodes b ON b.qualified_name = target_qualified WHERE edges.kind = 'CALLS'",
    ),
)
