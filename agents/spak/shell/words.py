"""Command lines of one simple command, to arguments."""

from __future__ import annotations

from spak.errors import UsageError
from spak.shell.cursor import short
from spak.shell.read import parse


def argv(text: str) -> tuple[str, ...]:
    """The arguments of a line that is exactly one simple command without anything to expand.

    Raises: UsageError `shell.not_one_command`, `shell.expansion`, and what `parse` raises.
    """
    line = parse(text)
    if len(line.commands) != 1 or line.background or line.commands[0].within or not line.commands[0].words:
        raise UsageError(
            "shell.not_one_command",
            f"this is not one simple command: {short(text)}",
            "no shell runs it: make each command a step of its own",
        )
    command = line.commands[0]
    if command.redirections:
        raise UsageError(
            "shell.not_one_command",
            f"redirections need a shell: {short(text)}",
            "the output is recorded anyway; write files with write_file",
        )
    if command.assignments:
        name = command.assignments[0].name
        raise UsageError(
            "shell.not_one_command",
            f"the assignment {name}= before a command needs a shell",
            f"write `env {name}=...` before the command",
        )
    values = []
    for word in command.words:
        value = word.value
        if value is None:
            raise UsageError(
                "shell.expansion",
                f"a shell would expand {short(word.text)}, and none runs here",
                "put it in single quotes to pass it as it is, or write the arguments out",
            )
        values.append(value)
    return tuple(values)
