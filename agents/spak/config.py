"""Configuration: `spak.toml`, the environment and the tables of adapters, put together once.

Takes the working folder and SPAK_* variables; gives Settings, the Catalog that check and compile read, and
the Host that a run uses. The only module of the library that reads the environment.

    [llm]        mode = "manual", model = ...    SPAK_LLM_MODE, SPAK_LLM_MODEL; the rest: spak.llm.settings
    [execution]  mode = "stepwise", steps = 3    SPAK_EXECUTION_MODE and _STEPS
    [sandbox]    launcher = "restricted"         SPAK_SANDBOX_LAUNCHER
                 wall_s, cpu_s, memory_mib, processes, output_kib
                 binds = ["/opt/toolchain"]      read-only folders that tools may see
                 shown_secrets = ["*.pem"]       files that are no secrets, whatever their names say
    [workspace]  bring = ["gen"]                 what a run's copy holds, and how much at most
    [network]    requests, models = ["public"]   where http_request may go, and where models' servers may be
    [runs]       dir = ".spak/runs"              SPAK_RUNS_DIR
    [approvals]  keys = [{name, public, roles}]  who may approve actions of new runs
    [policy]     law = ["law.mg"]                the operator's law    SPAK_POLICY_LAW, with : between
    [tools]      files = ["tools/deploy.toml"], packages = ["dist"]    one's own, on the command line
    [checkpoints] log = "example.com/team", to = ["/mnt/evidence"]     of all runs of the folder
    [secrets]    NAME = {env = "VAR"}            what `secret://NAME` stands for; or {file = PATH}
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from spak import data
from spak.errors import UnavailableError, UsageError
from spak.inputs import read_text
from spak.lang.catalog import Catalog, NamedEntry, backend_name
from spak.ledger import settings as log_settings
from spak.llm import settings as llm_settings
from spak.paths import SETTINGS
from spak.policy import approval, urls
from spak.policy.law import Law
from spak.ports import MIB, Launcher, Limits, Toolchain
from spak.program import Mode, Program
from spak.runner import SHIPPED, Host, Own, laws
from spak.runner.faults import fault_before
from spak.runner.secrets import Secrets, places_of
from spak.secrets.redact import MIN_SECRET, Redactor
from spak.secrets.secret import Secret
from spak.workspace import Wanted
from spak.workspace import settings as workspace_settings

MODES: tuple[Mode, ...] = ("stepwise", "semi_auto", "full_auto")
RANKS: Mapping[str, int] = {"RESTRICTED": 1, "DOCKER": 2, "GPU": 2, "GVISOR": 3}
"""What a SANDBOX setting asks for at least."""

_KNOWN: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "llm": llm_settings.KEYS,
    "execution": {"mode": str, "steps": int},
    "sandbox": {
        "launcher": str,
        "wall_s": (int, float),
        "cpu_s": int,
        "memory_mib": int,
        "processes": int,
        "output_kib": int,
        "binds": list,
        "shown_secrets": list,
    },
    "workspace": workspace_settings.KEYS,
    "network": {"requests": list, "models": list},
    "runs": {"dir": str},
    "approvals": {"keys": list},
    "policy": {"law": list},
    "checks": {"sealed": str},
    "tools": {"files": list, "packages": list},
    "checkpoints": log_settings.KEYS,
}
_RANGES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("execution", "steps"): (1, 1_000_000),
    ("sandbox", "wall_s"): (0.1, 7 * 86_400),
    ("sandbox", "cpu_s"): (1, 7 * 86_400),
    ("sandbox", "memory_mib"): (16, 1 << 24),
    ("sandbox", "processes"): (4, 1 << 20),
    ("sandbox", "output_kib"): (1, 1 << 20),
    **{("workspace", key): ends for key, ends in workspace_settings.RANGES.items()},
}
_ENVIRONMENT: Mapping[str, tuple[str, str]] = {
    "SPAK_LLM_MODE": ("llm", "mode"),
    "SPAK_LLM_MODEL": ("llm", "model"),
    "SPAK_EXECUTION_MODE": ("execution", "mode"),
    "SPAK_EXECUTION_STEPS": ("execution", "steps"),
    "SPAK_SANDBOX_LAUNCHER": ("sandbox", "launcher"),
    "SPAK_SANDBOX_SHOWN_SECRETS": ("sandbox", "shown_secrets"),
    "SPAK_NETWORK_REQUESTS": ("network", "requests"),
    "SPAK_NETWORK_MODELS": ("network", "models"),
    "SPAK_RUNS_DIR": ("runs", "dir"),
    "SPAK_POLICY_LAW": ("policy", "law"),
    "SPAK_CHECKS_SEALED": ("checks", "sealed"),
}
_BETWEEN_LAWS = r"(?<!\Aspak)(?<!:spak):"
"""What separates the files of SPAK_POLICY_LAW; not the colon of `spak:NAME`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What files, the environment and options decide, read once; `law` are the operator's files."""

    backend: str = ""
    mode: Mode | None = None
    auto_steps: int = 0
    launcher: str = ""
    least: str = ""
    """The least strict launcher that whoever starts the run accepts; a spec's SANDBOX may ask for more."""
    runs_dir: Path = Path(".spak/runs")
    limits: Limits = field(default_factory=Limits)
    binds: tuple[Path, ...] = ()
    approvers: tuple[Mapping[str, Any], ...] = ()
    """As genesis has them: `{"id", "name", "public", "roles"}`."""
    llm: llm_settings.LlmSettings = field(default_factory=llm_settings.LlmSettings)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Where each is: `{"env": VAR}` or `{"file": PATH}`."""
    shown_secrets: tuple[str, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)
    """What a run's copy holds of a folder, and how much at most."""
    reach: tuple[str, ...] = ("public",)
    """The kinds of addresses that http_request may go to (spak.policy.urls)."""
    sealed: Path | None = None
    """The folder of the case whose sealed checks judge what a run made."""
    tools: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()
    """Declarations of tools, and distributions that bring more (spak.own)."""
    checkpoints: log_settings.Checkpoints = field(default_factory=log_settings.Checkpoints)
    law: tuple[Path, ...] = ()
    """Tables of command lines that do not ship: files, or folders of them."""


def settings(folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """What `spak.toml` in the folder says, overridden by the environment.

    Raises: UsageError `usage.config` for text that is not TOML, unknown keys and values of a wrong type.
    """
    values = _file((folder or Path()) / SETTINGS)
    variables = os.environ if environment is None else environment
    for name, (table, key) in _ENVIRONMENT.items():
        text = variables.get(name)
        if text:
            values.setdefault(table, {})[key] = _from_text(name, text, _KNOWN[table][key])
    llm = llm_settings.read(values.pop("llm", {}), folder, variables)
    named = places_of(values.pop("secrets", {}))
    _judge(values)
    box, execution = values.get("sandbox", {}), values.get("execution", {})
    network = values.get("network", {})
    llm = replace(llm, base=replace(llm.base, reach=_texts("network", network, "models", urls.REACHES)))
    usual = Limits()
    return Settings(
        backend=llm.base.mode,
        mode=execution.get("mode"),
        auto_steps=execution.get("steps", 0),
        launcher=box.get("launcher", ""),
        runs_dir=Path(values.get("runs", {}).get("dir", ".spak/runs")),
        limits=Limits(
            wall_s=box.get("wall_s", usual.wall_s),
            cpu_s=box.get("cpu_s", usual.cpu_s),
            memory_bytes=box["memory_mib"] * MIB if "memory_mib" in box else usual.memory_bytes,
            processes=box.get("processes", usual.processes),
            output_bytes=box["output_kib"] * 1024 if "output_kib" in box else usual.output_bytes,
        ),
        binds=tuple(Path(item) for item in box.get("binds", ())),
        approvers=_approvers(values.get("approvals", {}).get("keys", ())),
        llm=llm,
        secrets=named,
        shown_secrets=_texts("sandbox", box, "shown_secrets"),
        wanted=workspace_settings.read(values.get("workspace", {}), variables.get("HOME", "")),
        reach=_texts("network", network, "requests", urls.REACHES) if "requests" in network else ("public",),
        sealed=(folder or Path()) / values["checks"]["sealed"] if values.get("checks") else None,
        tools=tuple((folder or Path()) / item for item in _texts("tools", values.get("tools", {}), "files")),
        packages=_texts("tools", values.get("tools", {}), "packages"),
        checkpoints=log_settings.read(values.get("checkpoints", {})),
        law=_law_files(values.get("policy", {}).get("law", ()), folder or Path()),
    )


def knowing(
    made: Host, chosen: Settings, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Host:
    """The host with the secrets that are set, and a redactor that knows them. Raises: UnavailableError
    `llm.key_file`; UsageError `usage.config` for a value that is too short to be kept out of records."""
    if not chosen.secrets:
        return made
    found = secrets_of(chosen, environment, folder)
    return replace(made, secrets=Secrets(found), redactor=Redactor([*chosen.llm.secrets(), *found.values()]))


def secrets_of(
    chosen: Settings, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> dict[str, Secret]:
    """The values of `[secrets]` that are set, by name. Raises: as `knowing`."""
    variables = os.environ if environment is None else environment
    found: dict[str, Secret] = {}
    for name, place in chosen.secrets.items():
        file = (folder or Path()) / Path(place.get("file", "")).expanduser()
        value = Secret(variables.get(place["env"], "")) if "env" in place else llm_settings.read_key(file)
        if 0 < len(value.reveal()) < MIN_SECRET:
            raise _bad("secrets", name, "so short a value", f"at least {MIN_SECRET} characters")
        found |= {name: value} if value.reveal() else {}
    return found


def law(chosen: Settings | None = None) -> Law:
    """The law of new runs on the command line: the shipped one and the operator's.

    Raises: UsageError `usage.config` for a file that cannot be read; PolicyError when it does not load.
    """
    chosen = settings() if chosen is None else chosen
    return laws.operators(laws.texts("law", chosen.law))


def catalog(own: Own = SHIPPED) -> Catalog:
    """Everything that a spec may name on this installation."""
    from spak.llm import BACKENDS
    from spak.proposers import PROPOSERS
    from spak.sandbox import LAUNCHERS
    from spak.tools import TOOLS
    from spak.validators import VALIDATORS
    from spak.validators.static_checks import CHECKS

    launchers = {
        name: NamedEntry(name, f"the {name} sandbox", rank=RANKS.get(name.upper(), 0)) for name in LAUNCHERS
    }
    return Catalog(
        tools={name: tool.entry for name, tool in {**TOOLS, **own.tools}.items()},
        validators={name: make().entry for name, make in VALIDATORS.items()}
        | {name: made.entry for name, made in own.validators.items()},
        proposers={name: make().entry for name, make in PROPOSERS.items()},
        backends={name: make().entry for name, make in BACKENDS.items()}
        | {name: made.entry for name, made in own.backends.items()},
        launchers=launchers,
        checks={name: check.entry for name, check in CHECKS.items()},
    )


def used(full: Catalog, program: Program) -> Catalog:
    """The part of a catalog that a program can reach: what its genesis has to carry."""
    tools: dict[str, Any] = {}
    validators: dict[str, Any] = {}
    proposers: dict[str, Any] = {}
    for task in program.tasks.values():
        for name in (*task.tools, *(step.name for step in task.steps if step.kind == "tool")):
            entry = full.tool(name)
            if entry is not None:
                tools[entry.name] = entry
        for step in task.steps:
            if step.kind == "validate":
                validators[step.name] = full.validators[step.name]
        if task.proposing.name:
            proposers[task.proposing.name] = full.proposers[task.proposing.name]
    backends = {program.backend: full.backends[program.backend]} if program.backend in full.backends else {}
    return Catalog(tools, validators, proposers, backends, full.launchers)


def host(chosen: Settings, program: Program, backend: str = "", own: Own = SHIPPED) -> Host:
    """The adapters that a run of the program uses on this machine.

    Raises: UnavailableError `unavailable.sandbox`, `unavailable.backend`.
    """
    from spak.llm import BACKENDS, open_backend, redactor
    from spak.proposers import PROPOSERS
    from spak.tools import TOOLS
    from spak.validators import VALIDATORS

    configured = program.backend or chosen.backend
    name = backend_name(backend or configured)
    if name and name not in (known := {**BACKENDS, **own.backends}):
        hint = f"known backends: {', '.join(sorted(known))}"
        raise UnavailableError("unavailable.backend", f"there is no backend {name!r} here", hint)
    found = launcher(chosen, program)
    measurable(program, found)
    return Host(
        tools={**TOOLS, **own.tools},
        validators={**{entry: make() for entry, make in VALIDATORS.items()}, **own.validators},
        proposers={entry: make() for entry, make in PROPOSERS.items()},
        predicates=own.predicates,
        backend=open_backend(name, chosen.llm, name != configured, own.backends) if name else None,
        launcher=found,
        toolchain=toolchain(chosen.binds),
        limits=chosen.limits,
        redactor=redactor(chosen.llm),
        shown_secrets=chosen.shown_secrets,
        reach=chosen.reach,
    )


def launcher(chosen: Settings, program: Program) -> Launcher:
    """The launcher that a run uses: the one that was asked for, or the least strict that is strict enough, of
    equals the one that SANDBOX names (a GPU is not had in any container).

    Fails closed: no launcher, no run. Raises: UnavailableError `unavailable.sandbox`.
    """
    return box(chosen, program.sandbox)


def box(chosen: Settings, least: str = "RESTRICTED") -> Launcher:
    """The launcher that is strict enough for `least`, chosen as `launcher` says; for jobs of no program too.

    Raises: UnavailableError `unavailable.sandbox`.
    """
    from spak.sandbox import LAUNCHERS

    wanted = max(least, chosen.least, key=lambda name: RANKS.get(name.upper(), 0))
    needed = RANKS.get(wanted.upper(), 1)
    named = max(chosen.launcher, chosen.least, key=lambda name: RANKS.get(name.upper(), 0))
    names = (
        [named]  # what the machine's settings name, unless something stricter was asked for
        if chosen.launcher
        else sorted(LAUNCHERS, key=lambda name: (RANKS.get(name.upper(), 0), name != wanted.lower()))
    )
    for name in names:
        if name not in LAUNCHERS:
            raise UnavailableError(
                "unavailable.sandbox",
                f"there is no launcher {name!r}",
                f"known launchers: {', '.join(LAUNCHERS)}",
            )
        if RANKS.get(name.upper(), 0) >= needed:
            made = LAUNCHERS[name]()
            if error := fault_before(made):
                raise error
            return made
    raise UnavailableError(
        "unavailable.sandbox",
        f"SANDBOX {wanted.upper()} asks for a stricter launcher than {', '.join(names)}",
        "lower SANDBOX in CONFIG, or run `spak doctor` to see what is missing",
    )


def measurable(program: Program, box: Launcher) -> None:
    """Raises: UnavailableError `unavailable.sandbox` where a validator of the program cannot measure in it.

    CpuProfiler hands memory to its candidate by descriptors, and none goes into a container.
    """
    from spak.sandbox import Docker

    steps = (step for task in program.tasks.values() for step in task.steps if step.kind == "validate")
    if isinstance(box, Docker) and any(step.name == "CpuProfiler" for step in steps):
        raise UnavailableError(
            "unavailable.sandbox",
            f"CpuProfiler does not measure in {box.entry.name}: no descriptors go into a container",
            "run it in the launcher restricted, on a machine that has bubblewrap",
        )


@lru_cache(maxsize=4)
def toolchain(binds: tuple[Path, ...] = ()) -> Toolchain:
    """Programs that tools may start inside the sandbox, the folders they need, and their versions."""
    programs = {"python": sys.executable}
    for name in ("gcc", "g++", "clang", "clang++", "git", "nvcc", "ruff", "pytest"):
        candidate = Path(sys.executable).with_name(name)
        found = str(candidate) if candidate.exists() else shutil.which(name)
        if found:
            programs[name] = found
    folders = {Path(sys.prefix), Path(sys.base_prefix), *binds}
    outside = tuple(sorted(folder for folder in folders if not folder.is_relative_to("/usr")))
    return Toolchain(programs=programs, binds=outside, versions={})


@lru_cache(maxsize=1)
def versions() -> Mapping[str, str]:
    """Version of each program of the toolchain, and of packages, for genesis and `spak doctor`."""
    found = {}
    for name, path in toolchain().programs.items():
        try:
            done = subprocess.run(
                [path, "--version"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        lines = (done.stdout or done.stderr).strip().splitlines()
        if lines:
            found[name] = lines[-1] if name == "nvcc" else lines[0]
    for name in ("numpy", "numba"):  # of the same interpreter: what candidates in Python compute with
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _file(path: Path) -> dict[str, dict[str, Any]]:
    try:
        return tomllib.loads(read_text(path))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError, OSError) as error:  # ValueError: no TOML, no UTF-8, a number too long
        raise UsageError(
            "usage.config", f"{path.name} cannot be read: {error}", "fix or remove it"
        ) from error


def _from_text(name: str, text: str, wanted: Any) -> Any:
    """A variable's value; a list has commas between its items, one of laws colons. Raises: UsageError."""
    if wanted is list:
        between = _BETWEEN_LAWS if name == "SPAK_POLICY_LAW" else ","
        return [item.strip() for item in re.split(between, text) if item.strip()]
    return _integer(name, text) if wanted is int else text


def _texts(table: str, values: Mapping[str, Any], key: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """A list of texts, each one that is known. Raises: UsageError `usage.config`."""
    for item in values.get(key, ()):
        if not isinstance(item, str) or not item or (known and item not in known):
            raise _bad(table, key, item, f"of: {', '.join(known)}" if known else "texts")
    return tuple(values.get(key, ()))


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError("usage.config", f"{name} is not a number: {text!r}", f"unset {name}") from error


def _judge(values: Mapping[str, Any]) -> None:
    for table, items in values.items():
        if table not in _KNOWN or not isinstance(items, dict):
            raise UsageError("usage.config", f"unknown table [{table}]", f"known: {', '.join(_KNOWN)}")
        for key, value in items.items():
            wanted = _KNOWN[table].get(key)
            if wanted is None:
                raise UsageError(
                    "usage.config", f"unknown key {key} in [{table}]", f"known: {', '.join(_KNOWN[table])}"
                )
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise _bad(table, key, value, "docs/configuration.md lists the settings")
            if (table, key) in _RANGES and isinstance(value, (int, float)):
                least, most = _RANGES[table, key]
                if not least <= value <= most:
                    raise _bad(table, key, value, f"a number from {least} to {most}")
    mode = values.get("execution", {}).get("mode")
    if mode is not None and mode not in MODES:
        raise _bad("execution", "mode", mode, f"one of: {', '.join(MODES)}")
    for item in values.get("sandbox", {}).get("binds", ()):
        if not isinstance(item, str) or not Path(item).is_absolute() or not Path(item).exists():
            raise _bad("sandbox", "binds", item, "name folders that exist, by absolute paths")
    if values.get("runs", {}).get("dir") == "":
        raise _bad("runs", "dir", "", "name a folder, or leave the key out")


def _approvers(items: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """The public keys of those who may approve. Raises: UsageError `usage.config`."""
    found: list[Mapping[str, Any]] = []
    for item in items:
        if not isinstance(item, dict) or not {"name", "public"} <= set(item) <= {"name", "public", "roles"}:
            raise _bad(
                "approvals", "keys", item, 'write {name = "...", public = "..."}; `spak keys show` does'
            )
        name, public, roles = item["name"], item["public"], item.get("roles", [approval.APPROVER])
        if not isinstance(name, str) or not 0 < len(name) <= 64 or not name.isprintable():
            raise _bad("approvals", "keys", name, "a name is a text of at most 64 characters")
        if not isinstance(public, str) or approval.decoded(public, 32) is None:
            raise _bad("approvals", "keys", public, "a public key is what `spak keys show` prints")
        if not isinstance(roles, list) or not roles or not all(role in approval.ROLES for role in roles):
            raise _bad("approvals", "keys", roles, f"roles are {', '.join(approval.ROLES)}")
        if any(name == other["name"] or public == other["public"] for other in found):
            raise _bad("approvals", "keys", name, "list each name and each key once")
        found.append({"id": approval.key_id(public), "name": name, "public": public, "roles": roles})
    return tuple(found)


def _law_files(items: Sequence[Any], folder: Path) -> tuple[Path, ...]:
    """Raises: UsageError `usage.config`."""
    found: list[Path] = []
    for item in items:
        if not isinstance(item, str) or not item:
            raise _bad("policy", "law", item, 'name the files of the operator\'s law: law = ["law.mg"]')
        file = data.law(item) or folder / Path(item).expanduser()
        if any(file.name == other.name for other in found):
            raise _bad("policy", "law", item, "give each file a name of its own")
        found.append(file)
    return tuple(found)


def _bad(table: str, key: str, value: object, hint: str) -> UsageError:
    return UsageError("usage.config", f"[{table}] {key} can not be {value!r}", hint)
