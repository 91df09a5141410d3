"""What all verbs share: options, output, errors, the choice of a run.

With --json exactly one document goes to standard output; everything for people goes to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click
from click.core import ParameterSource

from spak import unseen
from spak.errors import SpakError, UsageError
from spak.inputs import read_at_most

if TYPE_CHECKING:
    from spak.lang import Diagnostic
    from spak.lang.catalog import Catalog
    from spak.lang.imports import Resolved
    from spak.runner import Own

F = TypeVar("F", bound=Callable[..., Any])

MAX_INPUT = 16 << 20
"""Bytes of an input file; what is larger is no spec, answer or artifact."""

EXIT = {"succeeded": 0, "failed": 1, "refused": 5, "waiting": 4, "cancelled": 6, "paused": 6, "running": 6}
"""Exit code of a run by the state in which a command leaves it."""


def progress_option(function: F) -> F:
    """`--progress/--no-progress`, None where neither is given."""
    words = "Show candidates, the best so far and what is under way; the default without --json."
    return click.option("--progress/--no-progress", default=None, help=words)(function)


def json_option(function: F) -> F:
    """--json, kept in the context so that errors know of it."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")(
        function
    )


def runs_option(function: F) -> F:
    """The option `--runs-dir` of commands that read or make runs."""
    return click.option(
        "--runs-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where runs are kept (.spak/runs).",
    )(function)


def from_option(function: F) -> F:
    """The option `--from RUN` of commands that answer from a recording."""
    return click.option(
        "--from",
        "recorded",
        metavar="RUN",
        help="Answer as in RUN, a run or a file of answers: the backend `recorded` with them.",
    )(function)


def backend_of(backend: str, recorded: str | None) -> str:
    """The backend of a run. Raises: UsageError when another one than `recorded` is to answer as in a run."""
    if recorded is None:
        from spak.lang.catalog import backend_name

        return backend_name(backend)
    if backend not in ("", "recorded"):
        raise UsageError("usage.arguments", f"--from and --backend {backend}", "leave one of them out")
    return "recorded"


def timeout_option(function: F) -> F:
    """The option `--timeout S` of commands that advance a run."""
    return click.option(
        "--timeout",
        type=Seconds(),
        metavar="S",
        help="Stop advancing after S seconds; the run can be resumed.",
    )(function)


def extend_option(function: F) -> F:
    """The option `--extend NAME=N` of commands that take a run up."""
    return click.option(
        "--extend",
        "extensions",
        multiple=True,
        type=Extension(),
        metavar="NAME=N",
        help="Add N to a budget before it is used up: steps, elapsed_s, tokens or cost.",
    )(function)


class Extension(click.ParamType[tuple[str, int]]):
    """`NAME=N` as the kernel's budget and number."""

    name = "extension"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Fails for another budget, and for what is not a whole number above 0."""
        name, _, number = value.partition("=")
        if name not in ("steps", "elapsed_s", "tokens", "cost"):
            self.fail(f"{value!r} names no budget: steps=N, elapsed_s=N, tokens=N or cost=N", param, ctx)
        if not (number.isascii() and number.isdigit() and len(number) < 16 and int(number)):
            self.fail(f"{value!r} has no whole number above 0", param, ctx)
        return ("elapsed_ms", int(number) * 1000) if name == "elapsed_s" else (name, int(number))


class Seconds(click.FloatRange):
    """Seconds from 0 to a year: what a timer can be set to."""

    def __init__(self) -> None:
        super().__init__(min=0, max=366 * 86400)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; NaN, which `float` reads, is refused."""
        seconds = super().convert(value, param, ctx)
        return (
            self.fail(f"{value} is not a number of seconds.", param, ctx) if seconds != seconds else seconds
        )


def emit(document: Any) -> None:
    """Print the one JSON document."""
    import json

    text = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    try:
        data = unseen.in_json(text).encode()
    except UnicodeEncodeError:  # a file name that is not UTF-8
        data = json.dumps(document, indent=2, default=str).encode()
    click.echo(data)


def output() -> BinaryIO:
    """Standard output for bytes; where the caller has closed it, nowhere."""
    return open(os.devnull, "wb") if sys.stdout is None else sys.stdout.buffer  # noqa: PTH123


def errors() -> BinaryIO:
    """Standard error for bytes; where the caller has closed it, nowhere."""
    return open(os.devnull, "wb") if sys.stderr is None else sys.stderr.buffer  # noqa: PTH123


def say(text: str = "") -> None:
    """A line for people."""
    click.echo(printable(text), err=True)


def out(text: str, nl: bool = True) -> None:
    """Text on standard output: exact for a file or a pipe, harmless on a terminal."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    click.echo(printable(text) if terminal else text, nl=nl)


def printable(text: str) -> str:
    """The text with every character written out that a terminal would obey or nobody would see: others
    made it."""
    return unseen.written_out(text)


def guarded(group: click.Group) -> int:
    """Run the command line; every error ends as a sentence and an exit code."""
    arguments = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    as_json = "--json" in arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name may hold any bytes
    try:
        code = group.main(prog_name="spak", standalone_mode=False)
        if sys.stdout is not None:  # closed by the caller: nobody wants to hear
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        hint = "spak --help lists the commands"
        return _fail(True, "usage.arguments", "no command", hint, 2) if as_json else _help(error)
    except click.ClickException as error:
        return _fail(as_json, "usage.arguments", error.format_message(), _try(error), 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail(as_json, "run.interrupted", "interrupted", "spak resume continues it", 6)
    except SpakError as error:
        return _fail(as_json, error.code, error.message, error.hint, error.exit_code, error)
    except RecursionError:
        return _fail(as_json, "usage.input", "the input is nested too deep", "make it flatter", 2)
    except BrokenPipeError:
        _give_up_output()
        return 1
    except OSError as error:
        _give_up_output()  # it may be standard output itself that is full
        named = f": {error.filename}" if error.filename is not None else ""
        message = f"{error.strerror or error}{named}"
        return _fail(as_json, "usage.file", message, "check the path, its rights and the space", 2)
    except Exception as error:
        if os.environ.get("SPAK_TRACEBACK"):
            raise
        message = f"{type(error).__name__}: {error}"
        return _fail(as_json, "bug.unexpected", message, "please report it; SPAK_TRACEBACK=1 shows where", 70)


def runs_dir(given: Path | None) -> Path:
    """Where runs live: the flag, else spak.toml and the environment."""
    from spak import config
    from spak.ledger.private import close

    root = given if given is not None else config.settings().runs_dir
    close(root)
    return root


def catalog() -> Catalog:
    """All that a spec may name on the command line, the operator's own included. Raises: as `own.own`."""
    from spak import config

    return config.catalog(ours())


def ours() -> Own:
    """What the settings add to what ships. Raises: as `own.own`."""
    from spak import config
    from spak.mcp.pins import LOCK
    from spak.runner import SHIPPED

    chosen = config.settings()
    if not chosen.tools and not chosen.packages and not Path(LOCK).is_file():
        return SHIPPED
    from spak.own import own

    return own(chosen)


def whole_spec(path: Path) -> Resolved:
    """A spec's file with its imports; its errors are shown.

    Raises: UsageError `usage.file`; SpecError `lang.invalid` where no run could begin with it.
    """
    from spak.errors import SpecError
    from spak.lang import check, parse
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader

    whole = resolve(parse(read_input(path), str(path)), folder_reader(path))
    found = check(whole.parsed, catalog())
    if errors := [item for item in found if item.severity == "error"]:
        show_diagnostics(errors, whole.parsed.text, str(path), whole.texts)
        count = f"{len(errors)} error{'' if len(errors) == 1 else 's'}"
        raise SpecError("lang.invalid", f"{path} has {count}", f"spak check {path}", found)
    return whole


def fixed_by_plan(*names: str) -> None:
    """Refuse these arguments of a command that was told to --resume: what it goes on with has them already.

    Raises: UsageError `usage.arguments`.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in names and context.params[name] not in (None, (), ""):
            if context.get_parameter_source(name) != ParameterSource.COMMANDLINE:
                continue
            word = parameter.opts[0] if isinstance(parameter, click.Option) else "SPEC"
            raise UsageError(
                "usage.arguments", f"--resume takes no {word}: it goes on as it was planned", "leave it out"
            )


def find_run(selector: str, given: Path | None) -> tuple[Path, str]:
    """The runs folder and the id of a run: an id, a unique prefix, a run folder, or `latest`.

    Raises: UsageError `usage.run`.
    """
    from spak.ledger.files import FileLedgers

    folder = Path(selector)
    if selector and os.path.lexists(folder / "trace.jsonl"):
        return folder.resolve().parent, folder.resolve().name
    if "/" in selector and folder.is_dir():
        raise UsageError("usage.run", f"{selector} holds no run", "a run's folder holds trace.jsonl")
    root = runs_dir(given)
    known = FileLedgers(root).runs()
    if not known:
        raise UsageError("usage.run", f"there are no runs in {root}", "start one: spak run FILE")
    if selector == "latest":
        return root, known[-1]
    found = [name for name in known if selector and name.startswith(selector)]
    if selector in known:
        found = [selector]
    if len(found) == 1:
        return root, found[0]
    problem = f"no run starts with {selector!r}" if not found else f"{selector!r} fits {len(found)} runs"
    raise UsageError("usage.run", problem, "spak runs lists them")


def read_input(path: Path, limit: int = MAX_INPUT) -> bytes:
    """The bytes of an input file, at most `limit`. Raises: UsageError `usage.file`."""
    try:
        data = read_at_most(path, limit)
    except OSError as error:
        raise UsageError(
            "usage.file", f"{path}: {error.strerror}", "check the path and its rights"
        ) from error
    if data is None:
        raise UsageError("usage.file", f"{path} is larger than {limit} bytes", "name a smaller file")
    return data


def read_text(path: Path) -> str:
    """The text of an input file. Raises: UsageError `usage.file`, for a file that is not UTF-8 too."""
    return decoded(read_input(path), path)


def decoded(data: bytes, path: Path) -> str:
    """The text of bytes that were read from `path`. Raises: UsageError `usage.file`."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError("usage.file", f"{path} is not UTF-8", "save it as UTF-8") from error


def show_diagnostics(
    found: Iterable[Diagnostic], text: str, name: str, texts: Mapping[str, str] | None = None
) -> None:
    """Each finding with its line and a caret, for people; `texts` has those of imported files."""
    from spak.lang import render

    for item in found:
        say(render(item, (texts or {}).get(item.file, text), item.file or name))


def _give_up_output() -> None:
    """Where standard output cannot be written (gone, full), its buffer must not complain at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _help(error: click.ClickException) -> int:
    say(error.format_message())
    return 2


def _try(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"try: {context.command_path} --help" if context is not None else "try: spak --help"


def _fail(
    as_json: bool, code: str, message: str, hint: str, exit_code: int, error: Exception | None = None
) -> int:
    diagnostics = getattr(error, "diagnostics", ())
    run = getattr(error, "run", "")
    if as_json:
        document: dict[str, Any] = {"error": {"code": code, "message": message, "hint": hint}}
        if run:
            document["run"] = run
        if diagnostics:
            document["diagnostics"] = [item.to_json() for item in diagnostics]
        try:
            emit(document)
        except OSError:  # then the sentence on standard error has to do
            _give_up_output()
    say(f"spak: {message} [{code}]")
    if hint:
        say(f"  hint: {hint}")
    if run:
        say(f"  then: spak resume {run}")
    return exit_code


def run_id() -> str:
    """A new run's name: sortable by time to the millisecond, unique by chance."""
    import secrets
    import time

    now = time.time_ns() // 1_000_000
    second = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now // 1000))
    return f"{second}-{now % 1000:03x}{secrets.randbits(20):05x}"
