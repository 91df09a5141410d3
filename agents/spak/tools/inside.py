"""Starting a program inside the sandbox: the call's limits, the toolchain's folders, a quiet environment.

A bare program name goes through the toolchain's table first, so that `pytest` in a spec is the pytest that
was found when the run was configured. `HOME` is the sandbox's scratch folder and Python writes no byte code
and no cache: what a tool leaves in the workspace is what it was asked to do, or the watchdog would take every
repetition for progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spak.ports import Call, Heard, Job, Outcome, Toolchain

ENVIRONMENT = {
    "HOME": "/tmp",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_ADDOPTS": "-p no:cacheprovider",
}
_VERSIONLESS = {"python3": "python", "py.test": "pytest"}


def program(call: Call, name: str) -> str:
    """Where a toolchain program is inside the sandbox, or an empty string."""
    programs = (call.toolchain or Toolchain()).programs
    return programs.get(name) or programs.get(_VERSIONLESS.get(name, ""), "")


def resolved(call: Call, argv: Sequence[str]) -> tuple[str, ...]:
    """The arguments with a bare program name found in the toolchain; `pytest` also through its python."""
    name, *rest = argv
    path = program(call, name)
    if not path and name in ("pytest", "py.test") and program(call, "python"):
        return (program(call, "python"), "-m", "pytest", *rest)
    return (path or name, *rest)


def run(
    call: Call,
    argv: Sequence[str],
    *,
    writable: bool = True,
    timeout_s: float | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    folder: str = "",
    output_bytes: int = 0,
    heard: Heard | None = None,
) -> Outcome:
    """Run it. `timeout_s` only ever shortens the call's own limit, `output_bytes` only ever raises it."""
    if call.launcher is None:
        return Outcome("launcher", 125, detail="no launcher was given; nothing runs outside a sandbox")
    limits = replace(
        call.limits,
        wall_s=min(call.limits.wall_s, timeout_s or call.limits.wall_s),
        output_bytes=max(call.limits.output_bytes, output_bytes),
    )
    return call.launcher.run(
        Job(
            argv=tuple(argv),
            workspace=call.workspace,
            writable=writable,
            limits=limits,
            env={**ENVIRONMENT, **(env or {})},
            folder=folder,
            binds=(call.toolchain or Toolchain()).binds,
            stdin=stdin,
            inherit=call.inherit,
            heard=heard,
            cancel=call.cancel,
        )
    )
