"""The call edges of a package as jedi sees them: for every call, what its name leads to.

    python -m bench.links_theirs FOLDER [MOST]      in an environment that has jedi

Takes the folder of a package; prints `{"edges": [[path, QUAL, callee's path, QUAL, name]...], "calls"}` as
JSON, with paths below the folder above it. With MOST, a sample of the calls, the same every time.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import jedi

Call = tuple[str, ast.expr]


def calls(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[Call]:
    """Each call below a node with the function or class around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name | ast.Attribute):
            yield ".".join(scope), child.func
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from calls(child, (*scope, child.name) if named else scope)


def qual(name: object) -> str:
    """The dotted name of a definition in its file."""
    found = []
    while name is not None and name.type not in ("module", "namespace"):  # type: ignore[attr-defined]
        found.append(name.name)  # type: ignore[attr-defined]
        name = name.parent()  # type: ignore[attr-defined]
    return ".".join(reversed(found))


def asked_of(script: jedi.Script, line: int, column: int) -> list[jedi.api.classes.Name]:
    """What a name leads to."""
    try:
        return script.goto(line, column, follow_imports=True)  # type: ignore[no-any-return]
    except Exception:  # its own faults are no answers
        return []


def main(folder: Path, most: int) -> None:
    """Print the edges."""
    project = jedi.Project(str(folder.parent))
    sites = []
    scripts = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        scripts[path] = jedi.Script(text, path=str(path), project=project)
        sites += [(path, *site) for site in calls(ast.parse(text))]
    if most and len(sites) > most:
        sites = random.Random(1).sample(sites, most)
    edges, asked = set(), set()
    for path, caller, func in sites:
        line = func.end_lineno or 0
        column = (func.end_col_offset or 1) - 1
        asked.add((str(path.relative_to(folder.parent)), caller))
        found = asked_of(scripts[path], line, column)
        if not found:  # what it gave up on in a long conversation it may know when it is asked anew
            text = path.read_text(encoding="utf-8")
            found = asked_of(jedi.Script(text, path=str(path), project=project), line, column)
        for name in found:
            where = name.module_path
            if where is None or name.type not in ("function", "class") or folder not in where.parents:
                continue
            target = (str(where.relative_to(folder.parent)), qual(name))
            name_of = func.id if isinstance(func, ast.Name) else func.attr
            edges.add((str(path.relative_to(folder.parent)), caller, *target, name_of))
    print(json.dumps({"edges": sorted(edges), "calls": len(sites)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
