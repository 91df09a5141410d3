"""What a command in `$(..)` prints, as far as its words tell: paths of the workspace, or a number.

Takes the commands of a line of `spak.shell`; gives whether its output is certain to be of that kind. An
option that is not named here may print anything (a format, a label), so it makes the output unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import lists
from spak.shell import Command, Text

_LISTS, _NEEDS, _KEEPS = (lists.sections()["outputs"][key] for key in ("lists", "needs", "keeps"))
_NUMBERS = re.compile(lists.pattern("outputs", "numbers").pattern.replace(" ", "\0"))


def lists_paths(commands: Sequence[Command]) -> bool:
    """True when a pipeline prints paths below the workspace and nothing else."""
    for index, command in enumerate(commands):
        words = [word.value or word.text for word in command.words]
        if not words or command.within or command.redirections:
            return False
        expands = any(not isinstance(part, Text) for word in command.words for part in word.parts)
        if not (_keeps(words) and command.operator == "|" if index else _lists(words) and not expands):
            return False
    return bool(commands)


def _lists(words: list[str]) -> bool:
    name, rest = words[0], words[1:]
    if name == "git" and rest:
        name, rest = f"git {rest[0]}", rest[1:]
    options = [word for word in rest[: rest.index("--") if "--" in rest else None] if word.startswith("-")]
    fits = name in _LISTS and all(re.fullmatch(_LISTS[name], word) for word in options)
    return fits and (name not in _NEEDS or any(re.fullmatch(_NEEDS[name], word) for word in options))


def _keeps(words: list[str]) -> bool:
    return words[0] in _KEEPS and all(re.fullmatch(_KEEPS[words[0]], word) for word in words[1:])


def gives_number(commands: Sequence[Command]) -> bool:
    """True when a pipeline prints whole numbers and nothing else."""
    for index, command in enumerate(commands):
        if command.within or (index and command.operator != "|"):
            return False
        if any(found.op not in ("<", "<<<") and not found.fd for found in command.redirections):
            return False
    words = [word.value for word in commands[-1].words] if commands else []
    return None not in words and _NUMBERS.fullmatch("\0".join(map(str, words))) is not None
