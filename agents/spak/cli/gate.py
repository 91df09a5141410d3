"""`spak gate < actions.jsonl`: judge actions without doing them, one JSON line in, one out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from spak.cli import common
from spak.errors import UsageError, UserError

if TYPE_CHECKING:
    from spak.datalog import Policy
    from spak.datalog.externals import Answers
    from spak.policy.actions import World


@click.command()
@click.option(
    "--allow-program",
    "programs",
    multiple=True,
    metavar="A,B",
    help="Programs that a line may run, whatever the workspace says.",
)
@click.option(
    "--ask-as",
    type=click.Choice(["ask", "deny"]),
    default="ask",
    help="What is printed where a person should be asked.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A policy file; may be repeated. Without one: the law of new runs here.",
)
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The workspace that paths are in (the current folder).",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="A,B",
    help="Hosts that http_request may reach (https, default port).",
)
def command(
    policies: tuple[Path, ...],
    workspace: Path,
    hosts: tuple[str, ...],
    programs: tuple[str, ...],
    ask_as: str,
) -> int:
    """Judge the actions on standard input: allow, ask or deny. Exit 0 if every line was judged."""
    from spak.policy.actions import MAX_LINE, id_of, read_action
    from spak.policy.judge import denied, judge

    policy = _policy(policies, _named(programs))
    world, answers = _world(workspace, hosts)
    for line in _lines(sys.stdin.buffer, MAX_LINE * 4):
        try:
            name, action = read_action(line)
            decision = judge(policy, action, world, answers=answers)
        except UserError as error:
            name = id_of(line)
            decision = denied(error.code, error.message, error.hint)
        found = decision.to_json()
        if found["decision"] == "ask":
            found["decision"] = ask_as
        click.echo(json.dumps({"id": name, **found}))
        sys.stdout.flush()
    return 0


def _named(groups: tuple[str, ...]) -> list[str]:
    """The names of an option that takes several, each once."""
    names = (name.strip() for group in groups for name in group.split(","))
    return list(dict.fromkeys(name for name in names if name))


def _policy(files: tuple[Path, ...], programs: list[str]) -> Policy:
    """The policy of the files, or the shipped law with the operator's; with the programs that were named."""
    from spak import config
    from spak.datalog import load
    from spak.policy.law import compiled

    rows = "".join(f"allowed_program({json.dumps(name, ensure_ascii=False)}).\n" for name in programs)
    if not files:
        law = config.law()
        given = {"allow-program": rows} if rows else {}
        return compiled(replace(law, operator={**law.operator, **given}), "", {})
    texts = {str(file): common.read_input(file).decode("utf-8", "replace") for file in files}
    return load({**texts, **({"--allow-program": rows} if rows else {})})


def _world(workspace: Path, hosts: tuple[str, ...]) -> tuple[World, Answers]:
    """What is seen where paths lead, and what the policy may ask of the workspace's code."""
    from spak.policy.actions import World
    from spak.tools import DECLARED
    from spak.tools.observe.code import knowing
    from spak.tools.observe.paths import Observer

    if not workspace.is_dir():
        raise UsageError("usage.workspace", f"{workspace} is not a folder", "name an existing one")
    root = workspace.resolve()
    eyes = Observer(root)
    known = frozenset(host.lower() for host in _named(hosts))
    world = World(
        eyes.look,
        eyes.spread,
        eyes.read,
        known,
        below=eyes.below,
        declared=DECLARED,
    )
    return world, knowing(root)


def _lines(stream: BinaryIO, limit: int) -> Iterator[str]:
    """The lines; of one beyond the limit its beginning, the rest passed over. Empty lines are no actions."""
    while raw := stream.readline(limit):
        whole = raw.endswith(b"\n") or len(raw) < limit
        while not whole:
            more = stream.readline(limit)
            whole = more.endswith(b"\n") or len(more) < limit
        if raw.strip():
            yield raw.decode("utf-8", "replace")
