"""`spak gate < actions.jsonl`: judge actions without doing them, one JSON line in, one out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
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
def command(policies: tuple[Path, ...], workspace: Path, hosts: tuple[str, ...]) -> int:
    """Judge the actions on standard input. Exit 0 if every line was judged, also if denied."""
    from spak.policy.actions import MAX_LINE, id_of, read_action
    from spak.policy.judge import denied, judge

    policy = _policy(policies)
    world, answers = _world(workspace, hosts)
    for line in _lines(sys.stdin.buffer, MAX_LINE * 4):
        try:
            name, action = read_action(line)
            decision = judge(policy, action, world, answers=answers)
        except UserError as error:
            name = id_of(line)
            decision = denied(error.code, error.message, error.hint)
        click.echo(json.dumps({"id": name, **decision.to_json()}))
        sys.stdout.flush()
    return 0


def _policy(files: tuple[Path, ...]) -> Policy:
    """The policy of the files, or the shipped law with the operator's."""
    from spak import config
    from spak.datalog import load
    from spak.policy.law import compiled

    if not files:
        return compiled(config.law(), "", {})
    return load({str(file): common.read_input(file).decode("utf-8", "replace") for file in files})


def _world(workspace: Path, hosts: tuple[str, ...]) -> tuple[World, Answers]:
    """What is seen where paths lead, and what the policy may ask of the workspace's code."""
    from spak import config
    from spak.policy.actions import World
    from spak.tools import DECLARED
    from spak.tools.observe.code import knowing
    from spak.tools.observe.paths import Observer

    if not workspace.is_dir():
        raise UsageError("usage.workspace", f"{workspace} is not a folder", "name an existing one")
    root = workspace.resolve()
    eyes = Observer(root)
    named = (host.strip().lower() for group in hosts for host in group.split(","))
    known = frozenset(host for host in named if host)
    world = World(
        eyes.look,
        eyes.spread,
        eyes.read,
        known,
        below=eyes.below,
        members=eyes.members,
        commands=config.law().commands,
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
