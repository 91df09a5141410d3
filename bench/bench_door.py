"""How many of a project's commits the door would hold for a person, by a path that needs a signature or is
refused: the last 250 of this repository with their contents, and lists of names of two others.

The lists are `NAME.jsonl` in the folder that SPAK_BENCH_COMMITS names, or `../shared/data/commits`: a
line with the paths before the first commit, then one a commit. It has no contents, so that every change of a
list of packages counts as one of versions. The files that hold most go to standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from bench.sizes import sized
from spak.door import Class, look
from spak.workspace.tree import Node

ROOT = Path(__file__).resolve().parents[1]
COMMITS = sized(250, 20)
SHOWN = 15
PROJECTS = ("healthchecks", "httpx")
VARIABLE = "SPAK_BENCH_COMMITS"
REFUSED = (Class.SECRET, Class.ODD)
KINDS = {"120000": "l", "160000": "s"}
_fresh = count()


class Edit(NamedTuple):
    """A path after a commit: its mode, empty where it is gone, and what names its content."""

    path: str
    mode: str
    content: str


class Project(NamedTuple):
    """A tree, what each commit after it changed, and what reads a content."""

    base: Node
    commits: list[list[Edit]]
    read: Callable[[str], bytes]


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    folder = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared/data/commits")
    found = [_row("this repository", _own())]
    for name in PROJECTS:
        file = folder / f"{name}.jsonl"
        if not file.is_file():
            print(f"no {file}: {VARIABLE} names a folder that has it", file=sys.stderr)
        found.append(_row(name, _listed(file) if file.is_file() else None))
    return found


def _row(name: str, project: Project | None) -> dict[str, Any]:
    held = _held(name, project) if project is not None else None
    return {"name": f"door: commits of {name} held", "ours": held, "floor": None, "unit": "%", "aim": "<= 15"}


def _held(name: str, project: Project) -> float:
    """The share of commits that a person would be asked for, in percent."""
    tree, files, held, refused = project.base, Counter[str](), 0, 0
    for edits in project.commits:
        after = tree
        for edit in edits:
            after = _with(after, edit.path.split("/"), _leaf(edit))
        found = look(tree, after, project.read)
        asked = found.of(Class.RUNS, *REFUSED)
        files.update(f"{one.path}  {one.reason}" for one in asked)
        held += bool(asked)
        refused += bool(found.refused)
        tree = after
    whole = len(project.commits)
    print(f"\n{name}: {held} of {whole} commits held, {refused} of them with a refused path", file=sys.stderr)
    for line, times in files.most_common(SHOWN):
        print(f"  {times:3} {line}", file=sys.stderr)
    return round(100 * held / whole, 1)


def _own() -> Project:
    """The last commits of this repository, merges left out, each against its first parent."""
    names = _git("log", "--no-merges", f"-{COMMITS}", "--reverse", "--format=%H").split()
    base = Node("d", 0o755, "base")
    for line in _git("ls-tree", "-r", "-z", f"{names[0]}^").split("\0")[:-1]:
        mode, _, content = line.partition("\t")[0].split()
        base = _with(base, line.partition("\t")[2].split("/"), _leaf(Edit("", mode, content)))
    return Project(base, [_changes(name) for name in names], _blob)


def _changes(commit: str) -> list[Edit]:
    words = _git("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", commit).split("\0")[:-1]
    heads = (head.split() for head in words[::2])
    return [
        Edit(path, "" if how == "D" else mode, content)
        for (_, mode, _, content, how), path in zip(heads, words[1::2], strict=True)
    ]


def _listed(file: Path) -> Project:
    """Of a list of names; each change is of a content of its own, which is empty."""
    first, *lines = map(json.loads, file.read_text().splitlines())
    base = Node("d", 0o755, "base")
    for path in first["base"]:
        base = _with(base, path.split("/"), _leaf(Edit(path, "100644", _name())))
    commits = [list(_edits(line["changes"])) for line in lines[-COMMITS:]]
    for earlier in lines[:-COMMITS]:
        for edit in _edits(earlier["changes"]):
            base = _with(base, edit.path.split("/"), _leaf(edit))
    return Project(base, commits, lambda name: b"")


def _edits(changes: list[dict[str, Any]]) -> Iterator[Edit]:
    for change in changes:
        *old, new = change["paths"]
        yield from (Edit(path, "", "") for path in old if change["status"][0] == "R")
        gone = change["status"] == "D"
        yield Edit(new, "" if gone else change["new_mode"], _name())


def _leaf(edit: Edit) -> Node | None:
    if not edit.mode:
        return None
    return Node(KINDS.get(edit.mode, "f"), int(edit.mode, 8) & 0o777 or 0o777, edit.content, 1)


def _with(folder: Node, parts: list[str], leaf: Node | None) -> Node:
    """The folder with another leaf at a path, or with none; its siblings are shared."""
    name, *below = parts
    child = folder.children.get(name)
    if below:
        inner = child if child is not None and child.kind == "d" else Node("d", 0o755, "")
        leaf = _with(inner, below, leaf)
        leaf = leaf if leaf.children else None
    children = {**folder.children}
    children.pop(name, None)
    if leaf is not None:
        children[name] = leaf
    return Node("d", 0o755, _name(), children=children)


def _name() -> str:
    return f"new {next(_fresh)}"


def _blob(name: str) -> bytes:
    return subprocess.run(["git", "cat-file", "blob", name], cwd=ROOT, check=True, capture_output=True).stdout


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")
