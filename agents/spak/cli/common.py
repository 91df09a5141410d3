"""What all verbs share: options, output, errors, the choice of a run.

With --json exactly one document goes to standard output; everything for people goes to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from spak.errors import SpakError, UsageError

F = TypeVar("F", bound=Callable[..., Any])

EXIT = {"succeeded": 0, "failed": 1, "refused": 5, "waiting": 4, "cancelled": 6, "paused": 6, "running": 6}
"""Exit code of a run by the state in which a command leaves it."""


def json_option(function: F) -> F:
    """--json, kept in the context so that errors know of it."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")(
        function
    )


def runs_option(function: F) -> F:
    return click.option(
        "--runs-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where runs are kept (.spak/runs).",
    )(function)


def emit(document: Any) -> None:
    """Print the one JSON document."""
    import json

    click.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def say(text: str = "") -> None:
    """A line for people."""
    click.echo(text, err=True)


def guarded(group: click.Group) -> int:
    """Run the command line; every error ends as a sentence and an exit code."""
    as_json = "--json" in sys.argv[1:]
    try:
        code = group.main(standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _fail(as_json, "usage.arguments", error.format_message(), _try(error), 2, error)
    except click.Abort:
        return _fail(as_json, "run.interrupted", "interrupted", "spak resume goes on", 6)
    except KeyboardInterrupt:
        return _fail(as_json, "run.interrupted", "interrupted", "spak resume goes on", 6)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  (outlives this function)
        return 1
    except SpakError as error:
        return _fail(as_json, error.code, error.message, error.hint, error.exit_code, error)
    except RecursionError:
        return _fail(as_json, "usage.input", "the input is nested too deep", "", 2)
    except OSError as error:
        return _fail(
            as_json, "usage.file", f"{error.strerror}: {error.filename}", "check the path and its rights", 2
        )


def runs_dir(given: Path | None) -> Path:
    """Where runs live: the flag, else spak.toml and the environment."""
    from spak import config

    return given if given is not None else config.settings().runs_dir


def find_run(selector: str, given: Path | None) -> tuple[Path, str]:
    """The runs folder and the id of a run: an id, a unique prefix, a run folder, or `latest`.

    Raises: UsageError `usage.run`.
    """
    from spak.ledger.files import FileLedgers

    folder = Path(selector)
    if folder.joinpath("trace.jsonl").is_file():
        return folder.resolve().parent, folder.resolve().name
    root = runs_dir(given)
    known = FileLedgers(root).runs()
    if not known:
        raise UsageError("usage.run", f"there are no runs in {root}", "start one: spak run FILE")
    if selector == "latest":
        return root, known[-1]
    found = [name for name in known if name.startswith(selector)]
    if selector in known:
        found = [selector]
    if len(found) == 1:
        return root, found[0]
    problem = f"no run starts with {selector!r}" if not found else f"{selector!r} fits {len(found)} runs"
    raise UsageError("usage.run", problem, "spak runs lists them")


def read_text(path: Path) -> bytes:
    """The bytes of an input file. Raises: UsageError `usage.file`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            "usage.file", f"{path}: {error.strerror}", "check the path and its rights"
        ) from error


def _try(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"try: {context.command_path} --help" if context is not None else "try: spak --help"


def _fail(
    as_json: bool, code: str, message: str, hint: str, exit_code: int, error: Exception | None = None
) -> int:
    diagnostics = getattr(error, "diagnostics", ())
    if as_json:
        document: dict[str, Any] = {"error": {"code": code, "message": message, "hint": hint}}
        if diagnostics:
            document["diagnostics"] = [item.to_json() for item in diagnostics]
        emit(document)
    say(f"spak: {message} [{code}]")
    if hint:
        say(f"  hint: {hint}")
    return exit_code


def run_id() -> str:
    """A new run's name: sortable by time, unique by chance."""
    import secrets
    import time

    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(3)
