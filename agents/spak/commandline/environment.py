"""Variables of the environment: which of them change what a program runs, loads or talks to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import lists

_RUNS = lists.pattern("environment", "decides")
_HARMLESS = lists.pattern("environment", "harmless")
_PLAIN = re.compile(r"[\w.,:+-]*\Z", re.ASCII)
_COMPILERS = lists.names("environment", "compilers")
_FLAGS = lists.pattern("environment", "flags")


def matters(name: str) -> bool:
    """True for a variable that programs read to decide what they run, load or talk to."""
    return _RUNS.match(name) is not None


def is_path_list(name: str) -> bool:
    """Whether a variable's value is a list of folders."""
    return name == "PYTHONPATH"


def trouble(name: str, values: Sequence[str]) -> str | None:
    """Why a program should not be started with this variable; None when it is harmless."""
    if name == "PYTHONPATH":
        return None
    if name == "PYTHONWARNINGS" or name == "MAKEFLAGS":
        safe = all(
            re.match(r"(-j ?\d+|default|ignore|error|always|once)(::?\w*)*\Z", value) for value in values
        )
        return None if safe else f"{name} can change what is run"
    if _HARMLESS.match(name):
        return None if all(_PLAIN.match(value) for value in values) else f"an unusual value of {name}"
    if name in ("CC", "CXX") and all(value in _COMPILERS for value in values):
        return None
    if name in ("CFLAGS", "CXXFLAGS", "CPPFLAGS") and all(_FLAGS.match(value) for value in values):
        return None
    if name in ("PAGER", "GIT_PAGER") and all(value == "cat" for value in values):
        return None
    if name == "NODE_OPTIONS" and all(
        re.match(r"--max[-_]old[-_]space[-_]size=\d+\Z", value) for value in values
    ):
        return None
    if matters(name):
        return f"{name} changes what programs run, load or talk to"
    if any(value.startswith("-") for value in values):
        return f"a value of {name} that reads like an option"
    return None
