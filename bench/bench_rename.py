"""Renaming random symbols of two packages, one after the other: do their tests say what they said before?

Only when named (`make bench ARGS=rename`): it fetches the sources of attrs and click that
requirements-links.lock pins, with their hashes. Symbols are drawn from a seed; one that is refused is counted
by its code and another one drawn. The tests run after every TOGETHER renamings; where they fail, these are
made again one by one, and each that fails counts. Every renaming stays in the tree for those after it.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from bench.bench_links import LOCK, PLACE
from bench.bench_peers import installed
from bench.sizes import sized
from spak.errors import UsageError
from spak.world.ask import Model
from spak.world.index import update
from spak.world.rename import Renamed, rename
from spak.world.store import Store

SEED, MANY, TOGETHER = 7, sized(50, 1), 10
PACKAGES = ("attrs", "click")
TESTS = ["-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
SETTINGS = ["-o", "filterwarnings=", "-o", "xfail_strict=false"]
ALL = sized("tests", "tests/test_filters.py")


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    python, found = installed(PLACE, LOCK), []
    for package in PACKAGES[: sized(None, 1)]:
        with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
            found += _Package(package, sources(python, package, Path(folder))).rows()
    return found


def sources(python: Path, package: str, folder: Path, lock: Path = LOCK) -> Path:
    """The unpacked source archive that the lock pins."""
    (pin,) = re.findall(rf"^{package}==(?:.*\\\n)*.*\n", lock.read_text(), re.M)
    (folder / "pin").write_text(pin)
    line = ["-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
    line += ["--require-hashes", "-r", str(folder / "pin"), "-d", str(folder)]
    subprocess.run([str(python), *line], stdout=sys.stderr, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        held.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


class _Package:
    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self.store = Store(root.parent / "code.sqlite")
        self.refused: Counter[str] = Counter()
        self.spent: list[float] = []
        self.failed: list[str] = []
        self.left_out: list[str] = []

    def rows(self) -> list[dict[str, Any]]:
        while said := self.tests():  # those that fail as they come
            self.left_out.append(said)
        done: list[tuple[str, str]] = []
        before: dict[str, bytes] = {}
        symbols = self.symbols()
        for number, target in enumerate(symbols):
            if len(done) == MANY:
                break
            new = self.renamed(target)
            if new is None:
                continue
            done.append((target, new[0]))
            for path, (was, _) in new[1].files.items():
                before.setdefault(path, was)
            if len(done) % TOGETHER == 0 or len(done) == MANY or number == len(symbols) - 1:
                if self.tests():
                    self.again(done[-1 - (len(done) - 1) % TOGETHER :], before)
                before = {}
        self.store.close()
        tried = len(done) + sum(self.refused.values())
        name = f"rename in {self.name}"
        told = ", ".join(f"{code} {many}" for code, many in self.refused.most_common())
        print(f"{self.name}: refused {told or 'nothing'}; failed {self.failed}", file=sys.stderr)
        return [
            _row(
                f"{name}: {len(done)} symbols, tests changed",
                len(self.failed),
                "symbols",
                "<= 0",
            ),
            _row(f"{name}: refused of {tried}", sum(self.refused.values()), "symbols", ""),
            _row(f"{name}: CPU of one, median", round(median(self.spent), 3), "s", ""),
        ]

    def symbols(self) -> list[str]:
        update(self.store, self.root)
        found = [
            f"{one.path}#{one.qual}"
            for one in Model(self.store, self.root).symbols()
            if one.path.startswith("src/") and one.path.endswith(".py") and "~" not in one.qual
        ]
        random.Random(SEED).shuffle(found)
        return found

    def renamed(self, target: str) -> tuple[str, Renamed] | None:
        update(self.store, self.root)
        last = target.rpartition("#")[2].rpartition(".")[2]
        new = f"_renamed{last}" if last.startswith("_") else f"renamed_{last}"
        begun = time.process_time()
        try:
            model = Model(self.store, self.root)
            found = rename(model, model.target(target)[0], new)
        except UsageError as error:
            self.refused[error.code] += 1
            return None
        self.spent.append(time.process_time() - begun)
        for path, (_, after) in found.files.items():
            (self.root / path).write_bytes(after)
        return new, found

    def again(self, batch: list[tuple[str, str]], before: dict[str, bytes]) -> None:
        """One by one; one that fails is taken back."""
        for path, data in before.items():
            (self.root / path).write_bytes(data)
        for target, _ in batch:
            found = self.renamed(target)
            if found is not None and self.tests() and self.tests():  # some fail on a busy machine
                self.failed.append(target)
                for path, (was, _) in found[1].files.items():
                    (self.root / path).write_bytes(was)

    def tests(self) -> str:
        """The first test that fails; empty when none does."""
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        env |= {"PYTHONPATH": str(self.root / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        left_out = [word for test in self.left_out for word in ("--deselect", test)]
        line = [sys.executable, *TESTS, *SETTINGS, ALL, *left_out]
        done = subprocess.run(line, cwd=self.root, env=env, capture_output=True, text=True, check=False)
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        if not done.returncode:
            return ""
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
        if found is None:
            raise RuntimeError(f"the tests of {self.name} do not run: {(done.stdout + done.stderr)[-2000:]}")
        return found[1]


def _row(name: str, ours: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": None, "unit": unit, "aim": aim}
