"""LangGraph and DBOS beside SPAK, in the same minutes: 200 runs of 20 durable steps on SQLite and PostgreSQL.

Only when named (`make bench ARGS=peers`): the first time it installs the packages of requirements-peers.lock,
with their hashes, into `.venv-peers`. All systems work in turn, in ROUNDS rounds; each turn is a process of
its own with a database of its own, and 32 threads. The servers are the same, and PostgreSQL is reached by the
same address. A ratio compares turns of one round, so that a machine that becomes busy slows both sides; a row
shows the median and, in its name, the least and the most.

SPAK is measured twice: from beginning to end, as the others are, and with runs that were begun before, which
is what its steps alone take. Where PostgreSQL is not installed its rows have no figure. The quick
form installs nothing and measures SPAK alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from bench.bench_platform import ROOT, RUNS, STEPS, absent, part, row, server
from bench.sizes import QUICK, sized

ROUNDS = sized(3, 1)
OURS, STEPS_ONLY = "SPAK", "SPAK, steps only"
PEERS = {"LangGraph": "langgraph", "DBOS": "dbos"}
"""What a row calls a system, and its package."""
LOCK = ROOT / "requirements-peers.lock"
PLACE = ROOT / ".venv-peers"
WORK = f"{RUNS} runs of {STEPS} steps"

Turn = Callable[[Path, str], float]
"""Steps a second of one system in that folder, with that PostgreSQL address or, without one, SQLite."""


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    turns: dict[str, Turn] = {OURS: _ours("whole"), STEPS_ONLY: _ours("begun")}
    if not QUICK:
        python = installed()
        for name, package in PEERS.items():
            turns[f"{name} {_version(package)}"] = _theirs(python, package)
    with TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name)
        with server("Postgres", folder / "pg") as running:
            addresses = {"SQLite": "", **({"PostgreSQL": running.url} if running else {})}
            seen = measured(turns, addresses, folder)
    found = [line for database, speeds in seen.items() for line in compared(database, speeds)]
    if "PostgreSQL" not in seen:
        found.append(absent("PostgreSQL", WORK, ""))
    return found


def measured(
    turns: Mapping[str, Turn], addresses: Mapping[str, str], folder: Path, rounds: int = ROUNDS
) -> dict[str, dict[str, list[float]]]:
    """Steps a second by database, system and round. Every round begins with another system."""
    seen: dict[str, dict[str, list[float]]] = {
        database: {system: [] for system in turns} for database in addresses
    }
    for number in range(rounds):
        names = [*turns][number % len(turns) :] + [*turns][: number % len(turns)]
        for database, address in addresses.items():
            for index, system in enumerate(names):
                place = folder / f"{database}-{number}-{index}"
                place.mkdir()
                own = _database(address, f"turn{number}x{index}") if address else ""
                speed = turns[system](place, own)
                seen[database][system].append(speed)
                words = f"round {number + 1} of {rounds}, {database}, {system}: {speed:,.0f} steps/s"
                print(words, file=sys.stderr, flush=True)
    return seen


def compared(database: str, speeds: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """A row for the speed of each system, and for each of ours over each other."""
    found = [
        row(f"{database}: {system}, {WORK} ({_spread(seen)})", median(seen), 0, "steps/s", "")
        for system, seen in speeds.items()
    ]
    for ours in (OURS, STEPS_ONLY):
        for peer in (name for name in speeds if name not in (OURS, STEPS_ONLY)):
            ratios = [mine / theirs for mine, theirs in zip(speeds[ours], speeds[peer], strict=True)]
            title = f"{database}: {ours}, over {peer} ({_spread(ratios)})"
            found.append(row(title, median(ratios), 0, "x", "> 1"))
    return found


def _spread(seen: Sequence[float]) -> str:
    least, most = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (min(seen), max(seen)))
    return f"{least} to {most} in {len(seen)} rounds"


# ---- turns


def _ours(which: str) -> Turn:
    def turn(folder: Path, address: str) -> float:
        more = {"SPAK_WEB_DATABASE_URL": address} if address else {}
        return float(part(which, folder / "data", **more)["steps_per_s"])

    return turn


def _theirs(python: Path, package: str) -> Turn:
    def turn(folder: Path, address: str) -> float:
        words = [python, ROOT / "bench" / "platform_peers.py", package, folder, address]
        done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True)
        return float(json.loads(done.stdout.decode().strip().splitlines()[-1])["steps_per_s"])

    return turn


def _database(address: str, name: str) -> str:
    """The address of a new database on that server."""
    import psycopg
    from psycopg.sql import SQL, Identifier

    with psycopg.connect(address, autocommit=True) as base:
        base.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return urlunsplit(urlsplit(address)._replace(path=f"/{name}"))


# ---- packages


def installed(place: Path = PLACE, lock: Path = LOCK, *options: str) -> Path:
    """The interpreter that has the locked packages; makes its environment when the lock changed. `options`
    are pip's."""
    stamp, python = place / "installed", place / "bin" / "python"
    wanted = hashlib.sha256(lock.read_bytes() + sys.version.encode() + bytes(place)).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"installing the packages of {lock.name} into {place.name}", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, symlinks=True, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, "--require-hashes", "-r", str(lock)], stdout=sys.stderr, check=True)
    stamp.write_text(wanted)
    return python


def _version(package: str) -> str:
    """As the lock pins it."""
    pins = (line.split() for line in LOCK.read_text().splitlines() if line.startswith(f"{package}=="))
    return next(pins)[0].partition("==")[2]
