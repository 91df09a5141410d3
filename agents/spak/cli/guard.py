"""`spak guard -- AGENT ARGS`: a coding agent that people already use, behind the walls, as one run.

And the verbs beside it: `spak guard VERB`, each of a module of its own.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common
from spak.errors import UsageError, UserError
from spak.guard import TASK

if TYPE_CHECKING:
    from spak.cli.guard_home import Home
    from spak.cli.guard_server import Link, Reporting
    from spak.cli.session import Session as Held
    from spak.config import Settings
    from spak.guard.inside import Agent
    from spak.guard.proxy import Provider, Upstream
    from spak.guard.session import Session

SPEC = "specs/guard/guest.spak"
_SESSION = "agent"
"""The name of the verb that nobody writes."""
VERBS: dict[str, str] = {
    "asks": "spak.cli.guard_people:asks_command",
    "answer": "spak.cli.guard_people:answer_command",
    "back": "spak.cli.guard_people:back_command",
    "doctor": "spak.cli.guard_doctor",
    "hooks": "spak.cli.guard_hooks",
    "replay": "spak.cli.guard_replay",
    "report": "spak.cli.guard_report",
    "spec": "spak.cli.guard_spec",
}
"""Verb of `spak guard` to the module with its `command`, or another name in it."""


class _Verbs(click.Group):
    """A verb, or else an agent's command line, which `--` begins where it is named like a verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == _SESSION:
            return session_command
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name].partition(":")
        command = getattr(import_module(module), name or "command")
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asked = not args or args[0] in (*VERBS, "-h", "--help")
        return super().parse_args(ctx, args if asked else [_SESSION, *args])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        shown = [one for one in session_command.params if isinstance(one, click.Option)]
        return [*shown, *super().get_params(ctx)]


@click.group(cls=_Verbs, subcommand_metavar="[VERB | -- AGENT] [ARGS]...")
def command(**_: object) -> None:
    """Run AGENT in the sandbox, in a copy of the folder, without any network but its model's.

    What it changes is kept as transactions of one run and judged by the law; the folder itself changes by
    spak apply. The keys stay outside: ANTHROPIC_API_KEY and OPENAI_API_KEY are put in by the guard."""


@click.command(_SESSION, context_settings={"allow_interspersed_args": False})
@click.option(
    "--workspace", "folder", type=click.Path(path_type=Path), default=Path(), show_default=True,
    help="The folder of the project; the agent works in a copy.",
)  # fmt: skip
@click.option(
    "--show", "binds", multiple=True, type=click.Path(path_type=Path, exists=True), metavar="PATH",
    help="A file or folder that the agent needs, shown read-only; repeat for more.",
)  # fmt: skip
@click.option(
    "--wait", type=click.FloatRange(0, 3600), default=20, show_default=True, metavar="S",
    help="Seconds that a call of the agent waits for a person, before it is told to go on meanwhile.",
)  # fmt: skip
@click.option(
    "--policy", "policies", multiple=True, type=click.Path(path_type=Path), metavar="F",
    help="Rules of this session besides the law; repeat for more. They lift no prohibition.",
)  # fmt: skip
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="A,B",
    help="Hosts that the agent may open tunnels to: HOST at port 443, or HOST:PORT.",
)  # fmt: skip
@click.option(
    "--workspace-mode", "mode", type=click.Choice(["copy", "tools"]), default="copy", show_default=True,
    help="tools: the agent sees an empty folder, and the files by our tools only.",
)  # fmt: skip
@click.option(
    "--follow", is_flag=True, help="Bring ordinary changes into the folder at the end of each turn."
)
@click.option(
    "--mcp", "servers", multiple=True, metavar="NAME",
    help="Offer the agent the approved tools of an MCP server (spak mcp add); repeat for more.",
)  # fmt: skip
@click.option("--server", metavar="URL", help="Report the session to a platform, under its team's law.")
@click.option("--team", default="", metavar="TEAM", help="With --server: its team.")
@click.option(
    "--resume", "resumed", metavar="RUN",
    help="Go on with the session of RUN, whose guard was killed: its files, law and budgets.",
)  # fmt: skip
@common.runs_option
@common.json_option
@click.argument("argv", nargs=-1, required=True, metavar="-- AGENT [ARGS]...")
def session_command(
    folder: Path,
    binds: tuple[Path, ...],
    policies: tuple[Path, ...],
    hosts: tuple[str, ...],
    wait: float,
    mode: str,
    follow: bool,
    servers: tuple[str, ...],
    server: str | None,
    team: str,
    resumed: str | None,
    runs_dir: Path | None,
    as_json: bool,
    argv: tuple[str, ...],
) -> int:
    """The session itself."""
    from spak.cli.guard_server import linked

    if resumed is not None and (policies or hosts or servers or server or follow or mode != "copy"):
        what = "--resume goes on with the law and the tools that the session began with, and works as it did"
        hint = "leave out --policy, --allow-host, --mcp, --follow, --workspace-mode and --server"
        raise UsageError("usage.arguments", what, hint)
    with linked(server, team) as link:
        labels = {"agent": Path(argv[0]).name} | ({"workspace": mode} if mode != "copy" else {})
        begun = partial(_begun, link, folder, follow, (policies, hosts), servers, labels)
        return _session(link, begun, binds, wait, resumed, runs_dir, as_json, argv)


def _session(
    link: Link | None,
    begin: Callable[[Path], Held],
    binds: tuple[Path, ...],
    wait: float,
    resumed: str | None,
    runs_dir: Path | None,
    as_json: bool,
    argv: tuple[str, ...],
) -> int:
    from spak import config
    from spak.cli import guard_place
    from spak.cli.guard_home import following
    from spak.cli.guard_server import reporting
    from spak.guard import inside
    from spak.guard.proxy import upstreams

    chosen = config.settings()
    models = upstreams(os.environ, config.secrets_of(chosen), Path(argv[0]).name)
    inside.found(argv[0])
    begun = None if resumed is None else common.find_run(resumed, runs_dir)
    root = common.runs_dir(runs_dir) if begun is None else begun[0]
    _shown(binds, root)
    held = begin(root) if begun is None else _resumed(*begun)
    name = held.run.ledger.run
    try:
        if held.copied is not None:
            common.say(f"spak: {held.copied.line}")
        empty, rule = guard_place.by_tools(held)
        common.say(f"spak: run {name}; {guard_place.words(empty, rule)}")
        with (
            reporting(link, held, quiet=_terminal(as_json)) as reports,
            following(held, quiet=as_json) as home,
        ):
            if held.run.state.r0.task == TASK:
                code = _guarded(held, argv, binds, wait, chosen, models, as_json, (reports, home), empty)
            else:
                code = _finished(held)
            held.run.cancel()  # what was stopped is over: its agent is gone
            seen = held.save()
    finally:
        held.close()
    if as_json:
        common.emit({**seen.to_json(), "agent_exit": code, **(home.said() if home is not None else {})})
    else:
        done = seen.state == "succeeded"
        common.say(f"spak: {'the agent ended with ' + str(code) if done else seen.state}; spak show {name}")
        if home is None or home.waits:
            common.say(f"next: spak apply {name}")
    return code if seen.state == "succeeded" else common.EXIT[seen.state]


def _begun(
    link: Link | None, folder: Path, follow: bool, asked: tuple[tuple[Path, ...], tuple[str, ...]],
    servers: Sequence[str], labels: Mapping[str, str], root: Path,
) -> Held:  # fmt: skip
    """A new session. Raises: UsageError `usage.workspace`; as `guard_law.law`, `guard_tools.offered`."""
    from spak import data
    from spak.cli import guard_law, guard_tools, session

    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name the project's folder")
    return session.begin(
        data.path(SPEC), root, mode="full_auto", workspace=folder, in_place=follow,
        labels=labels, law=guard_law.law(link.law if link else None, *asked, of_servers=bool(servers)),
        approvers=link.approvers if link else (), edits=guard_tools.offered(data.path(SPEC), servers),
    )  # fmt: skip


def _shown(binds: Sequence[Path], root: Path) -> None:
    """Nothing is shown by which the agent could speak as a person: the sockets of sessions, private keys.

    Raises: UsageError `usage.arguments`."""
    from spak.cli import keys

    for one in map(Path.resolve, binds):
        for ours in (root.resolve(), keys.folder().resolve()):
            if ours.is_relative_to(one) or one.is_relative_to(ours):
                what = f"--show {one} would show the agent {ours}"
                raise UsageError("usage.arguments", what, "name the files or folders that it needs")


def _resumed(root: Path, name: str) -> Held:
    """A session whose guard is gone, with its files as its ledger has them.

    Raises: UsageError `guard.over`."""
    from spak.cli import session

    held = session.reopen(root, name, mode="full_auto")
    if held.run.state.ended or TASK not in held.run.rules.program.tasks:
        held.close()
        what = f"run {name} has ended, or is no guarded session"
        raise UsageError("guard.over", what, "spak guard -- AGENT begins one")
    return held


def _finished(held: Held) -> int:
    """A session whose guard was killed after the end of its agent was recorded: no agent is started."""
    common.say("spak: its agent had ended already; the session is finished without one")
    held.advance()
    return 0


def _guarded(
    held: Held,
    argv: Sequence[str],
    binds: Sequence[Path],
    wait: float,
    chosen: Settings,
    models: Mapping[Provider, Upstream],
    as_json: bool,
    hears: tuple[Reporting, Home | None],
    empty: bool,
) -> int:
    """The session from the copy to the agent's end; gives its exit code."""
    from spak.cli import guard_place
    from spak.costs import prices
    from spak.guard import agents, answer, inside
    from spak.guard.control import listening
    from spak.guard.orders import answers
    from spak.guard.proxy import Proxy
    from spak.guard.session import advancing
    from spak.guard.terminal import joined
    from spak.ports import MIB
    from spak.secrets.redact import Redactor

    place, folder = guard_place.place(held, chosen, empty=empty), held.folder
    reports, home = hears
    made = reports.session = place.session
    made.patience = wait
    if home is not None:
        made.home = home.now
    made.begin()
    limits = replace(
        chosen.limits, wall_s=inside.WEEK, cpu_s=inside.WEEK, processes=512, open_files=4096,
        memory_bytes=max(chosen.limits.memory_bytes, inside.LEAST_MEMORY), file_bytes=1024 * MIB,
        quota=place.quota,
    )  # fmt: skip
    terminal = _terminal(as_json)
    assert place.launcher is not None  # the spec asks for a sandbox
    hooks, toolchain = guard_place.hooks(held, place), held.run.performer.host.toolchain
    asks = [toolchain.programs["python"], "-I", "-S", str(Path(answer.__file__).resolve())]
    name = Path(argv[0]).name
    agent = inside.start(
        place.launcher, place.folder, argv, writable=not empty,
        env={
            **agents.ENVIRONMENT, "TERM": "xterm-256color",
            **({agents.ASKS: shlex.join(asks)} if hooks else {}),
        }, limits=limits, toolchain=toolchain, terminal=terminal, heard=_heard(as_json),
        binds=[*(one.resolve() for one in binds), *([Path(asks[-1])] if hooks else [])],
        options=agents.options(name, hooks=hooks is not None), home=agents.home(name),
    )  # fmt: skip
    if not empty:
        made.frozen = agent.frozen
    code: list[int] = []
    redactor = place.redactor or Redactor()
    watch = threading.Thread(target=_watch, args=(agent, made, code), daemon=True)
    try:
        proxy = Proxy(made, agent.listener, models, redactor, prices.load(chosen.llm.prices))
        proxy.hooks = hooks
        with (
            proxy.serving(),
            listening(folder, partial(answers, made)),
            joined(agent.terminal, agent) if terminal else nullcontext(),
            advancing(made),
        ):
            watch.start()
            held.advance()
            while made.decide():
                held.advance()
    finally:
        agent.close()
        if watch.ident is not None:
            watch.join()
    return code[0] if code else 1


def _terminal(as_json: bool) -> bool:
    """Whether the agent gets a terminal of its own."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not as_json


def _watch(agent: Agent, session: Session, code: list[int]) -> None:
    """Wait for the agent's end; then the session ends too."""
    from spak.guard.inside import WEEK

    outcome = agent.child.wait(WEEK)
    code.append(outcome.exit)
    try:
        session.end()
    except UserError as error:
        session.stopped(error)


def _heard(as_json: bool) -> Callable[[int, bytes], None]:
    """What the agent writes, on the streams of the command; with --json all of it on standard error."""
    from spak.guard.terminal import Drawing

    streams = {1: common.errors() if as_json else common.output(), 2: common.errors()}
    filters = {number: Drawing() if stream.isatty() else None for number, stream in streams.items()}

    def hear(number: int, data: bytes) -> None:
        filtering = filters[number]
        streams[number].write(data if filtering is None else filtering.feed(data))
        streams[number].flush()

    return hear
