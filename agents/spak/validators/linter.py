"""The Linter validator: what ruff or gcc finds in source files, as diagnostics.

Takes a tool and paths in the workspace; gives counts of errors and warnings as metrics and one diagnostic per
finding. Neither tool runs the code or reads the project's own configuration. A linter that found no file to
read has not passed. Comments that silence a finding count unless `ignore_noqa` is set (ruff); gcc obeys
pragmas in the source.
"""

from __future__ import annotations

from pathlib import Path

from spak import schema_parts as parts
from spak.diagnostics import SEVERE, Found, read
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import walk
from spak.lang.catalog import ValidatorEntry
from spak.ports import MIB, MeasureCall, Measurement, Outcome
from spak.validators import launch

MAX_FILES = 4000
SUFFIXES = {"ruff": (".py", ".pyi"), "gcc": (".c",)}

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
    found = _findings(tool, outcome)
    if found is None:
        detail = f"exit {outcome.exit}: {launch.tail(outcome.stderr.data)}"
        ran = launch.check("ran", False, "incomplete", detail)
        return Measurement("checked", checks=(ran,), wall_ms=outcome.wall_ms, cpu_ms=outcome.cpu_ms)
    errors = sum(item["severity"] in SEVERE for item in found)
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
        diagnostics=tuple(found),
        wall_ms=outcome.wall_ms,
        cpu_ms=outcome.cpu_ms,
    )


def _findings(tool: str, outcome: Outcome) -> list[Found] | None:
    """What it said, or None when it did not do its work, or what it wrote was cut."""
    stdout, stderr = outcome.stdout, outcome.stderr
    if outcome.status != "exited" or stdout.truncated or stderr.truncated:
        return None
    found = read(tool, stdout.data, stderr.data)
    if tool == "ruff":
        return found if outcome.exit in (0, 1) else None
    failed = any(item["severity"] in SEVERE for item in found or ())
    return found if failed == (outcome.exit != 0) else None
