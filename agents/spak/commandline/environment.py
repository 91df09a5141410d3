"""Variables of the environment: with which values programs may be started."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from spak.commandline import lists

_RUNS = lists.pattern("environment", "decides")
_HARMLESS = lists.pattern("environment", "harmless")
_HOSTS = lists.pattern("environment", "hosts", re.IGNORECASE)
_LOCAL = lists.pattern("environment", "local")
_PLAIN = re.compile(r"[\w.,:+-]*", re.ASCII)
_MILD = re.compile(r"\w{0,20}|\d+(\.\d+){1,3}", re.ASCII)
"""Values of a variable whose name says that it is a level, a folder or the like: a word or a version; no
address, option or text of a shell."""
_SWITCH = re.compile(r"\d{0,6}|(?i:true|false|yes|no|on|off|none|auto)", re.ASCII)
"""Values of a variable of which nothing is known."""
_PLAINLY = lists.pattern("environment", "plainly")
_VALUES = {
    name: re.compile(pattern)
    for names, pattern in lists.sections()["environment"]["values"].items()
    for name in names.split()
}


def matters(name: str) -> bool:
    """True for a variable that programs read to decide what they run, load or talk to."""
    return _RUNS.match(name) is not None


def is_path_list(name: str) -> bool:
    """Whether a variable's value is a list of folders."""
    return name == "PYTHONPATH"


def trouble(name: str, values: Sequence[str], is_there: Callable[[str], bool]) -> str | None:
    """Why a program should not be started with this variable; None when it is harmless. `is_there` says of a
    value whether it is a file or folder of the workspace."""
    if is_path_list(name):
        return None
    plain = _VALUES.get(name) or (_PLAIN if _HARMLESS.match(name) else _LOCAL if _HOSTS.match(name) else None)
    if (plain is None or plain is _LOCAL) and matters(name):
        return f"{name} changes what programs run, load or talk to"
    told = plain is None and _PLAINLY.match(name) is not None
    form = plain or (_MILD if told else _SWITCH)
    if all(form.fullmatch(value) or (told and is_there(value)) for value in values):
        return None
    return f"a value of {name} that is none of those that are known to be harmless"
