"""The Command validator: one command line, its exit code and the texts that its output must hold.

Takes `cmd` as a list of arguments or as text with quotes; text that holds a pipe, a list, a redirection or a
substitution is refused, for nothing here is given to a shell. The workspace is read-only. A check on output,
and the reader of `diagnostics`, look at what the launcher kept of both streams (head and tail of a flood).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spak import schema_parts as parts
from spak import shell
from spak.diagnostics import FORMS, SEVERE, Found, read
from spak.errors import UsageError
from spak.lang.catalog import ValidatorEntry
from spak.ports import MIB, MeasureCall, Measurement, Outcome
from spak.validators import launch

SCHEMA = parts.members(
    ["cmd"],
    cmd=parts.command("One simple command; text is parsed, never given to a shell."),
    expect_exit=parts.whole("The exit code that passes; signal n counts as 128 + n.", 0, 255, 0),
    contains={
        "description": "Each text must be in standard output or standard error.",
        "type": ["string", "array"],
        "minLength": 1,
        "maxLength": 4096,
        "minItems": 1,
        "maxItems": 32,
        "items": {"type": "string", "minLength": 1, "maxLength": 4096},
    },
    diagnostics=parts.choice("What it prints is read as findings, in this form.", tuple(sorted(FORMS))),
    timeout_s=parts.TIMEOUT,
)


class Command:
    """The validator `Command`."""

    entry = ValidatorEntry(
        name="Command",
        version=1,
        summary="Runs one command read-only and checks its exit code and output.",
        schema=SCHEMA,
    )

    def measure(self, call: MeasureCall) -> Measurement:
        try:
            argv = arguments(call.options["cmd"])
        except UsageError as error:
            detail = f"{error.message}: {error.hint}"
            return Measurement("checked", checks=(launch.check("command", False, error.code, detail),))
        argv = (launch.program(call, argv[0]) or argv[0], *argv[1:])
        whole = 16 * MIB if "diagnostics" in call.options else 0
        limit = call.options.get("timeout_s")
        outcome = launch.run(call, argv, timeout_s=limit, heard=call.heard, output_bytes=whole)
        return launch.cut_short(outcome) or _judge(call, outcome)


def arguments(cmd: str | Sequence[str]) -> tuple[str, ...]:
    """The arguments of a command line, given as text or as a list.

    Raises: UsageError `shell.*` when the text is not one simple command, `shell.syntax` for an empty one.
    """
    argv = shell.argv(cmd) if isinstance(cmd, str) else tuple(cmd)
    if not argv or not argv[0] or any("\0" in word for word in argv):
        raise UsageError(
            "shell.syntax", "no command, or a NUL byte in one", "give a program and its arguments"
        )
    return argv


def _judge(call: MeasureCall, outcome: Outcome) -> Measurement:
    expected = call.options.get("expect_exit", 0)
    crashed = outcome.status == "crash" and outcome.exit != expected
    checks = [
        launch.check(
            "exit",
            outcome.exit == expected,
            "crash" if crashed else "exit_mismatch",
            f"exit {outcome.exit}, expected {expected}: {launch.tail(outcome.stderr.data)}",
        )
    ]
    wanted = call.options.get("contains", ())
    for index, text in enumerate((wanted,) if isinstance(wanted, str) else wanted, start=1):
        found = text.encode() in outcome.stdout.data or text.encode() in outcome.stderr.data
        cut = outcome.stdout.truncated or outcome.stderr.truncated
        detail = f"{text!r} is not in the {'kept part of the ' if cut else ''}output"
        checks.append(launch.check(f"contains.{index}", found, "text_missing", "" if found else detail))
    form = call.options.get("diagnostics")
    listed: tuple[Found, ...] = ()
    metrics = {"exit_code": outcome.exit}
    if form is not None:
        judged, listed = _found(form, outcome)
        checks.append(judged)
        errors = sum(item["severity"] in SEVERE for item in listed)
        metrics |= {"errors": errors, "warnings": sum(item["severity"] == "warning" for item in listed)}
    return Measurement(
        "checked",
        checks=tuple(checks),
        metrics=metrics,
        diagnostics=listed,
        wall_ms=outcome.wall_ms,
        cpu_ms=outcome.cpu_ms,
    )


def _found(form: str, outcome: Outcome) -> tuple[dict[str, Any], tuple[Found, ...]]:
    """The findings in its output; an invalid or truncated document fails the check."""
    found = read(form, outcome.stdout.data, outcome.stderr.data)
    cut = outcome.stdout.truncated or outcome.stderr.truncated
    if found is None or cut:
        detail = f"the output {'was cut' if cut else f'is no {form}'}: {launch.tail(outcome.stdout.data)}"
        return launch.check("diagnostics", False, "unreadable", detail), tuple(found or ())
    worst = next((item for item in found if item["severity"] in SEVERE), None)
    detail = f"{worst['file']}:{worst['line']}: {worst['message']}" if worst else ""
    return launch.check("diagnostics", worst is None, "found_error", detail), tuple(found)
