"""`spak policy check|eval|why|why-not|verify FILE.mg...`: policies on their own, without a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spak.cli import common, policy_diff, policy_events

if TYPE_CHECKING:
    from spak.datalog import Policy, Session

F = TypeVar("F", bound=Callable[..., Any])
LEVELS = ("spec", "team", "operator")


@click.group()
def command() -> None:
    """Check policies, evaluate them, and ask why."""


command.add_command(policy_diff.command)
command.add_command(policy_events.test_command)


def _files(function: F) -> F:
    return click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))(function)


def _law(function: F) -> F:
    return click.option("--law", "with_law", is_flag=True, help="Also apply the law of new runs here.")(
        function
    )


def _query(function: F) -> F:
    asked = click.option("--query", required=True, metavar="ATOM", help="Such as 'permitted(/a)'.")
    place = click.option(
        "--workspace",
        type=click.Path(path_type=Path),
        help="The workspace that facts about files are taken from.",
    )
    return asked(place(function))


@command.command("check")
@_files
@click.option(
    "--as",
    "level",
    type=click.Choice(LEVELS),
    help="Whose text it is, under the law of new runs here. Without it: a policy of its own.",
)
@common.json_option
def check_command(files: tuple[Path, ...], level: str | None, as_json: bool) -> int:
    """Check that FILES are one policy that loads, by itself or at a level of the law. Exit 0, else 3."""
    from spak.datalog import PolicyError
    from spak.policy.stated import never_rows, of_runs, secrets_to_programs

    try:
        policy = _load(files) if level is None else at_level(_texts(files), level)
    except PolicyError as error:
        if not error.diagnostics:
            raise
        return _report(files, of_runs(error.diagnostics), None, as_json)
    ships = {file.name for file in _shipped()} if level else set()
    own = {clause.place.file for clause in policy.clauses} - ships
    told = (*policy.diagnostics, *never_rows(policy, own), *secrets_to_programs(policy, own))
    found = of_runs(item for item in told if item.place.file not in ships)
    return _report(files, found, policy, as_json)


@command.command("eval")
@_files
@_law
@click.option("--query", metavar="ATOM", help="Such as 'permitted(/a)'.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    help="The workspace that facts about files are taken from.",
)
@click.option("--events", type=click.Path(path_type=Path), help="A file of events; each request is answered.")
@click.option("--why", is_flag=True, help="With --events: the proof of each answer, or what is missing.")
@common.json_option
def eval_command(
    files: tuple[Path, ...],
    with_law: bool,
    query: str | None,
    workspace: Path | None,
    events: Path | None,
    why: bool,
    as_json: bool,
) -> int:
    """Print the rows that fit a query, or the answer to each request of a file of events."""
    from spak.errors import UsageError

    if (query is None) == (events is None) or (why and events is None):
        raise UsageError("usage.arguments", "give --query ATOM or --events FILE", "--why goes with --events")
    if events is not None:
        return policy_events.evaluate(_load(files, with_law), events, why, as_json)
    assert query is not None
    from spak.datalog import atom
    from spak.datalog.values import encode, show_atom, to_json

    pred, args = atom(query)
    policy, session = _session(files, with_law, workspace)
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
@_law
@_query
@common.json_option
def why_command(
    files: tuple[Path, ...], with_law: bool, query: str, workspace: Path | None, as_json: bool
) -> int:
    """Print the proof of the first row that fits a query; exit 1 when none does."""
    from spak.datalog import atom
    from spak.datalog.errors import NoProof

    pred, args = atom(query)
    _, session = _session(files, with_law, workspace)
    rows = [row for row in session.query(pred, *args) if len(row) == len(args)]
    if not rows:
        raise NoProof(f"{query} does not hold", "spak policy why-not shows what is missing")
    from spak.datalog.explain import prove

    proof = prove(session, pred, *rows[0])
    if as_json:
        common.emit(proof.to_json())
    else:
        common.out(proof.text())
    return 0


@command.command("why-not")
@_files
@_law
@_query
@common.json_option
def why_not_command(
    files: tuple[Path, ...], with_law: bool, query: str, workspace: Path | None, as_json: bool
) -> int:
    """Print what is missing for a query to hold, rule by rule, the shortest first."""
    from spak.datalog import atom

    pred, args = atom(query)
    _, session = _session(files, with_law, workspace)
    from spak.datalog.why_not import why_not

    found = why_not(session, pred, *args)
    if as_json:
        common.emit(found.to_json())
    else:
        common.out(found.text())
    return 0


@command.command("verify")
@click.argument("proof", type=click.Path(path_type=Path))
@_files
@_law
@common.json_option
def verify_command(proof: Path, files: tuple[Path, ...], with_law: bool, as_json: bool) -> int:
    """Check PROOF, as `why --json` printed it, against FILES without the engine. Exit 0, else 1."""
    import json

    from spak.datalog.errors import NoProof
    from spak.datalog.proof_checker import accepts
    from spak.errors import UsageError

    try:
        document = json.loads(common.read_input(proof))
    except (ValueError, RecursionError) as error:
        raise UsageError("usage.file", f"{proof} is not JSON", "give what `why --json` printed") from error
    policy = _load(files, with_law)
    if not accepts(policy, [], document):
        raise NoProof(f"{proof} is not a proof under these rules", "print it again: spak policy why --json")
    if as_json:
        common.emit({"policy": policy.hash, "root": document["root"], "ok": True})
    else:
        common.out(f"ok: {document['nodes'][-1]['text']}")
    return 0


def _texts(files: tuple[Path, ...]) -> dict[str, str]:
    return {str(file): common.read_text(file) for file in files}


def _load(files: tuple[Path, ...], with_law: bool = False) -> Policy:
    """One policy of the files, of which the law may be a part: facts stand in them too."""
    from spak import config
    from spak.datalog import load

    return load({**(config.law().sources if with_law else {}), **_texts(files)})


def at_level(texts: Mapping[str, str], level: str, operators: Mapping[str, str] | None = None) -> Policy:
    """The policy of a run with the texts of files at a level of the law, and further ones of the operator;
    those of the configuration stay. A file that ships and says what it says is there already."""
    from dataclasses import replace

    from spak import config
    from spak.policy.law import compiled

    law = config.law()
    law = replace(law, operator={**law.operator, **(operators or {})})
    texts = {name: text for name, text in texts.items() if law.shipped.get(Path(name).name) != text}
    if level == "spec":
        return compiled(
            law, "", {f"./{name}" if name in law.sources else name: texts[name] for name in texts}
        )
    short = Counter(Path(name).name for name in texts)
    own = {base if short[base := Path(name).name] == 1 else name: text for name, text in texts.items()}
    if level == "team":
        return compiled(replace(law, team=own), "", {})
    return compiled(replace(law, operator={**law.operator, **own}), "", {})


def _shipped() -> list[Path]:
    from spak import data

    return sorted(data.path("specs/policy").glob("*.mg"))


def _session(files: tuple[Path, ...], with_law: bool, workspace: Path | None) -> tuple[Policy, Session]:
    from spak.errors import UsageError
    from spak.tools.observe.predicates import knowing

    policy = _load(files, with_law)
    session = policy.session()
    if workspace is not None:
        if not workspace.is_dir():
            raise UsageError("usage.workspace", f"{workspace} is not a folder", "name an existing one")
        session.settle(knowing(workspace.resolve(), common.ours().predicates))
    return policy, session


def _report(files: tuple[Path, ...], findings: Any, policy: Policy | None, as_json: bool) -> int:
    """Findings, and the policy's hash where there is one; the exit code."""
    if as_json:
        document = {
            "files": [str(file) for file in files],
            "ok": policy is not None,
            "policy": None if policy is None else policy.hash,
            "diagnostics": [item.to_json() for item in findings],
            "folds": [] if policy is None else _folds(policy),
        }
        common.emit(document)
        return 3 if policy is None else 0
    for item in findings:
        common.say(item.text())
    if policy is None:
        common.say("next: fix what is marked as error and check again")
        return 3
    for fold in _folds(policy):
        common.say(f"fold {fold['name']}: {fold['kind']}, at most {fold['bytes']:,} bytes")
    common.say(f"ok: {len(policy.clauses)} clauses, {policy.hash}")
    return 0


def _folds(policy: Policy) -> list[dict[str, Any]]:
    """Each fold with the most bytes that its state can have."""
    from spak.policy.history.state import bound

    folds = sorted(policy.folds.values(), key=lambda fold: fold.name)
    return [{"name": fold.name, "kind": fold.kind, "bytes": bound(fold)} for fold in folds]
