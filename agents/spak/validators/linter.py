"""The Linter validator: what ruff or gcc finds in source files, as diagnostics.

Takes a tool and paths in the workspace; gives counts of errors and warnings as metrics and one diagnostic per
finding. Neither tool runs the code or reads the project's own configuration. A linter that found no file to
read has not passed. Comments that silence a finding count unless `ignore_noqa` is set (ruff); gcc obeys
pragmas in the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spak import schema_parts as parts
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import walk
from spak.lang.catalog import ValidatorEntry
from spak.ports import MIB, MeasureCall, Measurement, Outcome
from spak.validators import launch

MAX_FILES = 4000
MAX_DIAGNOSTICS = 500
SUFFIXES = {"ruff": (".py", ".pyi"), "gcc": (".c",)}

RUFF_ERRORS = ("E9", "F63", "F7", "F82")
"""Findings of ruff that are errors: broken syntax, comparisons that never hold, undefined names."""

_RULE = "^([A-Z]{1,8}[0-9]{0,4}|-W[a-z][a-z0-9+-]*(=[0-9]{1,9})?)$"
SCHEMA = parts.members(
    ["tool"],
    tool=parts.choice("The linter to run.", ("ruff", "gcc")),
    paths=parts.listed(
        "Files and folders; ruff reads .py and .pyi, gcc .c. Everything without it.",
        {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[^/-]"},
        64,
        1,
    ),
    select=parts.listed(
        "Rules of ruff (F, E501), or further warnings of gcc (-Wshadow).",
        {"type": "string", "maxLength": 64, "pattern": _RULE},
        64,
    ),
    max_warnings=parts.whole("More warnings than this fail; any number passes without it.", 0, 1_000_000),
    ignore_noqa=parts.flag("Comments that silence a finding do not count (ruff).", False),
    timeout_s=parts.TIMEOUT,
)


class Linter:
    """The validator `Linter`."""

    entry = ValidatorEntry(
        name="Linter",
        version=1,
        summary="Reports what ruff or gcc finds: severity, file, line, code.",
        schema=SCHEMA,
    )

    def measure(self, call: MeasureCall) -> Measurement:
        tool = str(call.options["tool"])
        path = launch.program(call, tool)
        if not path:
            return launch.unavailable(tool)
        files = _files(call.workspace, call.options.get("paths", ["."]), SUFFIXES[tool])
        if not files or len(files) > MAX_FILES:
            code, detail = (
                ("no_files", "no file to lint") if not files else ("too_many_files", str(len(files)))
            )
            return Measurement("checked", checks=(launch.check("files", False, code, detail),))
        build = _ruff if tool == "ruff" else _gcc
        outcome = launch.run(
            call,
            (path, *build(call), "--", *files) if tool == "ruff" else (path, *build(call), *files),
            timeout_s=call.options.get("timeout_s"),
            output_bytes=16 * MIB,
        )
        return launch.cut_short(outcome) or _judge(call, tool, outcome, len(files))


def _files(workspace: Path, paths: list[str], suffixes: tuple[str, ...]) -> list[str]:
    """Source files under the paths, sorted, relative with a leading `./`; of a folder those that the law lets
    be read. No link is followed."""
    found: set[str] = set()
    for path in paths:
        if (workspace / path).is_symlink():
            continue
        try:
            for entry in walk(workspace, path):
                if entry.name.endswith(suffixes) and entry.named_readable:
                    found.add(entry.whole)
                if len(found) > MAX_FILES:
                    break
        except NotADirectoryError:
            with beneath.locate(workspace, path) as place:
                found.add("/".join(place.parts))
        except UsageError:  # it is not there, or leads out of the workspace
            continue
    return [f"./{name}" for name in sorted(found)]


def _ruff(call: MeasureCall) -> list[str]:
    arguments = ["check", "--output-format=json", "--isolated", "--no-cache", "--quiet", "--no-fix"]
    chosen = [code for code in call.options.get("select", ()) if not code.startswith("-")]
    if chosen:
        arguments.append(f"--select={','.join(chosen)}")
    if call.options.get("ignore_noqa", False):
        arguments.append("--ignore-noqa")
    return arguments


def _gcc(call: MeasureCall) -> list[str]:
    flags = [flag for flag in call.options.get("select", ()) if flag.startswith("-W")]
    return ["-fsyntax-only", "-Wall", "-Wextra", *flags, "-fdiagnostics-format=json"]


def _judge(call: MeasureCall, tool: str, outcome: Outcome, files: int) -> Measurement:
    found = _ruff_findings(outcome) if tool == "ruff" else _gcc_findings(outcome)
    if found is None:
        detail = f"exit {outcome.exit}: {launch.tail(outcome.stderr.data)}"
        ran = launch.check("ran", False, "incomplete", detail)
        return Measurement("checked", checks=(ran,), wall_ms=outcome.wall_ms, cpu_ms=outcome.cpu_ms)
    errors = sum(item["severity"] == "error" for item in found)
    warnings = sum(item["severity"] == "warning" for item in found)
    checks = [
        launch.check("ran", True),
        launch.check("errors", errors == 0, "lint_error", f"{errors} errors"),
    ]
    most = call.options.get("max_warnings")
    if most is not None:
        detail = f"{warnings} warnings, at most {most}"
        checks.append(launch.check("warnings", warnings <= most, "too_many_warnings", detail))
    return Measurement(
        "checked",
        checks=tuple(checks),
        metrics={"errors": errors, "warnings": warnings, "files": files},
        diagnostics=tuple(found[:MAX_DIAGNOSTICS]),
        wall_ms=outcome.wall_ms,
        cpu_ms=outcome.cpu_ms,
    )


def _ruff_findings(outcome: Outcome) -> list[dict[str, Any]] | None:
    """The findings, or None when ruff did not do its work (exit 2) or what it wrote was cut."""
    if outcome.exit not in (0, 1) or outcome.status != "exited" or outcome.stdout.truncated:
        return None
    try:
        return [_ruff_finding(item) for item in json.loads(outcome.stdout.data or b"[]")]
    except (ValueError, KeyError, TypeError):
        return None


def _ruff_finding(item: dict[str, Any]) -> dict[str, Any]:
    code = item["code"] or "invalid-syntax"
    severe = code == "invalid-syntax" or code.startswith(RUFF_ERRORS)
    return {
        "severity": "error" if severe else "warning",
        "file": launch.relative(item["filename"]),
        "line": item["location"]["row"],
        "code": code,
        "message": item["message"],
    }


def _gcc_findings(outcome: Outcome) -> list[dict[str, Any]] | None:
    """The findings of every file, or None when gcc said something else than its JSON arrays."""
    if outcome.status != "exited" or outcome.stderr.truncated:
        return None
    found: list[dict[str, Any]] = []
    try:
        for item in _arrays(outcome.stderr.data.decode("utf-8", "replace")):
            place = item["locations"][0]["caret"] if item["locations"] else {}
            kind = item["kind"]
            severity = {"warning": "warning", "note": "info"}.get(kind, "error")
            found.append(
                {
                    "severity": severity,
                    "file": launch.relative(place.get("file", "")),
                    "line": place.get("line", 0),
                    "code": item.get("option", kind),
                    "message": item["message"],
                }
            )
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    failed = any(item["severity"] == "error" for item in found)
    return found if failed == (outcome.exit != 0) else None


def _arrays(text: str) -> Iterator[dict[str, Any]]:
    """The items of the JSON arrays that gcc writes, one line each, among other lines."""
    for line in text.splitlines():
        if line.startswith("["):
            yield from json.loads(line)
