"""`spak guard hooks`: an agent's own hooks ask the law, where it works outside of the sandbox."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.cli.gate import judge_of
from spak.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from spak.guard.hook_agents import HookAgent

NAMES = ("claude", "codex", "gemini", "cursor")


@click.group()
def command() -> None:
    """Have an agent's own hooks ask the law before each of its calls.

    Nothing holds the agent this way: what it does is witnessed. spak guard -- AGENT has walls."""


def _workspace(function: Callable[..., int]) -> Callable[..., int]:
    return click.option(
        "--workspace", "folder", type=click.Path(path_type=Path), default=Path(), show_default=True,
        help="The folder of the project.",
    )(function)  # fmt: skip


@command.command("install")
@click.argument("agent", type=click.Choice(NAMES))
@_workspace
@common.json_option
def install_command(agent: str, folder: Path, as_json: bool) -> int:
    """Write the hooks into AGENT's settings of the project; what else is in them stays."""
    from spak.guard import hook_files
    from spak.guard.hook_agents import AGENTS

    chosen = AGENTS[agent]
    changed = hook_files.install(chosen, _project(folder))
    _shown(chosen, folder, changed, as_json, "has the hooks" if changed else "has them already")
    if not as_json:
        for text in (chosen.advice, f"not held: {'; '.join(chosen.gaps)}"):
            common.say(f"spak: {text}") if text else None
        common.say("next: spak guard hooks serve; until it runs, calls are denied")
    return 0


@command.command("remove")
@click.argument("agent", type=click.Choice(NAMES))
@_workspace
@common.json_option
def remove_command(agent: str, folder: Path, as_json: bool) -> int:
    """Take the hooks out of AGENT's settings of the project, and nothing else."""
    from spak.guard import hook_files
    from spak.guard.hook_agents import AGENTS

    chosen = AGENTS[agent]
    changed = hook_files.remove(chosen, _project(folder))
    _shown(
        chosen, folder, changed, as_json, "has no hooks of ours any more" if changed else "had none of ours"
    )
    return 0


@command.command("serve")
@_workspace
@common.runs_option
@common.json_option
def serve_command(folder: Path, runs_dir: Path | None, as_json: bool) -> int:
    """Answer the hooks of the project until Ctrl+C; what they ask about becomes one run."""
    from spak import config, data
    from spak.cli import session
    from spak.cli.guard import SPEC
    from spak.guard import hook_files
    from spak.guard.hook_agents import AGENTS
    from spak.guard.session import Served, advancing
    from spak.guard.witness import Witness, serving
    from spak.mcp.pins import LOCK
    from spak.runner.secret_guard import found_in
    from spak.runner.views import witnessed
    from spak.secrets.redact import Redactor

    project, chosen = _project(folder), config.settings()
    runs = common.runs_dir(runs_dir)
    held = session.begin(data.path(SPEC), runs, mode="full_auto", labels={"class": "witnessed"})
    name = held.run.ledger.run
    agents = [one for one in AGENTS.values() if hook_files.installed(one, project)]
    gaps = "; ".join(f"{one.name}: {', '.join(one.gaps)}" for one in agents)
    line = f"run {name} witnesses the calls of {project.name}, and holds nothing"
    found = Redactor().knowing(found_in(project, chosen.shown_secrets)[1])
    made = Served(held.run)
    own = [str((project / one.file).resolve()) for one in AGENTS.values()]
    own += [str(path.resolve()) for path in (project / "spak.toml", project / LOCK, *map(Path, chosen.law))]
    answering = Witness(
        made, judge_of(held.run.rules.gate.policy, project), project, found, own, f"spak: {line}"
    )
    try:
        with serving(hook_files.folder(project), answering), advancing(made):
            common.say(f"spak: {line}" + (f" ({gaps})" if gaps else ""))
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: made.end())
            held.stop = held.run.advance(held.mode, held.auto)
            while made.decide():  # nobody is asked here: a law about witnesses that wants a signature denies
                held.stop = held.run.advance(held.mode, held.auto)
        held.run.cancel()  # what was stopped is over
        calls = dict[Any, Any]()
        for record, _ in held.run.ledger.read():
            witnessed.feed(calls, record)
        seen = replace(held.save(), witnessed=witnessed.known(calls))
    finally:
        held.close()
    if as_json:
        common.emit(seen.to_json())
    else:
        counts = seen.witnessed
        common.say(f"spak: {witnessed.sentence(counts) if counts else 'no hook asked'}; spak show {name}")
    return common.EXIT[seen.state]


def _project(folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name the project's folder")
    return folder.resolve()


def _shown(agent: HookAgent, folder: Path, changed: bool, as_json: bool, what: str) -> None:
    if as_json:
        common.emit({"agent": agent.name, "file": str(folder / agent.file), "changed": changed})
    else:
        common.say(f"spak: {folder / agent.file} {what}")
