"""All tests against a runtime, and all of them against each mutant of ours.

Takes a command line, or none for our own kernel; gives a Verdict for each test. Tests are played at the same
time, each in a folder of its own. A runtime that hangs, dies or writes nonsense fails the test with a
sentence.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from spak.compliance.cases import Case, cases
from spak.compliance.mutants import MUTANTS, Mutant, environment
from spak.compliance.play import Stage, play
from spak.compliance.talk import WAIT_S, Fault, Runtime
from spak.files.scratch import Scratch

OURS = (sys.executable, "-m", "spak.compliance.ours")
JOBS = max(2, min(4, os.cpu_count() or 2))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one test; `why` is empty where it passed."""

    case: Case
    why: str

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.why


def judge(
    argv: Sequence[str] = OURS,
    env: Mapping[str, str] | None = None,
    wait_s: float = WAIT_S,
    heard: Callable[[Verdict], None] = lambda verdict: None,
    only: Iterable[int] = (),
) -> list[Verdict]:
    """The verdicts on a runtime, in order; `heard` gets each as it comes, `only` are the numbers to play."""
    wanted = {*only}
    chosen = [case for case in cases() if not wanted or case.number in wanted]

    started: list[Runtime] = []
    stopped = Event()

    def start() -> Runtime:
        if stopped.is_set():
            raise Fault("was not started: the kit was interrupted")
        started.append(Runtime(argv, env, wait_s))
        return started[-1]

    def one(case: Case) -> Verdict:
        verdict = Verdict(case, verdict_of(case, start))
        if not stopped.is_set():
            heard(verdict)
        return verdict

    with ThreadPoolExecutor(JOBS) as pool:
        try:
            return list(pool.map(one, chosen))
        except BaseException:  # Ctrl+C: the threads wait for processes, which end now
            stopped.set()
            for runtime in started:
                runtime.end()
            raise


def verdict_of(case: Case, start: Callable[[], Runtime]) -> str:
    """What is wrong with a runtime by one test, each part with its name; empty where nothing is."""
    with Scratch("compliance") as folder:
        folder.chmod(0o755)
        stage = Stage(Path(folder), start)
        try:
            found = [(part.name, play(part, stage)) for part in case.parts]
        finally:
            stage.close()
    return "; ".join(f"{name}: {wrong[0]}" for name, wrong in found if wrong)


@dataclass(frozen=True, slots=True)
class Caught:
    """What came of one mutant: the numbers of the tests that failed."""

    mutant: Mutant
    failed: tuple[int, ...]
    why: str
    """What its own test says of it."""

    @property
    def caught(self) -> bool:
        """Whether exactly its own test failed."""
        return self.failed == (self.mutant.number,)


def judge_mutants(
    heard: Callable[[Caught], None] = lambda caught: None, only: Iterable[int] = (), others: bool = True
) -> list[Caught]:
    """All tests on each mutant of ours; without `others` only the mutant's own test."""
    wanted = {*only}
    found = []
    for mutant in MUTANTS:
        if wanted and mutant.number not in wanted:
            continue
        with Scratch("mutant") as folder:
            folder.chmod(0o755)
            own = () if others else (mutant.number,)
            verdicts = judge(env=environment(mutant, folder), only=own)
        failed = {verdict.case.number: verdict.why for verdict in verdicts if not verdict.passed}
        found.append(Caught(mutant, tuple(failed), failed.get(mutant.number, "")))
        heard(found[-1])
    return found
