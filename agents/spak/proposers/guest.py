"""One job of a guest program in the sandbox: a plan in JSON in, one line of JSON out.

Takes a MeasureCall, the name of a file of sandbox/guest, and a plan; gives what the guest printed. The
workspace is read-only. A guest that did not come to its end is an error, never an empty result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spak import data
from spak.errors import RunError, UnavailableError
from spak.ports import MIB, Job, MeasureCall, Toolchain

JOB_S, OUTPUT, FILE = 300, 8 * MIB, 256 * MIB


def ask(call: MeasureCall, guest: str, plan: Mapping[str, Any], code: str, **env: str) -> Any:
    """Run it. Raises: UnavailableError `unavailable.sandbox`; RunError with `code`; Cancelled."""
    toolchain = call.toolchain or Toolchain()
    if call.launcher is None or "python" not in toolchain.programs:
        what = "there is no launcher" if call.launcher is None else "the toolchain has no python"
        raise UnavailableError("unavailable.sandbox", what, "spak doctor says what is missing")
    text = data.path(f"sandbox/guest/{guest}").read_text(encoding="utf-8")
    limits = replace(call.limits, wall_s=float(JOB_S), cpu_s=JOB_S, output_bytes=OUTPUT, file_bytes=FILE)
    outcome = call.launcher.run(
        Job(
            argv=(toolchain.programs["python"], "-I", "-B", "-c", text),
            workspace=call.workspace,
            writable=False,
            limits=limits,
            env=env,
            binds=toolchain.binds,
            stdin=json.dumps(plan).encode(),
            inherit=call.inherit,
            cancel=call.cancel,
        )
    )
    if outcome.status == "launcher":
        raise UnavailableError("unavailable.sandbox", outcome.detail, "spak doctor says what is missing")
    if (outcome.status, outcome.exit, outcome.stdout.truncated) != ("exited", 0, False):
        said = outcome.stderr.data.decode("utf-8", "replace").strip()[-400:]
        raise RunError(
            code,
            f"the trial ended before it was done ({outcome.status}, exit {outcome.exit}): {said}",
            "raise the limits in spak.toml, or take less; then spak resume",
        )
    return json.loads(outcome.stdout.data)
