"""Results of tools: one shape for what went well, what was refused, and what a sandboxed process did."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spak import canon
from spak.diagnostics import diagnostic as diagnostic
from spak.errors import UserError
from spak.files import beneath, faults
from spak.files.disk import refusal
from spak.ports import Call, Outcome, ToolResult

MISSING = 127
"""The exit of a tool whose program is not installed, as a shell has it."""


def done(output: bytes | str, **key: Any) -> ToolResult:
    """A tool's success; `key` names what a repetition would repeat."""
    data = output.encode() if isinstance(output, str) else output
    return ToolResult("exited", 0, data, len(data), canon.digest(data), False, {"exit": 0, **key})


def failed(
    code: str, message: str, hint: str = "", *, file: str = "", line: int = 0, exit: int = 1
) -> ToolResult:
    """A refusal that the caller can mend: nothing was changed."""
    text = f"{message} [{code}]\n" + (f"hint: {hint}\n" if hint else "")
    data = text.encode("utf-8", "replace")
    return ToolResult(
        "exited",
        exit,
        data,
        len(data),
        canon.digest(data),
        False,
        {"exit": exit, "codes": [code]},
        (diagnostic("error", code, message, file, line, hint),),
    )


def of_outcome(
    outcome: Outcome,
    *,
    output: bytes | None = None,
    diagnostics: Sequence[Mapping[str, Any]] = (),
    **key: Any,
) -> ToolResult:
    """What a sandboxed process did: its output, standard output first, unless a better text is given."""
    data = outcome.stdout.data + outcome.stderr.data if output is None else output
    if outcome.detail and outcome.status != "exited":
        data += (b"" if not data or data.endswith(b"\n") else b"\n") + outcome.detail.encode() + b"\n"
    errors = sorted({str(item["code"]) for item in diagnostics if item["severity"] == "error"})
    return ToolResult(
        outcome.status,
        outcome.exit,
        data,
        outcome.stdout.size + outcome.stderr.size,
        _both(outcome),
        outcome.stdout.truncated or outcome.stderr.truncated,
        {"exit": outcome.exit, **({"codes": errors} if errors else {}), **key},
        tuple(diagnostics),
        outcome.wall_ms,
        outcome.cpu_ms,
    )


def guarded(work: Callable[[Call], ToolResult], call: Call) -> ToolResult:
    """Do a tool's work on the host: a user's error is exit 1, a host in trouble is no result of the tool's.

    With `crash` the runner rolls the workspace back, so a write that stopped half-way leaves nothing. A fault
    of the host is not recorded at all: the run stops, and does the step again once the fault has passed.

    Raises: RunError `workspace.*`, UnavailableError `unavailable.host`.
    """
    started, cpu = time.monotonic_ns(), time.thread_time_ns()
    try:
        with beneath.as_judged(call.observed):
            result = work(call)
    except UserError as error:
        if faults.is_fault(error):
            raise
        result = failed(error.code, error.message, error.hint)
    except OSError as error:
        if error.errno == errno.EFBIG or faults.is_fault(error):
            raise refusal(error, f"{call.tool} worked") from error
        text = f"the workspace failed: {error.strerror or error}\n".encode()
        result = ToolResult("crash", 1, text, len(text), canon.digest(text))
    return _timed(result, (time.monotonic_ns() - started) // 10**6, (time.thread_time_ns() - cpu) // 10**6)


def _timed(result: ToolResult, wall_ms: int, cpu_ms: int) -> ToolResult:
    return replace(result, wall_ms=result.wall_ms or wall_ms, cpu_ms=result.cpu_ms or cpu_ms)


def _both(outcome: Outcome) -> str:
    """The hash of the one stream that was written to, or of both hashes."""
    hashes = [stream.sha256 for stream in (outcome.stdout, outcome.stderr) if stream.size]
    return hashes[0] if len(hashes) == 1 else canon.content_hash(hashes)
