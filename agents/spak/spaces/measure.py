"""Measure every point of a space into a cache, and continue where an earlier process stopped.

Takes a Task (problem, template, space, size) and a Place to work in; writes FILE.part as it goes and FILE at
the end, and reports Progress. The rule, whose numbers the header repeats:

    1. Points are taken in an order drawn from the space's content, GROUP at a time, so that neighbours in the
       space are not neighbours in time.
    2. Each is written from the template and compiled by the tool `cc`. A group runs in one sandbox
       (sandbox/guest/space_guest.py), where each kernel has to give right answers for several sizes and
       every kind of input.
    3. The right ones are timed in turn, in an order and with arrays at places drawn for each turn. The time
       of a turn is the least of BURST calls, in CPU time of the thread. After TURNS turns only those go on
       whose three fastest turns differ by more than STEADY_PERCENT, for at most MOST_TURNS.
    4. One kernel, the anchor, is timed in every group. A group in which it took over DRIFT_PERCENT longer
       than at its best is void: the machine was slower then. So is a point that did not become steady.
    5. Void points are measured again, at most VOID_RETRIES times; they stay void if that does not help.

The clock is in the process of the kernels, and inputs are drawn once for the whole space: a tenth of the
effort of CpuProfiler, for kernels of one's own. A kernel of somebody else is measured by CpuProfiler.

FILE.part has the header and a row for each point measured so far, as in the cache but not compressed and in
the order of measuring; a later row of a point replaces an earlier one. It is written group by group, so that
a process that is killed loses at most the group it worked on.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_low
from typing import IO, TYPE_CHECKING, Any

from spak import canon, data
from spak.cancel import Cancel, check
from spak.errors import SpecError, UnavailableError, UsageError
from spak.ports import MIB, Call, Job, Launcher, Limits, Toolchain
from spak.proposers import space as parsing
from spak.proposers.space import Space
from spak.spaces import cache
from spak.spaces.cache import MAX_POINTS, Header, Row, Source
from spak.tools.cc import Cc
from spak.tools.instantiate import render
from spak.validators.problems import Problem, ProblemFault, decoded, opened
from spak.validators.problems.signature import CPP

if TYPE_CHECKING:
    import numpy as np

GUEST = "sandbox/guest/space_guest.py"
GROUP = 16
BURST, TURNS, MOST_TURNS = 3, 5, 20
STEADY_PERCENT = 2
DRIFT_PERCENT = 10
VOID_RETRIES = 2
KEPT = 3
"""Inputs of the timed size that are used in turn."""
GROUP_S, ALONE_S = 300.0, 60.0
"""Limits of checking and timing: a group's, and of one kernel alone after its group died."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is measured; names are those of the files that the content was read from."""

    problem: tuple[str, bytes]
    template: tuple[str, bytes]
    space: Mapping[str, Any]
    n: int = 0
    """The size; 0 for the one that the problem times at."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and with what; `folder` is private and may be written."""

    launcher: Launcher
    toolchain: Toolchain
    limits: Limits
    folder: Path
    cpu: str
    compiler: str
    cancel: Cancel | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a measurement has come."""

    header: Header
    done: int
    """Points that need no further measurement."""
    rows: Sequence[Row]
    left_s: float
    """Seconds that the rest should take."""

    def counts(self) -> dict[str, int]:
        """How many points ended in which outcome."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row.outcome] = found.get(row.outcome, 0) + 1
        return dict(sorted(found.items()))

    def best(self) -> Row | None:
        """The fastest point so far; None where none is ok."""
        return cache.fastest(self.rows)


def measure(
    task: Task,
    place: Place,
    path: Path,
    report: Callable[[Progress], None],
    until: Callable[[], bool] = lambda: False,
) -> Progress:
    """Measure until all is done and the file is written, or until `until` says stop, asked after each group.

    Raises: UsageError `cache.*`, `tuner.space`, `instantiate.*`; SpecError `problem.*`; UnavailableError;
    Cancelled; OSError.
    """
    space = parsing.parse(task.space)
    if space.size > MAX_POINTS:
        raise UsageError(
            "cache.space",
            f"the space has {space.size} points; at most {MAX_POINTS} are measured",
            "leave out choices, or add requirements",
        )
    try:
        with _problem(task, place) as (problem, n):
            header = _header(task, place, space, n)
            if path.exists():
                return _finished(path, header)
            plan = _plan(problem, n, place.folder / "cases.npz")
    except ProblemFault as fault:
        raise SpecError(fault.code, fault.detail, "spak problem check says more") from fault
    with _Part(path, header, space) as part:
        return _Measuring(task, place, space, part.header, plan).run(part, path, report, until)


@contextmanager
def _problem(task: Task, place: Place) -> Iterator[tuple[Problem, int]]:
    """The problem and the size. Raises: ProblemFault, Cancelled."""
    text = decoded(task.problem[1])
    limits, folder = place.limits, place.folder / "problem"
    with opened(place.launcher, place.toolchain, folder, text, limits, place.cancel) as session:
        problem = Problem.of(session)
        problem.steady()
        n = task.n or problem.timed
        if not problem.least <= n <= problem.most:
            raise ProblemFault("problem.size", f"n = {n}: it takes {problem.least} to {problem.most}")
        yield problem, n


def _header(task: Task, place: Place, space: Space, n: int) -> Header:
    rule = {
        "group": GROUP,
        "burst": BURST,
        "turns": TURNS,
        "most_turns": MOST_TURNS,
        "steady_percent": STEADY_PERCENT,
        "drift_percent": DRIFT_PERCENT,
        "again": VOID_RETRIES,
    }
    return Header(
        problem=Source.of(*task.problem),
        template=Source.of(*task.template),
        space=json.loads(canon.dumps(task.space)),
        points=space.size,
        n=n,
        cpu=place.cpu,
        compiler=place.compiler,
        measured=time.strftime("%Y-%m-%d", time.gmtime()),
        rule=rule,
    )


def _plan(problem: Problem, n: int, path: Path) -> dict[str, Any]:
    """What the guest is told, and the cases written for it. Raises: ProblemFault, Cancelled; OSError."""
    import numpy as np

    draw = np.random.default_rng()
    usual = problem.kinds[0]
    sizes = [problem.least, *(min(max(size, problem.least), problem.most) for size in (7, 65, n - 1, n + 1))]
    checks = [*((size, usual) for size in dict.fromkeys(sizes)), *((n, kind) for kind in problem.kinds)]
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    cases = []
    for index, (size, kind) in enumerate([*checks, *[(n, usual)] * KEPT]):
        case = problem.case(draw, size, kind)
        shapes = {name: list(shape) for name, shape in problem.shapes(size).items()}
        cases.append({"scalars": dict(case.scalars), "shapes": shapes})
        arrays |= {f"{index}/in/{name}": value for name, value in case.inputs.items()}
        for item in problem.prototype.of("output"):
            wanted = case.outputs[item.name]
            arrays[f"{index}/out/{item.name}"] = wanted
            if item.floating:
                arrays[f"{index}/allowed/{item.name}"] = problem.tolerance.allowed(wanted, item.type)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    path.chmod(0o444)
    return {
        "symbol": problem.prototype.symbol,
        "parameters": [[item.name, item.role, item.type] for item in problem.prototype.parameters],
        "cases": cases,
        "checks": list(range(len(checks))),
        "timed": list(range(len(checks), len(cases))),
    }


def _finished(path: Path, header: Header) -> Progress:
    """What a file holds that is whole already. Raises: UsageError `cache.other`, `cache.format`."""
    found = cache.read(path)
    _same(path, found.header, header)
    return Progress(found.header, found.header.points, found.rows, 0.0)


@dataclass(slots=True)
class _Measuring:
    task: Task
    place: Place
    space: Space
    header: Header
    plan: Mapping[str, Any]
    rows: dict[int, Row] = field(default_factory=dict)
    anchor: int = -1
    """The first point found ok."""
    anchor_least: int = 0

    def run(
        self, part: _Part, path: Path, report: Callable[[Progress], None], until: Callable[[], bool]
    ) -> Progress:
        for row in part.rows:
            self._keep(row)
        left = self._left()
        tries = dict.fromkeys(left, 0)
        began, at_first = time.monotonic(), len(left)
        while left:
            group, left = left[:GROUP], left[GROUP:]
            rows = self._group(group)
            part.append(rows)
            for row in rows:
                self._keep(row)
                tries[row.number] += 1
            left += [n for n in group if self.rows[n].outcome == "void" and tries[n] <= VOID_RETRIES]
            pace = (time.monotonic() - began) / max(at_first - len(left), 1)
            progress = self._progress(len(left), pace * len(left))
            report(progress)
            if left and until():
                return progress
        cache.write(path, self.header, list(self.rows.values()))
        part.remove()
        return self._progress(0, 0.0)

    def _progress(self, left: int, left_s: float) -> Progress:
        return Progress(self.header, self.space.size - left, tuple(self.rows.values()), left_s)

    def _left(self) -> list[int]:
        order = list(range(self.space.size))
        random.Random(canon.content_hash(self.header.space)).shuffle(order)
        return [n for n in order if n not in self.rows or self.rows[n].outcome == "void"]

    def _keep(self, row: Row) -> None:
        self.rows[row.number] = row
        if row.anchor_ns:
            self.anchor_least = min(self.anchor_least or row.anchor_ns, row.anchor_ns)
        if self.anchor < 0 and row.outcome == "ok":
            self.anchor = row.number

    def _group(self, group: Sequence[int]) -> list[Row]:
        """Compile, check and time. Raises: UnavailableError, UsageError `instantiate.*`, Cancelled."""
        check(self.place.cancel)
        folder = self.place.folder / "group"
        folder.mkdir()
        folder.chmod(0o777)
        try:
            rows: list[Row] = []
            built: list[int] = []
            for number in dict.fromkeys((*group, *([self.anchor] if self.anchor >= 0 else []))):
                code = self._compiled(number, folder)
                if not code:
                    built.append(number)
                elif number in group:
                    rows.append(Row(number, self.space.point(number), "compile_error", code))
            return rows + [row for row in self._judged(built, folder) if row.number in group]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _compiled(self, number: int, folder: Path) -> str:
        """The code of what the compiler found wrong; empty when `k<number>.so` is there."""
        name, template = self.task.template
        file = f"k{number}.cpp" if name.endswith(CPP) else f"k{number}.c"
        (folder / file).write_bytes(render(template, self.space.point(number)))
        (folder / file).chmod(0o444)
        args = {"source": file, "output": f"k{number}.so", "flags_from_source": True}
        if file.endswith(".cpp"):
            args["lang"] = "c++"
        place = self.place
        call = Call(
            "measure", "cc", args, folder, place.launcher, place.limits, place.toolchain, cancel=place.cancel
        )
        found = Cc().run(call)
        if found.status == "launcher":
            raise UnavailableError("unavailable.sandbox", _last(found.output) or "the sandbox did not start")
        code = found.key.get("code", "")
        if code == "cc.missing":
            raise UnavailableError("unavailable.compiler", _last(found.output), "make setup")
        if found.status == "exited" and not found.exit and (folder / f"k{number}.so").is_file():
            return ""
        return str((*found.key.get("codes", ()), code or found.status)[0])

    def _judged(self, built: Sequence[int], folder: Path) -> list[Row]:
        codes, times = self._run(built, folder, GROUP_S)
        for number in built:  # a kernel that ended the process says nothing about the others
            if number not in times and not codes.get(number):
                alone = self._run([number], folder, ALONE_S)
                codes[number] = alone[0].get(number, "died")
                times |= alone[1]
        anchor_ns = min(times.get(self.anchor, [0]))
        least = min(self.anchor_least or anchor_ns, anchor_ns)
        drifted = 100 * anchor_ns > (100 + DRIFT_PERCENT) * least
        return [self._row(n, codes.get(n, "died"), times.get(n, []), anchor_ns, drifted) for n in built]

    def _row(self, number: int, code: str, times: list[int], anchor_ns: int, drifted: bool) -> Row:
        point = self.space.point(number)
        if code or not times:
            return Row(number, point, "wrong", code or "died")
        ordered = sorted(times)
        found = Row(
            number, point, "ok", "",
            median_ns=median_low(ordered),
            least_ns=ordered[0],
            high_ns=ordered[3 * len(ordered) // 4],
            turns=len(ordered),
            anchor_ns=anchor_ns,
        )  # fmt: skip
        if ordered[0] <= 0:
            return Row(number, point, "void", "zero_sample")
        if drifted:
            return replace(found, outcome="void", code="drift")
        if len(ordered) < 3 or 100 * ordered[2] > (100 + STEADY_PERCENT) * ordered[0]:
            return replace(found, outcome="void", code="unsteady")
        return found

    def _run(
        self, numbers: Sequence[int], folder: Path, wall_s: float
    ) -> tuple[dict[int, str], dict[int, list[int]]]:
        """Codes of the kernels that were checked, and times of those that were right, by number."""
        if not numbers:
            return {}, {}
        place = self.place
        shutil.copyfile(data.path(GUEST), folder / "guest.py")
        if not (folder / "cases.npz").exists():
            os.link(place.folder / "cases.npz", folder / "cases.npz")
        kernels = {f"k{number}.so": number for number in numbers}
        plan = {**self.plan, "rule": dict(self.header.rule), "kernels": list(kernels), "seed": time.time_ns()}
        (folder / "kernels.json").write_text(json.dumps(plan))
        for name in ("guest.py", "kernels.json"):
            (folder / name).chmod(0o444)
        python = place.toolchain.programs.get("python", "")
        if not python:
            raise UnavailableError("unavailable.python", "the toolchain has no python", "make setup")
        limits = replace(place.limits, wall_s=wall_s, output_bytes=max(place.limits.output_bytes, 4 * MIB))
        env = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        argv = (python, "-I", "-B", "/ws/guest.py", "/ws/kernels.json", "/ws/cases.npz")
        done = place.launcher.run(
            Job(
                argv, folder, writable=False, limits=limits, env=env, binds=place.toolchain.binds,
                cancel=place.cancel,
            )
        )  # fmt: skip
        if done.status == "launcher":
            raise UnavailableError("unavailable.sandbox", done.detail or "the sandbox did not start")
        return _answers(done.stdout.data, kernels, "timeout" if done.status == "timeout" else "died")


def _answers(
    printed: bytes, kernels: Mapping[str, int], ended: str
) -> tuple[dict[int, str], dict[int, list[int]]]:
    """What the guest printed, as far as it makes sense: kernels may print too.

    A kernel whose check began and did not end has the code `ended`, where no other is left to be blamed.
    """
    codes: dict[int, str] = {}
    times: dict[int, list[int]] = {}
    for line in printed.splitlines():
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            continue
        number = kernels.get(str(answer.get("kernel"))) if isinstance(answer, dict) else None
        if number is None:
            continue
        if isinstance(answer.get("code"), str):
            codes[number] = answer["code"][:40]
        found = answer.get("times")
        if isinstance(found, list) and found and all(type(item) is int and item >= 0 for item in found):
            times[number] = found
    for number in kernels.values() if len(kernels) == 1 else ():
        if number not in times:
            codes[number] = codes.get(number) or ended
    return codes, times


def _last(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip()[-300:]


class _Part:
    """FILE.part: the rows so far, held by one process at a time."""

    def __init__(self, path: Path, header: Header, space: Space) -> None:
        """Raises: UsageError `cache.busy`, `cache.other`, `cache.format`; OSError."""
        self.path = path.with_name(f"{path.name}.part")
        self.header = header
        self._file: IO[bytes] = self.path.open("a+b")
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    "cache.busy", f"another process measures into {path}", "wait for it, or name another file"
                ) from error
            self.rows = self._read(space, path)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *ignored: object) -> None:
        self._file.close()

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows so that they survive a crash."""
        self._write("".join(f"{row.line()}\n" for row in rows))

    def remove(self) -> None:
        """The cache is written: this is no longer needed."""
        self.path.unlink()

    def _read(self, space: Space, path: Path) -> list[Row]:
        self._file.seek(0)
        found = self._file.read()
        whole = found.rfind(b"\n") + 1
        if whole < len(found):
            self._file.truncate(whole)  # a torn last line is measured again
        first, *lines = found[:whole].split(b"\n")
        if not first:
            self._write(f"{cache.head_line(self.header)}\n")
            return []
        header = cache.header_of(first, self.path)
        _same(path, header, self.header)
        self.header = header
        return cache.rows_of(lines, space, self.path)

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def _same(path: Path, found: Header, wanted: Header) -> None:
    """Raises: UsageError `cache.other`."""
    one, other = found.identity(), wanted.identity()
    changed = [name for name in one if one[name] != other[name]]
    if changed:
        raise UsageError(
            "cache.other",
            f"{path} was begun with another {', '.join(changed)}",
            "name another file, or remove that one and its .part",
        )
