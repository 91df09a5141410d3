"""A kernel that is to be tuned, with its problem: read, compiled, called and found right, or refused.

Takes the file's content, the text of a problem and a place to work in; gives the Kernel with what the
problem says of it. Everything of the kernel and of the problem runs in the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spak.errors import SpecError, UnavailableError, UsageError
from spak.ports import Call, Launcher, Limits, MeasureCall, Toolchain
from spak.tools.cc import Cc
from spak.validators import VALIDATORS
from spak.validators.problems import Problem, ProblemFault, Prototype, Tolerance, decoded, opened, shipped
from spak.validators.problems.signature import misfit

MEASURE_S = 120.0
"""The longest that the first measurement takes."""
_NAME = "given.py"
_SIGNATURE = ("missing_symbol", "wrong_signature")


@dataclass(frozen=True, slots=True)
class Place:
    """Where and with what; `folder` is private and may be written."""

    launcher: Launcher
    toolchain: Toolchain
    limits: Limits
    folder: Path


@dataclass(frozen=True, slots=True)
class Facts:
    """What the problem says, by its process."""

    name: str
    """As the spec names it: a shipped problem, or a file from the spec's folder."""
    text: str
    prototype: Prototype
    least: int
    most: int
    timed: int
    kinds: tuple[str, ...]
    tolerance: Tolerance

    @classmethod
    def of(cls, name: str, text: str, problem: Problem) -> Facts:
        """Those of a problem that is open."""
        sizes = problem.least, problem.most, problem.timed
        return cls(name, text, problem.prototype, *sizes, problem.kinds, problem.tolerance)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that was found right."""

    source: bytes
    facts: Facts


def problem_text(name: str, folder: Path) -> tuple[str, str]:
    """A problem's name as a spec in `folder` has it, and its text. Raises: UsageError `tune.problem`."""
    if name in shipped():
        return name, shipped()[name]
    if not name.endswith(".py"):
        hint = f"one of {', '.join(shipped())}, or a file NAME.py (docs/measuring.md, Problems)"
        raise UsageError("tune.problem", f"no problem is called {name!r}", hint)
    file = Path(name)
    try:
        inside = file.resolve().relative_to(folder.resolve())
        return inside.as_posix(), decoded(file.read_bytes())
    except ValueError as error:
        hint = "copy it there: a spec finds its problem from its own folder"
        raise UsageError("tune.problem", f"{name} is not below the folder of the kernel", hint) from error
    except OSError as error:
        raise UsageError("tune.problem", f"{name}: {error.strerror}", "check the path") from error
    except ProblemFault as fault:
        raise SpecError(fault.code, fault.detail, f"spak problem check {name}") from fault


def checked(source: bytes, title: str, name: str, text: str, place: Place) -> Kernel:
    """The kernel, compiled and called as a baseline would be. `title` is its file's name, for messages.

    Raises: UsageError `tune.compile`, `tune.signature`, `tune.wrong`; SpecError `problem.*`;
    UnavailableError; Cancelled.
    """
    with session(name, text, place) as problem:
        facts = Facts.of(name, text, problem)
    _compiled(source, title, facts, place)
    _right(title, facts, place)
    return Kernel(source, facts)


@contextmanager
def session(name: str, text: str, place: Place) -> Iterator[Problem]:
    """The problem, its process alive for as long as the block lasts. Raises: SpecError `problem.*`."""
    folder = place.folder / "problem"
    try:
        with opened(place.launcher, place.toolchain, folder, text, place.limits) as running:
            yield Problem.of(running)
    except ProblemFault as fault:
        if fault.code == "problem.launcher":
            raise UnavailableError("unavailable.sandbox", fault.detail, "spak doctor") from fault
        raise SpecError(fault.code, fault.detail, f"spak problem check says more of {name}") from fault
    finally:
        _remove(folder)


def _compiled(source: bytes, title: str, facts: Facts, place: Place) -> None:
    work = place.folder / "kernel"
    work.mkdir()
    work.chmod(0o777)
    (work / title).write_bytes(source)
    args = {"source": title, "output": "naive.so", "flags": ["-O2"], "flags_from_source": True}
    found = Cc().run(Call("tune", "cc", args, work, place.launcher, place.limits, place.toolchain))
    if found.status == "launcher":
        raise UnavailableError("unavailable.sandbox", _last(found.output), "spak doctor")
    if found.key.get("code") == "cc.missing":
        raise UnavailableError("unavailable.compiler", _last(found.output), "make setup")
    if found.status != "exited" or found.exit:
        lines = found.output.decode("utf-8", "replace").splitlines()
        why = next((line for line in lines if "error" in line), _last(found.output))
        raise UsageError("tune.compile", f"the kernel does not compile: {why}", "mend it, then tune it")
    why = misfit(
        facts.prototype, source, title, place.launcher, place.toolchain, place.limits,
        place.folder / "signature",
    )  # fmt: skip
    if why:
        raise _unfit(facts, why)


def _right(title: str, facts: Facts, place: Place) -> None:
    options = {"problem": _NAME, "binary": "naive.so", "source": title, "role": "baseline"}
    limits = replace(place.limits, wall_s=max(place.limits.wall_s, MEASURE_S))
    measured = VALIDATORS["CpuProfiler"]().measure(
        MeasureCall(
            "tune",
            "CpuProfiler",
            options,
            place.folder / "kernel",
            place.launcher,
            limits=limits,
            toolchain=place.toolchain,
            problems={_NAME: facts.text},
        )
    )
    bad = next((item for item in measured.checks if item["ok"] is not True), None)
    if bad is None:
        return
    why = f"{bad['code']}: {bad['detail']}"
    if measured.status == "unavailable" or bad["code"] in ("launcher", "toolchain"):
        raise UnavailableError("unavailable.sandbox", why, "spak doctor")
    if bad["code"] in _SIGNATURE:
        raise _unfit(facts, why)
    hint = f"it has to be right before it can be made faster; {_reference(facts.name)}"
    raise UsageError("tune.wrong", f"the kernel is not right: {why}", hint)


def _unfit(facts: Facts, why: str) -> UsageError:
    return UsageError(
        "tune.signature",
        f"the kernel is not {facts.prototype.text}: {why}",
        f"define {facts.prototype.text}, as the problem {facts.name} asks for",
    )


def _reference(name: str) -> str:
    own = "docs/measuring.md, Problems, says what is computed"
    return own if name in shipped() else f"{name} says what is right: spak problem check {name}"


def _last(output: Any) -> str:
    return bytes(output).decode("utf-8", "replace").strip()[-300:]


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
