"""`spak gate < actions.jsonl`: judge actions without doing them, one JSON line in, one out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from spak.cli import common
from spak.cli.policy import LEVELS, at_level
from spak.errors import UsageError, UserError

if TYPE_CHECKING:
    from spak.datalog import Policy
    from spak.datalog.externals import Answers
    from spak.datalog.values import Fact
    from spak.policy.actions import Action, World
    from spak.policy.judge import Decision


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
    help="Rules in addition to the law of new runs here; may be repeated.",
)
@click.option("--policy-only", is_flag=True, help="Judge by the files of --policy alone, without the law.")
@click.option(
    "--as",
    "level",
    type=click.Choice(LEVELS),
    help="Whose rules the files of --policy are (operator): a lower level may say less.",
)
@click.option("--task", metavar="NAME", help="Judge as in this TASK of a run: in_task(NAME).")
@click.option(
    "--sandbox",
    metavar="LAUNCHER",
    help="Judge tools as in this sandbox of a run, such as restricted: sandboxed(A, LAUNCHER).",
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
    policy_only: bool,
    level: str | None,
    task: str | None,
    sandbox: str | None,
    workspace: Path,
    hosts: tuple[str, ...],
    programs: tuple[str, ...],
    ask_as: str,
) -> int:
    """Judge the actions on standard input: allow, ask or deny. Exit 0 if every line was judged."""
    from spak.policy.actions import MAX_LINE, id_of, read_action
    from spak.policy.judge import denied, judge

    if ((policy_only or level) and not policies) or (policy_only and level):
        hint = "--policy-only leaves out the law, --as says at which of its levels the files are"
        raise UsageError("usage.arguments", "give --policy FILE and one of --policy-only and --as", hint)
    policy = _policy(policies, _named(programs), "" if policy_only else level or "operator")
    known = around(policy, task, sandbox)
    eyes, answers = world(workspace, hosts)
    for line in _lines(sys.stdin.buffer, MAX_LINE * 4):
        try:
            name, action = read_action(line)
            decision = judge(policy, action, eyes, known(action.tool), answers)
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


def _policy(files: tuple[Path, ...], programs: list[str], level: str) -> Policy:
    """The law with the files at a level of it, or the files alone where there is none; with the programs that
    were named."""
    from spak.datalog import load

    rows = "".join(f"allowed_program({json.dumps(name, ensure_ascii=False)}).\n" for name in programs)
    texts = {str(file): common.read_input(file).decode("utf-8", "replace") for file in files}
    named = {"--allow-program": rows} if rows else {}
    if not level:
        return load({**texts, **named})
    if level == "operator":
        return at_level({**texts, **named}, level)
    return at_level(texts, level, named)


def around(policy: Policy, task: str | None, sandbox: str | None) -> Callable[[str], list[Fact]]:
    """The facts of a run around a call of a tool, as far as the policy reads them.

    Raises: UsageError `usage.arguments`.
    """
    from spak.config import RANKS
    from spak.datalog.values import Name
    from spak.policy.facts import ACTION

    launcher = (sandbox or "").lower()
    if launcher and launcher.upper() not in RANKS:
        hint = f"one of {', '.join(sorted(RANKS)).lower()}"
        raise UsageError("usage.arguments", f"there is no sandbox {sandbox}", hint)
    tools = common.catalog()

    def facts(tool: str) -> list[Fact]:
        entry = tools.tool(tool)
        found: list[Fact] = [("in_task", (task,))] if task else []
        if launcher and entry is not None:
            found.append(("sandboxed", (ACTION, Name(f"/{launcher if entry.sandboxed else 'none'}"))))
        return [fact for fact in found if (fact[0], len(fact[1])) in policy.predicates]

    return facts


def world(workspace: Path, hosts: tuple[str, ...]) -> tuple[World, Answers]:
    """What is seen where paths lead, and what the policy may ask of the workspace's code."""
    from spak.policy.actions import World
    from spak.tools import DECLARED
    from spak.tools.observe.paths import Observer
    from spak.tools.observe.predicates import knowing

    if not workspace.is_dir():
        raise UsageError("usage.workspace", f"{workspace} is not a folder", "name an existing one")
    root, ours = workspace.resolve(), common.ours()
    eyes = Observer(root)
    known = frozenset(host.lower() for host in _named(hosts))
    seen = World(
        eyes.look,
        eyes.spread,
        eyes.read,
        known,
        below=eyes.below,
        declared={**DECLARED, **{name: tool.entry.arguments for name, tool in ours.tools.items()}},
    )
    return seen, knowing(root, ours.predicates)


def judge_of(policy: Policy, project: Path) -> Callable[[Action], Decision]:
    """What judges actions in a folder by this law, without a proof."""
    from spak.policy.judge import judge

    (eyes, answers), known = world(project, ()), around(policy, None, None)
    return lambda action: judge(policy, action, eyes, known(action.tool), answers, explain=False)


def _lines(stream: BinaryIO, limit: int) -> Iterator[str]:
    """The lines; of one beyond the limit its beginning, the rest passed over. Empty lines are no actions."""
    while raw := stream.readline(limit):
        whole = raw.endswith(b"\n") or len(raw) < limit
        while not whole:
            more = stream.readline(limit)
            whole = more.endswith(b"\n") or len(more) < limit
        if raw.strip():
            yield raw.decode("utf-8", "replace")
