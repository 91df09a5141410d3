"""What an operator adds to what ships: tools declared in files or of MCP servers, and what packages bring.

Takes the settings, which name each file and each distribution; gives an Own. An entry point is code of the
operator, which is called in this process; of a distribution that is not named nothing is imported. `unmet`
says which external predicates of a law nobody here answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from spak import config
from spak.datalog.plan import Key
from spak.datalog.session import Policy
from spak.errors import UnavailableError, UsageError, UserError
from spak.guard.inside import found as found_program
from spak.lang.catalog import BACKEND_ALIASES, NamedEntry, ToolEntry, ValidatorEntry
from spak.lang.schema import check_schema
from spak.llm import BACKENDS
from spak.mcp import pins
from spak.policy.facts import SCHEME
from spak.policy.stated import COLUMNS
from spak.ports import PredicateEntry
from spak.runner import Host, Own
from spak.tools import declared, served
from spak.tools.observe.predicates import PREDICATES, signs
from spak.validators import VALIDATORS

PORTS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "tool": (ToolEntry, ("run",)),
    "validator": (ValidatorEntry, ("measure",)),
    "backend": (NamedEntry, ("check", "answer")),
    "predicate": (PredicateEntry, ("rows",)),
}
"""What a package may bring: the type of its entry, and its methods."""
GROUPS = tuple(f"spak.{kind}s" for kind in PORTS)
"""The groups of entry points."""
TAKEN: Mapping[str, Collection[str]] = {
    "validator": VALIDATORS,
    "backend": {*BACKENDS, *BACKEND_ALIASES},
    "predicate": {*PREDICATES, *COLUMNS},
}
MAX_ROWS, MAX_TIMEOUT_S = 100_000, 600.0
"""What an entry of a predicate may ask for."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VALIDATOR = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_MODE = re.compile(r"[+-]+")


def own(chosen: config.Settings) -> Own:
    """What the settings name, and the tools of the lock file of MCP servers in this folder.

    Raises: UsageError `tool.*`, `mcp.lock`; UnavailableError `unavailable.tool` for a package that is not
    installed.
    """
    found: dict[str, dict[str, Any]] = {kind: {} for kind in PORTS}
    marks: dict[str, str] = {}
    if chosen.tools:
        tools = declared.table(chosen.tools, config.toolchain(chosen.binds).programs)
        found["tool"] = {**tools}
        marks = {name: tool.hash for name, tool in tools.items()}
    if approved := pins.read(Path(pins.LOCK)):
        of_servers = served.Servers(approved, starting(chosen, Path()))
        for name, one in of_servers.tools().items():
            found["tool"][name], marks[name] = one, one.mark
        found["predicate"][served.Listed.entry.name] = served.Listed(of_servers)
    for package in chosen.packages:
        for point, mark in _points(package):
            kind = point.group.removeprefix("spak.").removesuffix("s")
            name = f"{kind} {point.name}" if kind in ("backend", "predicate") else point.name
            if name in marks:
                raise UsageError("tool.taken", f"{package}: {point.name} is the name of another one")
            found[kind][point.name] = _made(package, point, kind)
            marks[name] = mark
    return Own(found["tool"], found["validator"], found["backend"], found["predicate"], marks)


def starting(chosen: config.Settings, folder: Path) -> served.Start:
    """What MCP servers of a project's folder are started or reached with."""

    def bearer(name: str) -> str:
        known = config.knowing(Host(), chosen, folder=folder).secrets
        return str(known.filled({"token": f"{SCHEME}{name}"}, {})["token"])

    tools = config.toolchain(chosen.binds)
    return served.Start(
        folder.absolute(),
        lambda: config.box(chosen),
        tools.programs,
        lambda program: (*tools.binds, *found_program(program)[1]),
        chosen.limits,
        chosen.reach,
        bearer,
    )


def asked(policy: Policy) -> dict[Key, tuple[str, ...]]:
    """The external predicates of a policy that do not ship, with the modes that it declares."""
    return {
        key: tuple(signs(mode, key[1]) for mode in modes)
        for key, modes in policy.externals.items()
        if key[0] not in PREDICATES and key not in policy.folds
    }


def unmet(policy: Policy, ours: Own) -> UnavailableError | None:
    """Why a run under this policy could not ask what its law asks; None where it can."""
    for (name, columns), modes in asked(policy).items():
        found = ours.predicates.get(name)
        if found is None:
            why, hint = "nobody here answers", "name the package that brings it in [tools] packages"
        elif len(found.entry.columns) != columns or not set(modes) <= set(found.entry.modes):
            answered = " and ".join(found.entry.modes)
            why, hint = f"the predicate here answers {answered}, not", "declare it with those modes"
        else:
            continue
        message = f"{why} {name} ({' and '.join(modes)}), which the law asks"
        return UnavailableError("unavailable.predicate", message, hint)
    return None


def _points(package: str) -> Iterator[tuple[metadata.EntryPoint, str]]:
    """The entry points of a distribution, each with the distribution's name and version."""
    try:
        found = metadata.distribution(package)
    except metadata.PackageNotFoundError as error:
        hint = "install it where spak is installed, or leave it out of [tools] packages"
        raise UnavailableError("unavailable.tool", f"{package} is not installed", hint) from error
    points = [point for point in found.entry_points if point.group in GROUPS]
    if not points:
        raise _bad(package, f"it has no entry point {', '.join(GROUPS)}")
    for point in sorted(points, key=lambda point: (point.group, point.name)):
        yield point, f"{found.name} {found.version}"


def fault(kind: str, made: Any) -> str:
    """What of a `tool`, `validator`, `backend` or `predicate` breaks its port; empty where nothing does."""
    entry_type, methods = PORTS[kind]
    entry: Any = getattr(made, "entry", None)
    if not isinstance(entry, entry_type) or not all(callable(getattr(made, name, None)) for name in methods):
        wanted = f"an entry ({entry_type.__name__}) and {' and '.join(methods)}"
        return f"does not implement spak.ports.{kind.title()}, which has {wanted}"
    form = _VALIDATOR if kind == "validator" else _NAME
    if not isinstance(entry.name, str) or not form.fullmatch(entry.name):
        return f"{entry.name!a} is not a valid name"
    if isinstance(entry, ToolEntry | ValidatorEntry):
        try:
            check_schema(entry.schema)
        except UserError as error:
            return error.message
        if entry.schema.get("additionalProperties") is not False:
            return "its schema takes unknown members: additionalProperties is false"
    if isinstance(entry, PredicateEntry):
        size = len(entry.columns)
        if not entry.modes or not all(_MODE.fullmatch(mode) and len(mode) == size for mode in entry.modes):
            return f"a mode has a + or a - for each of its {size} columns"
        if not 1 <= entry.max_rows <= MAX_ROWS or not 0 < entry.timeout_s <= MAX_TIMEOUT_S:
            return f"max_rows is at most {MAX_ROWS}, timeout_s at most {MAX_TIMEOUT_S:g}"
    return ""


def _made(package: str, point: metadata.EntryPoint, kind: str) -> Any:
    """What the entry point gives, where it can be used. Raises: UsageError `tool.package`, `tool.taken`."""
    try:
        made = point.load()()
    except Exception as error:  # code of others may raise anything
        raise _bad(package, f"{point.name} does not load: {type(error).__name__}: {error}") from error
    if found := fault(kind, made):
        raise _bad(package, f"{point.name}: {found}")
    entry = made.entry
    if entry.name != point.name:
        raise _bad(package, f"{point.name} calls itself {entry.name!a}")
    if kind == "tool":
        declared.free(package, entry.name)
        if entry.arguments or entry.aliases or entry.also:
            why = "declares uses or other names; a law judges its arguments by their own names"
            raise _bad(package, f"{point.name} {why}")
    elif entry.name in TAKEN[kind]:
        raise UsageError("tool.taken", f"{package}: {entry.name} ships", "choose another name")
    return made


def _bad(package: str, message: str) -> UsageError:
    return UsageError("tool.package", f"{package}: {message}", 'see docs/tools.md, "Code of your own"')
