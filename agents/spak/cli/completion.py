"""`spak completion SHELL`: the script that teaches a shell to complete `spak`.

The script asks `spak` itself at each key (with `_SPAK_COMPLETE` set), so it never goes out of date. Commands,
options and choices are completed, files where a file is wanted, and the ids of local runs for RUN.
"""

from __future__ import annotations

import re

import click
from click.shell_completion import CompletionItem

from spak.cli import common

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SPAK_COMPLETE"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@common.json_option
def command(shell: str, as_json: bool) -> int:
    """Print the completion script of SHELL; how to load it is printed on standard error."""
    text = script(shell)
    if as_json:
        common.emit({"shell": shell, "script": text})
    else:
        click.echo(text)
    common.say(f"next: {HOW[shell]}")
    return 0


HOW = {
    "bash": 'eval "$(spak completion bash)" in ~/.bashrc (bash 4.4 or newer)',
    "zsh": 'eval "$(spak completion zsh)" in ~/.zshrc, after compinit',
    "fish": "spak completion fish > ~/.config/fish/completions/spak.fish",
}


def know_runs(command: click.Command) -> None:
    """Let every argument RUN of a command, and of its subcommands, be completed with the local runs."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            know_runs(inner)
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.name == "run":
            setattr(parameter, "shell_complete", runs)  # noqa: B010  a method that click lets be replaced


def runs(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The ids that begin so, newest first, and `latest`; none that a shell takes for more than a word."""
    from spak.errors import SpakError
    from spak.ledger.files import FileLedgers

    try:
        known = FileLedgers(common.runs_dir(ctx.params.get("runs_dir"))).runs()
    except (
        SpakError,
        OSError,
    ):  # no settings or no folder: nothing to offer, and a prompt is no place to say so
        known = []
    plain = [name for name in known if _PLAIN.fullmatch(name)]
    names = ["latest", *reversed(plain)] if known else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def script(shell: str) -> str:
    """The script of a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(click.get_current_context().find_root().command, {}, "spak", VARIABLE)
    return made.source_template % made.source_vars()
