"""Which modules that a run added have the name of an installed package that a sealed check runs with.

Takes the names of the modules, the checks and their sealed files; gives those names that belong to pytest,
its installed plug-ins, what a check starts (`python -m NAME`) or a sealed file imports, or to a package that
one of these depends on. The Python of the checks is asked in their own sandbox, in an empty folder and
without its environment, since that is where the packages are. Other packages that happen to be installed do
not count: a task may be to write `redis.py`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePath

from spak.evolve.suites.model import Check, walk
from spak.files.scratch import Scratch
from spak.ports import Job, Launcher, Limits, Toolchain

WALL_S = 60
"""Seconds that Python has for its answer."""
_LOOK = r"""
import importlib.metadata, importlib.util, json, re, sys
names, used = map(set, json.load(sys.stdin))
def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
names = {name for name in names if is_there(name)}
def norm(name):
    return re.sub(r"[-_.]+", "-", name).lower()
there = importlib.metadata.distributions() if names else ()
found, given = {}, {}
def look(item):
    name = norm(item.metadata["Name"] or "")
    listed = (item.read_text("top_level.txt") or "").split()
    for path in item.files or ():
        first = path.parts[0] if path.parts else ""
        if len(path.parts) > 1 or first.endswith((".py", ".so", ".pyd")):
            listed.append(first.partition(".")[0])
    found[name] = item
    for top in listed:
        given.setdefault(top, set()).add(name)
for item in there:
    try:
        look(item)
    except Exception:
        print(json.dumps(sorted(names)))  # a package that cannot be read may give any of them
        sys.exit()
ways = [name for name, item in found.items() if any(entry.group == "pytest11" for entry in item.entry_points)]
ways += ["pytest", *(owner for top in used for owner in given.get(top, ()))]
seen = set()
while ways:
    name = ways.pop()
    if name in found and name not in seen:
        seen.add(name)
        needed = [text for text in found[name].requires or () if "extra ==" not in text]
        needed = [re.match(r"[\w.-]+", text) for text in needed]
        ways += [norm(match.group()) for match in needed if match]
print(json.dumps(sorted(name for name in names if name in used or given.get(name, set()) & seen)))
"""


def installed(
    names: Set[str],
    checks: Sequence[Check],
    sealed: Path | None,
    launcher: Launcher,
    limits: Limits,
    toolchain: Toolchain,
) -> frozenset[str]:
    """Those of the names that are of packages which the checks run with.

    All of them where Python gave no whole answer; none where there is no Python, since no check finds one
    either.
    """
    if not names:
        return frozenset()
    used = {*_started(checks), *([] if sealed is None else _imported(sealed))}
    found: set[str] = set()
    for program in sorted({program for item in checks for program in _pythons(item, toolchain)}):
        with Scratch("sealed") as empty:
            outcome = launcher.run(
                Job(
                    argv=(program, "-I", "-c", _LOOK),
                    stdin=json.dumps([sorted(names), sorted(used)]).encode(),
                    workspace=empty,
                    limits=replace(limits, wall_s=WALL_S),
                    binds=toolchain.binds,
                )
            )
        if outcome.status == "launcher" or (outcome.status == "exited" and outcome.exit in (126, 127)):
            continue
        try:
            answered = outcome.status == "exited" and outcome.exit == 0
            found |= set(json.loads(outcome.stdout.data)) if answered else names
        except ValueError:
            return frozenset(names)
    return frozenset(found)


def _pythons(item: Check, toolchain: Toolchain) -> set[str]:
    """The Pythons that a check names, that of the toolchain where it names none."""
    named = {word for word in _words(item) if re.fullmatch(r"python[\d.]*", PurePath(word).name)}
    return {toolchain.programs.get(name, name) for name in named or ("python",)}


def _words(item: Check) -> list[str]:
    """Those of the command, also within an argument (`sh -c "python3 -m pytest"`)."""
    return " ".join(item.cmd).split()


def _started(checks: Iterable[Check]) -> Iterator[str]:
    """The modules that checks start as programs."""
    for item in checks:
        for option, name in pairwise(_words(item)):
            if option == "-m":
                yield name.partition(".")[0]


def _imported(sealed: Path) -> Iterator[str]:
    """The modules that sealed files import, by their first name."""
    for path, _ in walk(sealed):
        if path.suffix != ".py" or path.is_symlink():
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue  # no Python imports it either
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (item.name.partition(".")[0] for item in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]
