"""The PyTest validator: runs tests in the sandbox and reports every one that failed.

Takes paths and a few harmless options; gives counts as metrics, one check per failing test, and diagnostics.
The workspace is read-only, the project's `addopts` and installed plug-ins are left out, and the result does
not come from the exit code but from one line that our reporter writes at the end under a nonce.

What that line proves: pytest started, collected and finished. The tests and the code under test share its
process, so code that looks for our reporter in memory, or a conftest.py that rewrites reports, can still lie;
`conftest: false` closes the second way. docs/validators.md has the list.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from spak import schema_parts as parts
from spak.diagnostics import relative
from spak.lang.catalog import ValidatorEntry
from spak.ports import MIB, Heard, MeasureCall, Measurement, Outcome
from spak.validators import launch

MAX_CHECKS = 100
"""Failing tests that get a check of their own; the rest share `more_failures`."""

COUNTS = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")

_NAME = "^[A-Za-z_][A-Za-z0-9_.]*$"
_ARGUMENT = (
    "^(-x|-q|-v|-l|--strict-markers|--maxfail=[0-9]{1,4}"
    "|--tb=(auto|long|short|line|native|no)|--import-mode=(prepend|append|importlib))$"
)
SCHEMA = parts.members(
    [],
    paths=parts.listed(
        "Files, folders or test ids in the workspace; all tests without it.",
        {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[^/-]"},
        64,
    ),
    tests=parts.choice(
        "All of them, or those that the changes of the run may affect.", ("all", "affected"), "all"
    ),
    keyword=parts.text("Only tests that match, as pytest -k.", 512),
    marker=parts.text("Only tests with the marker, as pytest -m.", 512),
    args=parts.listed(
        "Further options: -x -q -v -l --strict-markers --maxfail=N --tb=STYLE --import-mode=MODE.",
        {"type": "string", "maxLength": 64, "pattern": _ARGUMENT},
        16,
    ),
    plugins=parts.listed(
        "Installed plug-ins to load; no other is.", {"type": "string", "pattern": _NAME}, 16
    ),
    conftest=parts.flag("false leaves every conftest.py out.", True),
    min_tests=parts.whole("How many tests must have passed; skipped ones do not count.", 1, 100_000, 1),
    timeout_s=parts.TIMEOUT,
)


class PyTest:
    """The validator `PyTest`."""

    entry = ValidatorEntry(
        name="PyTest",
        version=1,
        summary="Runs pytest read-only; one check per failing test.",
        schema=SCHEMA,
    )

    def measure(self, call: MeasureCall) -> Measurement:
        python = _python(call)
        if not python:
            return launch.unavailable("pytest")
        left, evidence = _affected(call) if call.options.get("tests") == "affected" else ((), {})
        nonce = secrets.token_hex(32)
        guest = Path(__file__).with_name("guest_pytest.py").read_text(encoding="utf-8")
        outcome = launch.run(
            call,
            (python, "-I", "-B", "-c", guest, *_arguments(call.options)),
            timeout_s=call.options.get("timeout_s"),
            env={"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=nonce.encode() + json.dumps(left).encode(),
            heard=_before(nonce.encode(), call.heard),
            output_bytes=8 * MIB,
        )
        measured = launch.cut_short(outcome) or _read(call, outcome, nonce)
        return replace(measured, evidence={**measured.evidence, **evidence})


def _affected(call: MeasureCall) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """The files and tests that the run's changes do not affect, and how the others were chosen."""
    from spak.world.selection.affected import affected

    changes = {path: before for path, before in call.changed().items() if not call.hides(path)}
    left, selection = affected(call.workspace, changes, call.cancel, call.original)
    return left, {"selection": selection}


def _before(report: bytes, heard: Heard | None) -> Heard | None:
    """Passes on what pytest prints, and not our report after it."""
    if heard is None:
        return None
    over, held = False, b""

    def hear(number: int, chunk: bytes) -> None:
        nonlocal over, held
        if over:
            return
        if number != 1:
            heard(number, chunk)
            return
        words, found, _ = (held + chunk).partition(report)
        over = bool(found)
        most = 0 if over else min(len(report) - 1, len(words))  # what may be the report's beginning waits
        kept = next(size for size in range(most, -1, -1) if words.endswith(report[:size]))
        words, held = words[: len(words) - kept], words[len(words) - kept :]
        if words:
            heard(number, words)

    return hear


def _python(call: MeasureCall) -> str:
    """The interpreter that belongs to the toolchain's pytest, or the toolchain's own."""
    script = launch.program(call, "pytest")
    python = PurePosixPath(script).with_name("python") if script else None
    if python is not None and Path(python).exists():
        return str(python)
    return launch.program(call, "python")


def _arguments(options: Mapping[str, Any]) -> list[str]:
    arguments = ["-p", "no:cacheprovider", "-o", "addopts=", "--color=no", "-q"]
    for plugin in options.get("plugins", ()):
        arguments += ["-p", plugin]
    if not options.get("conftest", True):
        arguments.append("--noconftest")
    for option, flag in (("keyword", "-k"), ("marker", "-m")):
        if option in options:
            arguments += [flag, options[option]]
    return [*arguments, *options.get("args", ()), *options.get("paths", ())]


def _read(call: MeasureCall, outcome: Outcome, nonce: str) -> Measurement:
    report = _report(outcome.stdout.data, nonce)
    if report is None:
        detail = f"the test process ended (exit {outcome.exit}) before pytest had finished: "
        detail += launch.tail(outcome.stderr.data) or launch.tail(outcome.stdout.data)
        checks: tuple[dict[str, Any], ...] = (launch.check("finished", False, "incomplete", detail),)
        return Measurement("checked", checks=checks, wall_ms=outcome.wall_ms, cpu_ms=outcome.cpu_ms)
    try:
        return _judge(report, call.options.get("min_tests", 1), outcome)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        checks = (launch.check("finished", False, "incomplete", f"the report makes no sense: {error!r}"),)
        return Measurement("checked", checks=checks, wall_ms=outcome.wall_ms, cpu_ms=outcome.cpu_ms)


def _judge(report: Mapping[str, Any], least: int, outcome: Outcome) -> Measurement:
    counts = {name: int(report["counts"].get(name, 0)) for name in COUNTS}
    return Measurement(
        "checked",
        checks=tuple(_checks(report, least, outcome)),
        metrics={
            "passed": counts["passed"] + counts["xpassed"],
            "failed": counts["failed"],
            "errors": counts["error"] + len(report["collect_errors"]),
            "skipped": counts["skipped"] + counts["xfailed"],
            "collected": int(report["collected"]),
            "deselected": int(report["deselected"]),
        },
        diagnostics=tuple(_diagnostic(item) for item in (*report["collect_errors"], *report["bad"])),
        wall_ms=outcome.wall_ms,
        cpu_ms=outcome.cpu_ms,
    )


def _report(stdout: bytes, nonce: str) -> dict[str, Any] | None:
    """The report on the one line with the nonce; None when there is no such line, more than one, or it is
    malformed."""
    mark = b"\n" + nonce.encode() + b" "
    if stdout.count(mark) != 1:
        return None
    line = stdout.split(mark, 1)[1].split(b"\n", 1)[0]
    try:
        report = json.loads(line)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _checks(report: Mapping[str, Any], least: int, outcome: Outcome) -> list[dict[str, Any]]:
    collected, ended = int(report["collected"]), int(report["exit"])
    checks = [
        launch.check("finished", True),
        launch.check("collected", collected > 0, "none_collected", f"{collected} tests collected"),
    ]
    for item in report["collect_errors"][:MAX_CHECKS]:
        checks.append(launch.check(f"collect:{item['id']}", False, "collect_error", item["message"]))
    bad = report["bad"]
    for item in bad[:MAX_CHECKS]:
        checks.append(launch.check(f"test:{item['id']}", False, item["outcome"], item["message"]))
    if len(bad) > MAX_CHECKS:
        more = f"{len(bad) - MAX_CHECKS} more tests failed"
        checks.append(launch.check("more_failures", False, "more_failures", more))
    passed = sum(int(report["counts"].get(name, 0)) for name in ("passed", "xpassed"))
    stopped = any(not item["ok"] for item in checks)
    if not stopped:  # a test that is skipped, or deselected by a conftest.py, has shown nothing
        detail = f"{passed} passed, at least {least} wanted"
        checks.append(launch.check("passed", passed >= least, "too_few", detail))
    if report["unfinished_count"] and not stopped:
        names = ", ".join(report["unfinished"][:5])
        checks.append(launch.check("all_ran", False, "not_run", f"collected but never run: {names}"))
    if ended != 0 and not any(not item["ok"] for item in checks):
        code = {2: "interrupted", 3: "internal", 4: "usage", 5: "none_collected"}.get(ended, "exit")
        detail = launch.tail(outcome.stderr.data) or launch.tail(outcome.stdout.data)
        checks.append(launch.check("exit", False, code, detail))
    return checks


def _diagnostic(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "severity": "error",
        "file": relative(str(item["file"])),
        "line": int(item["line"]),
        "code": str(item.get("outcome", "collect_error")),
        "message": str(item["message"]).split("\n", 1)[0][:300],
    }
