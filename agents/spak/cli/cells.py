"""The runs of an experiment on this machine: one cell after the other, or several in processes of their own.

`Cells` is the `Work` of spak.evolve.experiments. A cell is a run like any other, with labels; one whose run
was begun before is gone on with. What keeps a spec from running (an input that it asks for, a person whom it
asks) is a void cell with the reason, and the experiment goes on. What the host cannot do (no answer of a
model, no sandbox, a full disk) is raised: the run can go on from there.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from spak import canon
from spak.cli import common
from spak.errors import OuterError, UserError, of_host
from spak.evolve.experiments import Cell, Done, More, seed_of
from spak.evolve.suites import Case, judge
from spak.evolve.suites.model import read_case
from spak.evolve.suites.sealed import Bench
from spak.ledger.faults import typed
from spak.records import Kind, Record
from spak.runner.faults import must_work
from spak.runner.run import PERSON

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when its parent ends."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Runs cells of these cases and spec files. `empty` is a folder for cases without a workspace."""

    cases: Mapping[str, Case]
    files: Mapping[str, Path]
    root: Path
    empty: Path
    experiment: str
    backend: str = ""
    jobs: int = 1
    timeout: float | None = None

    def __call__(
        self,
        todo: Iterable[tuple[Cell, str]],
        begun: Callable[[Cell, str], None],
        more: More,
    ) -> Iterator[tuple[Cell, Done | None]]:
        return self._in_turn(todo, begun, more) if self.jobs == 1 else self._in_parallel(todo, begun, more)

    def _in_turn(
        self, todo: Iterable[tuple[Cell, str]], begun: Callable[[Cell, str], None], more: More
    ) -> Iterator[tuple[Cell, Done | None]]:
        for cell, known in todo:
            if not more():
                return
            run = self._named(cell, known, begun)
            done = self.run(cell, run)
            yield cell, done
            if done is None:
                return

    def _in_parallel(
        self, todo: Iterable[tuple[Cell, str]], begun: Callable[[Cell, str], None], more: More
    ) -> Iterator[tuple[Cell, Done | None]]:
        left, stopping = list(todo), False
        forking = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self.jobs, forking, _end_with, (os.getpid(),)) as pool:
            going: dict[Future[Done | None], Cell] = {}
            fault: UserError | None = None
            while True:
                while left and not stopping and len(going) < self.jobs and more(len(going)):
                    cell, known = left.pop(0)
                    going[pool.submit(self.run, cell, self._named(cell, known, begun))] = cell
                if not going:
                    if fault is not None:
                        raise fault
                    return
                try:
                    ended, _ = wait(going, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    stopping = True  # the runs have heard it too, and stop where they can go on
                    continue
                for future in ended:
                    cell = going.pop(future)
                    try:
                        done = future.result()
                    except (BrokenProcessPool, KeyboardInterrupt):
                        done = None
                    except UserError as error:
                        fault, stopping = error, True
                        continue
                    stopping = stopping or done is None
                    yield cell, done

    def _named(self, cell: Cell, known: str, begun: Callable[[Cell, str], None]) -> str:
        if known:
            return known
        run = common.run_id()
        begun(cell, run)
        return run

    def run(self, cell: Cell, run: str) -> Done | None:
        """One cell; None when it was stopped from outside and can go on.

        Raises: OuterError `outer.changed` when the case is not what it was, before anything is done; what the
        host could not do (spak.errors.of_host).
        """
        if self._changed(cell):
            raise OuterError(
                "outer.changed", f"case {cell.case} was changed since", "put it back, or start a new one"
            )
        try:
            done = self._run(cell, run)
        except OSError as error:
            raise typed(error, f"running case {cell.case}", self.root) from error
        except UserError as error:
            if of_host(error):
                raise
            return Done(run, "void", f"{error.message} [{error.code}]")
        except KeyboardInterrupt:  # while a check runs; the run itself stops where it can go on
            return None
        if done is not None and self._changed(cell):
            return replace(done, outcome="void", why=f"case {cell.case} was changed while it ran")
        return done

    def _changed(self, cell: Cell) -> bool:
        """Whether the case's files are others than those that its hash names."""
        case = self.cases[cell.case]
        try:
            return bool(case.hash) and read_case(case.folder).hash != case.hash
        except UserError:
            return True

    def _run(self, cell: Cell, run: str) -> Done | None:
        from spak.cli import run_folders, session

        case = self.cases[cell.case]
        began = time.monotonic()
        recorded = str(case.recording) if case.recording is not None and not self.backend else None
        if (self.root / run / "trace.jsonl").is_file():
            held = session.reopen(self.root, run, mode="full_auto", backend=self.backend)
        else:
            if (self.root / run).is_dir():
                run_folders.remove(self.root / run)  # whoever made it was killed before the first record
            held = session.begin(
                self.files[cell.spec],
                self.root,
                inputs=case.inputs,
                backend=self.backend or ("recorded" if recorded else ""),
                workspace=case.workspace or self.empty,
                seed=seed_of(case.hash, case.seed, cell.k),
                recorded=recorded,
                name=run,
                history=case.history,
                labels={"experiment": self.experiment, "case": cell.case, "spec": cell.spec, "k": cell.k},
            )
        try:
            seen = held.advance(self.timeout)
            records = [record for record, _ in held.run.ledger.read()]
        finally:
            held.close()
        over = self.timeout is not None and time.monotonic() - began >= self.timeout
        if held.stop == "interrupted" and not over:
            return None
        codes = tuple(seen.refusal["codes"]) if seen.refusal else ()
        needed = bench() if case.right.runs_checks else None
        verdict = judge(case, seen.state, codes, held.run.workspace.directory, needed)
        if needed is not None and any(item.void for item in verdict.results):
            must_work(needed.launcher)
        outcome, why = verdict.outcome, verdict.why
        if over and seen.state == "paused":
            why = "it took longer than --timeout"
        elif any(map(_by_person, records)):
            outcome, why = "void", "a person answered it: nobody answers a run of an experiment"
        return Done(
            run,
            outcome,
            why,
            seen.state,
            codes,
            int(seen.metrics.get("tokens", 0)),
            int(seen.metrics.get("cost_nanousd", 0)),
            int(seen.metrics.get("elapsed_ms", 0)),
            canon.digest(records[0].body["rules"]["spec"].encode()),
            seen.summary_hash,
        )


def _by_person(record: Record) -> bool:
    """Whether a person gave it; a recording says who gave its answers, which are no answers of a person."""
    return record.kind == Kind.APPROVAL or (record.side.get("by") == PERSON and "recorded" not in record.side)


def _end_with(parent: int) -> None:
    """Have this process end with the one that runs the experiment, also when that is killed: what is left
    would wait for work for ever, and hold the experiment's ledger."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@lru_cache(maxsize=1)
def bench() -> Bench:
    """What checks run with; made once in each process, since a launcher is probed."""
    from spak import begin

    return begin.bench()
