"""A problem's sandbox that is kept: what an evaluation gets from it is what a new one would give."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from problem_kit import GOOD, RETURNS, changed
from process_kit import until
from spak.cancel import Cancelled, Token
from spak.ports import Limits
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.problems import Problem, ProblemFault, opened, shipped
from spak.validators.problems.kept import KeptSandbox
from spak.validators.problems.problem import same
from spak.validators.problems.session import Session
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

LIMITS = Limits(memory_bytes=1 << 30)
COUNTS = changed(
    ("def reference(n, k, x):", "seen = []\ndef reference(n, k, x):\n    seen.append(n)"),
    (RETURNS, "    return k * x.astype(np.float64) + len(seen)"),
)
"""Every answer depends on how many there were."""
LATER = changed(
    ("import numpy as np\n", "import numpy as np, time\nborn = time.monotonic_ns()\n"),
    (RETURNS, "    return k * x.astype(np.float64) + born"),
)
"""The same for as long as the process lives."""
LEAVES = "before = os.path.exists('/tmp/seen')\nos.close(os.open('/tmp/seen', os.O_CREAT))\n"
FILES = changed(
    ("import numpy as np\n", "import numpy as np, os\n" + LEAVES),
    (RETURNS, "    return k * x.astype(np.float64) + before"),
)
"""Leaves a file for whoever comes next."""


class Box:
    """A kept sandbox and a folder; `ask` is an evaluation that takes one case."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.folder, self.kept, self.launcher = folder, KeptSandbox(), Restricted()
        self.session: Session | None = None

    def ask(self, text: str, n: int = 5, steady: bool = True, token: Token | None = None) -> object:
        with self.kept.opened(
            self.launcher, toolchain(), self.folder, text, LIMITS, token, 5.0
        ) as self.session:
            problem = Problem.of(self.session)
            if steady:
                self.kept.steady(problem, text)
            return problem.case_of([3, 4], n, "normal")

    def sandboxes(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    yield made
    made.kept.close()


def test_references_are_those_of_a_new_sandbox(box: Box) -> None:
    """After other problems, other sizes and a hundred cases."""
    first = box.ask(shipped()["softmax"])
    pid = box.sandboxes()
    for _ in range(3):
        box.ask(shipped()["attention"], 65)
        box.ask(GOOD)
    again = box.ask(shipped()["softmax"])
    assert box.sandboxes() == pid  # one sandbox for all of them
    with opened(box.launcher, toolchain(), box.folder / "new", shipped()["softmax"], LIMITS) as session:
        fresh = Problem.of(session).case_of([3, 4], 5, "normal")
    assert same(first, fresh) and same(again, fresh)  # type: ignore[arg-type]


def test_nothing_of_an_evaluation_is_left_for_the_next(box: Box) -> None:
    """The counter begins anew, so that both evaluations get the same; within one it is found at once."""
    one, two = box.ask(COUNTS, steady=False), box.ask(COUNTS, steady=False)
    assert same(one, two)  # type: ignore[arg-type]
    assert len(box.sandboxes()) == 1
    with pytest.raises(ProblemFault, match=r"two calls with one seed differ") as caught:
        box.ask(COUNTS)
    assert caught.value.code == "problem.changes"


def test_a_sandbox_with_a_file_left_in_it_is_not_kept(box: Box) -> None:
    one, two = box.ask(FILES, steady=False), box.ask(FILES, steady=False)
    assert same(one, two) and box.sandboxes() == []  # type: ignore[arg-type]


def test_what_changes_between_two_evaluations_is_found(box: Box) -> None:
    box.ask(LATER)
    with pytest.raises(ProblemFault, match=r"an earlier evaluation got something else") as caught:
        box.ask(LATER)
    assert caught.value.code == "problem.changes"
    box.ask(GOOD)  # others are as they were


def test_a_dead_or_cancelled_one_is_not_used_again(box: Box) -> None:
    with pytest.raises(ProblemFault, match="died"):
        box.ask(changed((RETURNS, "    import os; os._exit(7)")))
    assert box.sandboxes() == []
    box.ask(GOOD)
    assert box.session is not None and box.session._child is not None
    box.session._child.kill()  # while it is idle
    box.ask(GOOD)
    token = Token()
    slow = changed((RETURNS, "    import time; time.sleep(60)\n" + RETURNS))
    with (
        pytest.raises(Cancelled),
        box.kept.opened(box.launcher, toolchain(), box.folder, slow, LIMITS, token, 60.0) as session,
    ):
        token.set()
        Problem.of(session).case_of([1, 2], 3, "normal")
    assert box.sandboxes() == []


def test_limits_are_those_of_an_evaluation(box: Box) -> None:
    """CPU seconds count from an evaluation's beginning, not from the sandbox's."""
    box.ask(GOOD)
    burns = changed((RETURNS, "    while True: pass"))
    with (
        pytest.raises(ProblemFault) as caught,
        box.kept.opened(box.launcher, toolchain(), box.folder, burns, Limits(cpu_s=1), None, 60.0) as session,
    ):
        Problem.of(session).case_of([1, 2], 3, "normal")
    assert caught.value.code == "problem.died" and "limit" in caught.value.detail


def test_two_at_once_have_one_each_and_close_ends_it(box: Box) -> None:
    with box.kept.opened(box.launcher, toolchain(), box.folder, GOOD, LIMITS) as session:
        Problem.of(session)
        box.ask(GOOD)
        assert len(box.sandboxes()) == 2
    assert len(box.sandboxes()) == 1
    box.kept.close()
    box.kept.close()
    assert box.sandboxes() == [] and box.kept.spent_ms() == 0
    with box.kept.opened(box.launcher, toolchain(), box.folder, GOOD, LIMITS) as session:
        Problem.of(session)
        box.kept.close()  # the run was left meanwhile
    assert box.sandboxes() == []


HOLDER = """
import sys, time
from pathlib import Path
from spak.ports import Limits
from spak.sandbox.restricted import Restricted
from spak.validators.problems import Problem, shipped
from spak.validators.problems.kept import KeptSandbox
from validator_calls import toolchain
kept = KeptSandbox()
def ask():
    with kept.opened(Restricted(), toolchain(), Path(sys.argv[1]), shipped()["softmax"], Limits()) as session:
        Problem.of(session).case_of([1, 2], 3, "normal")
        return session._child.pid
print(ask(), flush=True)
for line in sys.stdin:
    print(ask(), flush=True)
"""


def test_it_lives_through_a_freeze_and_ends_with_its_supervisor(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as holder:  # fmt: skip
        assert holder.stdin is not None and holder.stdout is not None
        try:
            pid = int(holder.stdout.readline())
            holder.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            holder.send_signal(signal.SIGCONT)
            holder.stdin.write("again\n")
            holder.stdin.flush()
            assert int(holder.stdout.readline()) == pid
        finally:
            holder.kill()
    until(lambda: not Path(f"/proc/{pid}").exists(), "the kept sandbox to end with its supervisor")


def test_it_ends_with_its_profiler(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    profiler = CpuProfiler()
    with profiler._kept.opened(Restricted(), toolchain(), tmp_path, GOOD, LIMITS) as session:
        Problem.of(session)
    assert session.lives()
    del profiler
    gc.collect()
    assert not session.lives() and list(tmp_path.iterdir()) == []
