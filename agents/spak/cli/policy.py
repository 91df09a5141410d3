"""`spak policy check|eval|why|why-not FILE.mg...`: policies on their own, without a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.policy import Policy, Session

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def command() -> None:
    """Check policies, evaluate them, and ask why."""


def _files(function: F) -> F:
    return click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))(function)


def _query(function: F) -> F:
    asked = click.option("--query", required=True, metavar="ATOM", help="Such as 'permitted(/a)'.")
    place = click.option(
        "--workspace",
        type=click.Path(path_type=Path),
        help="The folder that answers what the policy asks of the world.",
    )
    return asked(place(function))


@command.command("check")
@_files
@common.json_option
def check_command(files: tuple[Path, ...], as_json: bool) -> int:
    """Check that FILES are one policy that loads: 0, else 3."""
    from spak.policy import PolicyError

    try:
        policy = _load(files)
    except PolicyError as error:
        if error.code != "policy.invalid":
            raise
        return _report(files, error.diagnostics, None, as_json)
    return _report(files, policy.diagnostics, policy, as_json)


@command.command("eval")
@_files
@_query
@common.json_option
def eval_command(files: tuple[Path, ...], query: str, workspace: Path | None, as_json: bool) -> int:
    """Print the rows that fit a query; facts stand in FILES."""
    from spak.policy import atom
    from spak.policy.values import encode, show_atom, to_json

    pred, args = atom(query)
    policy, session = _session(files, workspace)
    rows = [tuple(encode(value) for value in row) for row in session.query(pred, *args)]
    rows = [row for row in rows if len(row) == len(args)]
    if as_json:
        shown = [[to_json(value) for value in row] for row in rows]
        common.emit({"query": query, "policy": policy.hash, "rows": shown})
    else:
        for row in rows:
            common.out(show_atom(pred, row))
        common.say(f"{len(rows)} row{'' if len(rows) == 1 else 's'}")
    return 0


@command.command("why")
@_files
@_query
@common.json_option
def why_command(files: tuple[Path, ...], query: str, workspace: Path | None, as_json: bool) -> int:
    """Print the proof of the first row that fits a query; exit 1 when none does."""
    from spak.policy import atom
    from spak.policy.errors import NoProof

    pred, args = atom(query)
    _, session = _session(files, workspace)
    rows = [row for row in session.query(pred, *args) if len(row) == len(args)]
    if not rows:
        raise NoProof(f"{query} does not hold", "spak policy why-not says what is missing")
    proof = session.proof(pred, *rows[0])
    if as_json:
        common.emit(proof.to_json())
    else:
        common.out(proof.text())
    return 0


@command.command("why-not")
@_files
@_query
@common.json_option
def why_not_command(files: tuple[Path, ...], query: str, workspace: Path | None, as_json: bool) -> int:
    """Print what is missing for a query to hold, rule by rule, the least first."""
    from spak.policy import atom

    pred, args = atom(query)
    _, session = _session(files, workspace)
    found = session.why_not(pred, *args)
    if as_json:
        common.emit(found.to_json())
    else:
        common.out(found.text())
    return 0


def _load(files: tuple[Path, ...]) -> Policy:
    from spak.errors import UsageError
    from spak.policy import load

    sources: dict[str, str] = {}
    for file in files:
        try:
            sources[str(file)] = common.read_input(file).decode()
        except UnicodeDecodeError as error:
            raise UsageError("usage.file", f"{file} is not UTF-8", "save it as UTF-8") from error
    return load(sources)


def _session(files: tuple[Path, ...], workspace: Path | None) -> tuple[Policy, Session]:
    from spak.errors import UsageError
    from spak.tools.world import knowing

    policy = _load(files)
    session = policy.session()
    if workspace is not None:
        if not workspace.is_dir():
            raise UsageError("usage.workspace", f"{workspace} is not a folder", "name an existing one")
        session.settle(knowing(workspace.resolve()))
    return policy, session


def _report(files: tuple[Path, ...], findings: Any, policy: Policy | None, as_json: bool) -> int:
    """Findings, and the policy's hash where there is one; the exit code."""
    if as_json:
        document = {
            "files": [str(file) for file in files],
            "ok": policy is not None,
            "policy": None if policy is None else policy.hash,
            "diagnostics": [item.to_json() for item in findings],
        }
        common.emit(document)
        return 3 if policy is None else 0
    for item in findings:
        common.say(item.text())
    if policy is None:
        common.say("next: mend what is marked as error and check again")
        return 3
    common.say(f"ok: {len(policy.clauses)} clauses, {policy.hash}")
    return 0
