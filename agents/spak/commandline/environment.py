"""Variables of the environment: which of them change what a program runs, loads or talks to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import lists

_RUNS = lists.pattern("environment", "decides")
_HARMLESS = lists.pattern("environment", "harmless")
_PLAIN = re.compile(r"[\w.,:+-]*", re.ASCII)
_VALUES = {
    name: re.compile(pattern)
    for names, pattern in lists.section("environment")["values"].items()
    for name in names.split()
}
_HOSTS = lists.pattern("environment", "hosts", re.IGNORECASE)
_LOCAL = lists.pattern("environment", "local", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"://(?!(localhost|127\.0\.0\.1|\[::1\])([:/]|\Z))|\A([\w-]+\.)+(com|net|org|io|dev|example|xyz|ru|cloud|cn|info|biz|online|site|top|tech|ai|eu|uk|de)([:/]|\Z)"
    r"|(?<![\w.])(?!127\.|0\.0\.0\.0)\d{1,3}(\.\d{1,3}){3}(?![\w.])|\A([\w-]+\.)+[a-z]+:\d+\Z"
)
_OF_SHELL = re.compile(r"[;|&<>`\n]|\$\(")
_OUTPUTS = lists.pattern("environment", "outputs")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def is_known(name: str) -> bool:
    """Whether some values of a variable that decides what is run are harmless."""
    return name in _VALUES


def matters(name: str) -> bool:
    """True for a variable that programs read to decide what they run, load or talk to."""
    return _RUNS.match(name) is not None


def names_output(name: str) -> bool:
    """Whether a variable is called as one that names a file which programs write."""
    return _OUTPUTS.fullmatch(name) is not None


def is_path_list(name: str) -> bool:
    """Whether a variable's value is a list of folders."""
    return name == "PYTHONPATH"


def trouble(name: str, values: Sequence[str], to_shell: bool = False) -> str | None:
    """Why a program should not be started with this variable; None when it is harmless. `to_shell`: programs
    may hand the value to a shell, as make does."""
    if is_path_list(name):
        return None
    plain = _VALUES.get(name) or (_PLAIN if _HARMLESS.match(name) else None)
    if plain is not None and all(plain.fullmatch(value) for value in values):
        return None
    if plain is not None or matters(name):
        return f"{name} changes what programs run, load or talk to"
    if to_shell and any(map(_OF_SHELL.search, values)):
        return f"a value of {name} with a sign that a shell reads"
    if any(re.search(r"(^|\s)-", value) for value in values):
        return f"a value of {name} that reads like an option"
    if any(map(_ELSEWHERE.search, values)) or (_HOSTS.match(name) and not all(map(_LOCAL.fullmatch, values))):
        return f"a value of {name} that is the address of another machine"
    return None


def paths(values: Sequence[str]) -> list[str]:
    """The parts of a variable's values that are paths with a folder, files with an ending or modules."""
    parts = [part for value in values for part in re.split(r"https?://\S*|[:=,;\s]", value) if part]
    modules = [part.replace(".", "/") + ".py" for part in parts if _MODULE.fullmatch(part)]
    return modules + [part for part in parts if re.search(r"/|\w\.\w", part) or part in ("..", "~")]
