"""What a command in `$(..)` prints, as far as its words tell: paths of the workspace, or a number.

Takes the commands of a line of `spak.shell`; gives whether its output is certain to be of that kind. An
option that is not named here may print anything (a format, a label), so it makes the output unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import lists
from spak.shell import Command, Text

_LISTS = lists.table("outputs", "lists")
_NEEDS = lists.table("outputs", "needs")
_NUMBERS = re.compile(lists.pattern("outputs", "numbers").pattern.replace(" ", "\0"))
_KEEPS = lists.names("outputs", "keeps")


def lists_paths(commands: Sequence[Command]) -> bool:
    """True when a pipeline prints paths below the workspace and nothing else."""
    for index, command in enumerate(commands):
        if command.within or command.redirections:
            return False
        if index == 0 and any(not isinstance(part, Text) for word in command.words for part in word.parts):
            return False
        words = [word.value or word.text for word in command.words]
        if not words or (index and command.operator != "|"):
            return False
        if index == 0 and not _lists(words):
            return False
        if index and not _keeps(words):
            return False
    return bool(commands)


def _lists(words: list[str]) -> bool:
    name, rest = words[0], words[1:]
    if name == "git" and rest:
        name, rest = f"git {rest[0]}", rest[1:]
    allowed = _LISTS.get(name)
    if allowed is None:
        return False
    options = [word for word in rest[: rest.index("--")] if word] if "--" in rest else rest
    options = [word for word in options if word.startswith("-")]
    needed = _NEEDS.get(name)
    return all(re.fullmatch(allowed, word) for word in options) and (
        needed is None or any(re.fullmatch(needed, word) for word in options)
    )


def _keeps(words: list[str]) -> bool:
    name, rest = words[0], words[1:]
    if name == "grep":
        return not any(re.match(r"-[a-zA-Z]*[ofcbnHT]|--", word) for word in rest)
    return name in _KEEPS and all(re.fullmatch(r"-\w+|\d+", word) for word in rest)


def gives_number(commands: Sequence[Command]) -> bool:
    """True when a pipeline prints whole numbers and nothing else."""
    for index, command in enumerate(commands):
        if command.within or (index and command.operator != "|"):
            return False
        if any(found.op not in ("<", "<<<") and not found.fd for found in command.redirections):
            return False
    words = [word.value for word in commands[-1].words] if commands else []
    return None not in words and _NUMBERS.fullmatch("\0".join(map(str, words))) is not None
