"""Run by the interpreter of .venv-selection: mutants of a package by cosmic-ray, and a plug-in of pytest.

    selection_theirs.py mutants ROOT PACKAGE SEED COUNT
    selection_theirs.py peers ROOT TESTS MUTANTS

Prints JSON on the last line. A mutant is `{path, line, operator, code}`, on a line that the recording in ROOT
has (`.coverage`). The operator is drawn by its family, then one of the places in the package that it can
change. `peers` gives, for each mutant of a file, the tests that pytest-testmon and pytest-tia choose from
what they recorded. As the plug-in `selection_theirs` it writes the ids of the tests that were to run, and of
all that failed, to the file that SPAK_BENCH_TESTS names.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sqlite3
import sys
from pathlib import Path
from typing import Any

ARGUED = ("VariableReplacer", "VariableInserter", "ReplaceDecorator")
"""Operators that have to be told names, and are left out."""
RAN: dict[str, list[str]] = {"tests": [], "failed": []}


def pytest_collection_finish(session: Any) -> None:
    RAN["tests"] = [item.nodeid for item in session.items]


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed and report.nodeid not in RAN["failed"]:
        RAN["failed"].append(report.nodeid)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        RAN["failed"].append(report.nodeid)


def pytest_unconfigure() -> None:
    Path(os.environ["SPAK_BENCH_TESTS"]).write_text(json.dumps(RAN))


def mutants(root: Path, package: str, seed: int, count: int) -> None:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    covered = lines(root)
    texts = {
        path: (root / path).read_text()
        for path in sorted(covered)
        if path.startswith(f"{package}/") and "/tests/" not in path
    }
    places: dict[str, dict[str, list[tuple[str, int]]]] = {}
    trees = {path: list(ast_nodes(get_ast(text))) for path, text in texts.items()}
    for name in sorted(operator_names()):
        family = name.partition("/")[2]
        if family.startswith(ARGUED):
            continue
        operator = get_operator(name)()
        found: list[tuple[str, int]] = []
        for path, nodes in trees.items():
            many = sum(1 for node in nodes for _ in operator.mutation_positions(node))
            found += [(path, number) for number in range(many)]
        if found:
            places.setdefault("_".join(family.split("_")[:2]), {})[name] = found
    draw = random.Random(seed)
    made: list[dict[str, Any]] = []
    seen: set[tuple[str, int, str]] = set()
    while len(made) < count and len(seen) < 50 * count:
        family = draw.choice(sorted(places))
        name = draw.choice(sorted(places[family]))
        path, number = draw.choice(places[family][name])
        if (path, number, name) in seen:
            continue
        seen.add((path, number, name))
        code = mutate_code(texts[path], get_operator(name)(), number)
        at = changed(texts[path], code or texts[path])
        if at in covered[path] and compiles(code, path):
            made.append({"path": path, "line": at, "operator": name.partition("/")[2], "code": code})
    print(json.dumps(made))


def lines(root: Path) -> dict[str, set[int]]:
    """The lines of each file that ran, in a test or before."""
    found: dict[str, set[int]] = {}
    rows = sqlite3.connect(root / ".coverage").execute(
        "SELECT path, numbits FROM line_bits JOIN file ON file.id = file_id"
    )
    for name, bits in rows:
        path = os.path.relpath(name, root)
        found.setdefault(path, set()).update(
            at * 8 + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1
        )
    return found


def changed(old: str, new: str) -> int:
    """The first line that differs, 0 where none does."""
    pairs = zip(old.splitlines(), new.splitlines(), strict=False)
    return next((at for at, (one, two) in enumerate(pairs, 1) if one != two), 0)


def compiles(code: str, path: str) -> bool:
    try:
        compile(code, path, "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def peers(root: Path, tests: str, mutants: Path) -> None:
    import pytest  # noqa: F401  loaded once, for all the processes that are forked
    import tia.cli

    job = json.loads(mutants.read_text())
    tia.cli._collect_nodeids = lambda path: set(job["tests"])  # they are the same for every mutant
    kept, found = (root / ".testmondata").read_bytes(), []
    for mutant in job["mutants"]:
        file = root / mutant["path"]
        was = file.read_bytes()
        file.write_text(mutant["code"])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            tia.cli.main(["run", tests, "--list"])
        rows = [line.strip() for line in said.getvalue().splitlines() if line.strip().startswith("-> ")]
        named = [row.removeprefix("-> ").rpartition("   (")[0] for row in rows]
        found.append({"pytest-tia": named, "pytest-testmon": testmon_of(tests)})
        (root / ".testmondata").write_bytes(kept)
        file.write_bytes(was)
    print()
    print(json.dumps(found))


def testmon_of(tests: str) -> list[str]:
    """In a process of its own, as it keeps what it knows in modules."""
    import pytest

    Path(os.environ["SPAK_BENCH_TESTS"]).unlink(missing_ok=True)
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        words = ["-q", "-p", "selection_theirs", "-p", "testmon.pytest_testmon", "--testmon"]
        pytest.main([*words, "--testmon-nocollect", "--collect-only", tests])
        os._exit(0)
    os.waitpid(child, 0)
    return list(json.loads(Path(os.environ["SPAK_BENCH_TESTS"]).read_text())["tests"])


if __name__ == "__main__":
    what, root, *rest = sys.argv[1:]
    if what == "mutants":
        mutants(Path(root).resolve(), rest[0], int(rest[1]), int(rest[2]))
    else:
        peers(Path(root).resolve(), rest[0], Path(rest[1]))
