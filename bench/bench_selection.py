"""Which tests are chosen for a mutant: ours with a recording and without, pytest-testmon's and pytest-tia's.

Only when named (`make bench ARGS=selection`): the first time it installs the packages of
requirements-selection.lock, with their hashes, into `.venv-selection`, and fetches the sources of two
packages that it pins. cosmic-ray makes the mutants, on lines that ran when coverage was recorded, and all
tests run for each. MUTANTS of a package count, whatever is chosen for them; one that keeps a file of tests
from loading does not, as no test of it runs then. A killer is a test that passes before and fails with the
mutant. Each system recorded the same tests before; a mutant is one edited file, and nothing is recorded
between two. A share is of the tests as pytest counts them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.bench_peers import installed
from bench.bench_rename import sources
from bench.sizes import sized
from spak.world import rank
from spak.world.ask import Model, Symbol
from spak.world.index import symbol_id, update
from spak.world.selection import coverage_file, recorded, recording
from spak.world.store import Store

ROOT = Path(__file__).resolve().parents[1]
LOCK, PLACE = ROOT / "requirements-selection.lock", ROOT / ".venv-selection"
SEED, MUTANTS = 11, sized(100, 3)
PACKAGES = {"toolz": "toolz/tests", "boltons": "tests"}
"""Each package with the folder of its tests."""
OURS, STATIC = "spak, recorded", "spak, no recording"
TESTMON, TIA = "pytest-testmon", "pytest-tia"
SYSTEMS = (OURS, STATIC, TESTMON, TIA)
MOST_CPU_S, MOST_S = 30, 120
"""Of one run of all tests; a mutant that takes longer is left out."""
AIMS = {OURS: ("<= 0", "<= 0.05"), STATIC: ("", "<= 0.15")}
PYTEST = ["-B", "-m", "pytest", "-q", "-p", "selection_theirs"]


class Seen:
    """What one system chose, over all mutants."""

    def __init__(self) -> None:
        self.lost, self.killers, self.blind, self.killed, self.mutants = 0, 0, 0, 0, 0
        self.shares: list[float] = []

    def add(self, chosen: set[str], killers: set[str], everything: Sequence[str]) -> None:
        """One mutant."""
        self.mutants += 1
        self.killers += len(killers)
        self.lost += len(killers - chosen)
        self.killed += bool(killers)
        self.blind += bool(killers) and killers.isdisjoint(chosen)
        self.shares.append(len(chosen) / len(everything))


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    python, seen = installed(PLACE, LOCK), {}
    for package, tests in list(PACKAGES.items())[: sized(None, 1)]:
        with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
            made = _Package(python, package, sources(python, package, Path(folder), LOCK), tests)
            seen[package] = made.measured()
    return [
        line
        for system in SYSTEMS
        for package in (*seen, "all")
        for line in _rows(
            system, package, [one[system] for name, one in seen.items() if package in (name, "all")]
        )
    ]


def _rows(system: str, package: str, seen: Sequence[Seen]) -> Iterator[dict[str, Any]]:
    lost, killers, blind, killed, mutants = (
        sum(getattr(one, name) for one in seen) for name in ("lost", "killers", "blind", "killed", "mutants")
    )
    shares = [share for one in seen for share in one.shares]
    whole = AIMS.get(system, ("", "")) if package == "all" else ("", "")
    name = f"selection, {package}, {mutants} mutants, {system}"
    yield _row(f"{name}: lost killers of {killers}", lost, "tests", whole[0])
    yield _row(f"{name}: no killer chosen of {killed}", blind, "mutants", "<= 0" if whole[1] else "")
    yield _row(f"{name}: chosen tests", round(sum(shares) / len(shares), 4), "share", whole[1])


class _Package:
    def __init__(self, python: Path, name: str, root: Path, tests: str) -> None:
        self.python, self.name, self.root, self.tests = python, name, root.resolve(), tests
        self.heard = root.parent / "tests.json"
        self.store = Store(root.parent / "code.sqlite")

    def measured(self) -> dict[str, Seen]:
        """Record with each system, then ask each about every mutant."""
        seen = {system: Seen() for system in SYSTEMS}
        everything = self.recorded()
        words = ["mutants", str(self.root), self.name, str(SEED), str(MUTANTS * 2)]
        mutants: list[dict[str, Any]] = []
        for mutant in json.loads(self._theirs(*words)):
            with self._changed(mutant):
                killers = self.killers(everything) if len(mutants) < MUTANTS else None
                if killers is None:
                    continue
                mutants.append({**mutant, "killers": sorted(killers), "chosen": dict(self.ours(mutant))})
                print(f"{self.name}, mutant {len(mutants)} of {MUTANTS}", file=sys.stderr, flush=True)
        self.store.close()
        self.heard.write_text(json.dumps({"mutants": mutants, "tests": everything}))
        for mutant, theirs in zip(
            mutants,
            json.loads(self._theirs("peers", str(self.root), self.tests, str(self.heard))),
            strict=True,
        ):
            killers = set(mutant["killers"])
            for system, names in {**mutant["chosen"], **theirs}.items():
                chosen = {test for test in everything if test in names or test.partition("[")[0] in names}
                seen[system].add(chosen, killers, everything)
                if killers - chosen:
                    where = f"{mutant['path']}:{mutant['line']} {mutant['operator']}"
                    print(f"{system} loses {sorted(killers - chosen)[:5]} of {where}", file=sys.stderr)
        return seen

    @contextmanager
    def _changed(self, mutant: dict[str, Any]) -> Iterator[None]:
        file = self.root / mutant["path"]
        was = file.read_bytes()
        file.write_text(mutant["code"])
        try:
            yield
        finally:
            file.write_bytes(was)

    def recorded(self) -> list[str]:
        """All tests, that pass; each system has seen them."""
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-C", str(self.root)]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as published"]):
            subprocess.run([*git, *words], check=True)
        self._pytest("-p", "pytest_cov", "--cov=.", "--cov-context=test", "--cov-report=")
        update(self.store, self.root)
        recording.keep(Model(self.store, self.root), coverage_file.read(self.root / ".coverage"))
        self._pytest("-p", "testmon.pytest_testmon", "--testmon")
        self._python("-B", "-m", "tia", "record", self.tests)
        found = self._pytest()
        if found is None or found["failed"]:
            raise RuntimeError(f"the tests of {self.name} fail as published: {found}")
        return list(found["tests"])

    def killers(self, everything: Sequence[str]) -> set[str] | None:
        """The tests that notice the mutant; None where tests do not load or end."""
        found = self._pytest()
        return set(found["failed"]) if found and set(found["failed"]) <= set(everything) else None

    def ours(self, mutant: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
        """What we would run, with the recording and without."""
        update(self.store, self.root)
        model = Model(self.store, self.root)
        own = recorded.since(model, recording.Recording(self.store, self.root))
        yield OURS, [rank.node(test) for test in own.tests]
        yield STATIC, [rank.node(test) for test in rank.tests(model, _targets(model, mutant)).tests]

    def _theirs(self, *words: str) -> str:
        done = self._python(str(ROOT / "bench" / "selection_theirs.py"), *words)
        if done.returncode:
            raise RuntimeError(f"selection_theirs.py {words[0]}: {done.stderr[-2000:]}")
        return done.stdout.splitlines()[-1]

    def _pytest(self, *words: str) -> dict[str, list[str]] | None:
        """The tests that were to run and those that failed; None where pytest did not end."""
        self.heard.unlink(missing_ok=True)
        self._python(*PYTEST, "-o", f"cache_dir={self.root.parent}/cache", *words, self.tests)
        return json.loads(self.heard.read_text()) if self.heard.exists() else None

    def _python(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        env |= {
            "PYTHONPATH": f"{self.root}:{ROOT / 'bench'}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "SPAK_BENCH_TESTS": str(self.heard),
        }  # fmt: skip
        line = [str(self.python), *words]
        if "pytest" in words:
            line = ["timeout", "-k", "5", str(MOST_S), "prlimit", f"--cpu={MOST_CPU_S}", *line]
        return subprocess.run(line, cwd=self.root, env=env, capture_output=True, text=True, check=False)


def _targets(model: Model, mutant: dict[str, Any]) -> list[Symbol]:
    """The innermost symbol with the changed line, or the file."""
    path, line = mutant["path"], mutant["line"]
    within = [one for one in model.symbols(path) if one.line <= line <= one.end]
    whole = Symbol(symbol_id(path, ""), path, "", "module", "public", 1, 1, "")
    return [max(within, key=lambda one: (one.line, -one.end), default=whole)]


def _row(name: str, ours: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": None, "unit": unit, "aim": aim}
