"""The sandbox side of a repair: one job of sandbox/guest/repair_guest.py, and what it said.

Takes a MeasureCall (workspace, launcher, limits, toolchain) and a plan; gives the messages of the guest, in
order, and the CPU time of the job. The workspace is read-only and has no repository with a history in it.
The guest's lines carry a nonce that is drawn for each job; a guest that did not say that it finished is an
error, never an empty result.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from spak import data
from spak.errors import RunError, UnavailableError, UsageError
from spak.ports import MIB, Job, MeasureCall, Toolchain
from spak.proposers.repair import installed
from spak.proposers.repair.progress import Progress

GUEST, COMPARE = "sandbox/guest/repair_guest.py", "sandbox/guest/repair_compare.py"
ARGUMENTS = ("-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts=", "-s")
OUTPUT = 64 * MIB
MOST_HIDDEN = 100
ENDED = (0, 1, 2, 5)
"""Exit codes of pytest that say it came to its end; 3 and 4 are errors of its own and of its usage."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a job said."""

    messages: tuple[Mapping[str, Any], ...]
    cpu_ms: int

    def of(self, key: str) -> list[Mapping[str, Any]]:
        """The messages with this key, in order."""
        return [one for one in self.messages if key in one]

    @property
    def errors(self) -> list[tuple[str, str]]:
        """What could not be collected, and why."""
        return [(str(name), str(why)) for name, why in self.messages[-1]["errors"]]


def ask(call: MeasureCall, plan: Mapping[str, Any], paths: Sequence[str], seconds: int) -> Heard:
    """Run a plan on the tests of some paths. `seconds` bounds the whole job and decides nothing: a job that
    passes it is an error.

    Raises: UnavailableError `unavailable.sandbox`, `unavailable.pytest`; RunError `repair.incomplete`;
    Cancelled.
    """
    if call.launcher is None:
        raise UnavailableError(
            "unavailable.sandbox", "there is no launcher", "spak doctor says what is missing"
        )
    nonce = secrets.token_hex(32)
    argv = (_python(call), "-I", "-B", "-c", data.path(GUEST).read_text(encoding="utf-8"), *ARGUMENTS)
    plain = () if plan["do"] == "look" else ("--assert=plain",)
    compare = data.path(COMPARE).read_text(encoding="utf-8")
    toolchain = call.toolchain or Toolchain()
    mark, heard = nonce.encode(), call.heard
    outcome = call.launcher.run(
        Job(
            argv=(*argv, *plain, *paths),
            workspace=call.workspace,
            writable=False,
            masked=_elsewhere(call.workspace, call.original),
            limits=replace(
                call.limits, wall_s=float(seconds), cpu_s=seconds, output_bytes=OUTPUT, processes=256
            ),
            env={
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONHASHSEED": "0",
            },
            binds=toolchain.binds,
            stdin=json.dumps({**plan, "nonce": nonce, "generated": compare}).encode(),
            inherit=call.inherit,
            cancel=call.cancel,
            heard=heard and Progress(heard, mark, len(plan.get("candidates", ()))).hear,
        )
    )
    messages = _read(outcome.stdout.data, mark)
    if outcome.status == "launcher":
        raise UnavailableError("unavailable.sandbox", outcome.detail, "spak doctor says what is missing")
    if not messages or messages[-1].get("end") not in ENDED:
        said = outcome.stderr.data.decode("utf-8", "replace").strip()[-400:]
        raise RunError(
            "repair.incomplete",
            f"the search ended before it was done ({outcome.status}, exit {outcome.exit}): {said}",
            "raise the limits in spak.toml, or name fewer tests with --tests; then spak resume",
        )
    return Heard(tuple(messages), outcome.cpu_ms)


def _elsewhere(workspace: Path, original: Path | None) -> tuple[str, ...]:
    """What may hold other versions of the files, a mended one among them: byte code, the scratch repository,
    which has all files that the run began with, and what the user's environments have of the project.
    Raises: UsageError `repair.byte_code`."""
    found = [".git"] if (workspace / ".git").is_dir() else []
    for folder, names, _ in os.walk(workspace):
        names[:] = sorted(name for name in names if name != ".git")
        if "__pycache__" in names:
            names.remove("__pycache__")
            found.append(str((Path(folder) / "__pycache__").relative_to(workspace)))
    if len(found) > MOST_HIDDEN:
        hint = "delete the folders __pycache__, or have git ignore them"
        raise UsageError("repair.byte_code", f"{len(found)} folders of byte code", hint)
    return (*found, *(installed.copies(workspace, original) if original is not None else ()))


def _python(call: MeasureCall) -> str:
    """The interpreter of the toolchain's pytest. Raises: UnavailableError `unavailable.pytest`."""
    programs = (call.toolchain or Toolchain()).programs
    script = programs.get("pytest", "")
    python = PurePosixPath(script).with_name("python")
    if not script:
        raise UnavailableError(
            "unavailable.pytest", "the toolchain has no pytest", "python -m pip install pytest"
        )
    return str(python) if Path(python).exists() else programs["python"]


def _read(output: bytes, nonce: bytes) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for part in output.split(b"\n" + nonce + b" ")[1:]:
        try:
            value = json.loads(part.split(b"\n", 1)[0])
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
