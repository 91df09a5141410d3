"""One sandboxed command line for a validator, and what its end means when the command had no say in it.

Takes a MeasureCall and an argument list; gives the launcher's Outcome. `cut_short` turns an end that says
nothing about the candidate's work (no launcher, time limit, memory limit) into a Measurement, so that every
validator answers these alike. It judges no exit code and no output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spak.ports import Heard, Job, Launcher, MeasureCall, Measurement, Outcome, Toolchain

NO_LAUNCHER = "no launcher was given; nothing runs outside a sandbox"


def check(name: str, ok: bool, code: str = "", detail: str = "") -> dict[str, Any]:
    """A check of a Measurement; `code` is set only where it failed."""
    return {"name": name, "ok": ok, "code": "" if ok else code, "detail": detail}


def run(
    call: MeasureCall,
    argv: tuple[str, ...],
    *,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    output_bytes: int = 0,
    binds: tuple[Path, ...] = (),
    masked: tuple[str, ...] = (),
    heard: Heard | None = None,
) -> Outcome:
    """Run a command with the workspace read-only. A `timeout_s` only ever shortens the call's own limit."""
    launcher: Launcher | None = call.launcher
    if launcher is None:
        return Outcome("launcher", detail=NO_LAUNCHER)
    limits = replace(
        call.limits,
        wall_s=min(call.limits.wall_s, timeout_s or call.limits.wall_s),
        output_bytes=max(call.limits.output_bytes, output_bytes),
    )
    toolchain = call.toolchain or Toolchain()
    return launcher.run(
        Job(
            argv=argv,
            workspace=call.workspace,
            writable=False,
            limits=limits,
            env=dict(env or {}),
            binds=tuple(dict.fromkeys((*toolchain.binds, *binds))),
            masked=masked,
            stdin=stdin,
            inherit=call.inherit,
            heard=heard,
            cancel=call.cancel,
        )
    )


def cut_short(outcome: Outcome) -> Measurement | None:
    """The Measurement of a command that did not end by itself, or None when its exit code counts."""
    match outcome.status:
        case "exited" | "crash":
            return None
        case "timeout":
            return _failed("timeout", "timeout", "the time limit passed", outcome)
        case "launcher":
            return _failed("unavailable", "launcher", outcome.detail or "the sandbox did not start", outcome)
        case "oom" | "limit" as code:
            return _failed("checked", code, outcome.detail or "a resource limit ended it", outcome)


def _failed(status: Any, code: str, detail: str, outcome: Outcome) -> Measurement:
    return Measurement(
        status,
        checks=(check("ran", False, code, detail),),
        wall_ms=outcome.wall_ms,
        cpu_ms=outcome.cpu_ms,
    )


INSTALL = {
    "gcc": "install gcc (apt-get install gcc libc6-dev)",
    "cc": "install gcc (apt-get install gcc libc6-dev)",
    "nvcc": "install the CUDA toolkit",
    "pytest": "install pytest (python -m pip install pytest)",
    "ruff": "install ruff (python -m pip install ruff)",
}
"""What gives each program that a validator lives by."""


def unavailable(program: str) -> Measurement:
    """The Measurement when the toolchain lacks a program that the validator lives by."""
    mend = INSTALL.get(program, f"install {program}")
    message = f"the toolchain has no {program}"
    finding = {
        "severity": "info",
        "code": "toolchain",
        "message": message,
        "hint": mend,
    }
    checks = (check("toolchain", False, "toolchain", f"{message}: {mend}"),)
    return Measurement("unavailable", checks=checks, diagnostics=(finding,))


def program(call: MeasureCall, name: str) -> str:
    """The path of a toolchain program inside the sandbox, or an empty string."""
    return (call.toolchain or Toolchain()).programs.get(name, "")


def tail(data: bytes, size: int = 400) -> str:
    """The end of an output as text, for a check's detail."""
    return data.decode("utf-8", "replace").strip()[-size:]
