"""Seeds in processes of their own: each is forked from one that is set up and warm, a few at a time.

`Lanes` sets the platform up once, in memory where the machine has such a folder; `found(jobs)` gives what
came of each job as they end. A job is a seed with its plan and the mutant that is planted for it.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Generator, Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from simulate import product
from simulate.faults import Fault
from simulate.world import Found, simulated


class Job(NamedTuple):
    """A seed to be simulated; without a plan with its own."""

    seed: int
    plan: tuple[Fault, ...] | None = None
    mutant: str = ""
    traced: bool = False


class Broken(Exception):
    """A seed came to no result: a fault of the simulator."""


class Lanes:
    """So many seeds at a time."""

    def __init__(self, many: int) -> None:
        self.many = many
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="spak-simulate-", dir=memory if memory.is_dir() else None))
        self._template = self.folder / "template"
        self._template.mkdir()
        self._number = 0

    def __enter__(self) -> Lanes:
        product.prepare(self._template)
        product.warm(self._template, self.folder / "warm")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def found(self, jobs: Iterable[Job]) -> Generator[tuple[Job, Found], None, None]:
        """In the order in which they end. Raises: Broken."""
        under_way: dict[int, tuple[Job, Path]] = {}
        left = iter(jobs)
        more = True
        try:
            while more or under_way:
                while more and len(under_way) < self.many:
                    job = next(left, None)
                    if job is None:
                        more = False
                        break
                    self._number += 1
                    place = self.folder / f"seed-{self._number}"
                    under_way[self._fork(job, place)] = job, place
                if under_way:
                    pid, _ = os.wait()
                    job, place = under_way.pop(pid)
                    yield job, self._result(job, place)
        finally:  # whoever asked may want no more
            for pid, (_, place) in under_way.items():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                shutil.rmtree(place, ignore_errors=True)

    def one(self, job: Job) -> Found:
        """What comes of one. Raises: Broken."""
        ((_, found),) = self.found([job])
        return found

    def _fork(self, job: Job, place: Path) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        try:
            gc.disable()  # a seed is short, and its memory goes with its process
            product.enter(self._template, place)
            if job.mutant:
                from simulate import mutants

                mutants.plant(job.mutant)
            found = simulated(job.seed, place, job.plan, traced=job.traced)
            said = pickle.dumps(found)
        except BaseException:
            said = pickle.dumps(traceback.format_exc())
        (self.folder / f"{place.name}.result").write_bytes(said)
        os._exit(0)

    def _result(self, job: Job, place: Path) -> Found:
        file = self.folder / f"{place.name}.result"
        said = pickle.loads(file.read_bytes()) if file.exists() else "its process died"
        shutil.rmtree(place, ignore_errors=True)
        file.unlink(missing_ok=True)
        if isinstance(said, str):
            raise Broken(f"seed {job.seed}: {said}")
        found: Found = said
        return found
