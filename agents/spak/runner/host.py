"""What a run may use on this machine: tables of adapters, the launcher, the toolchain, the limits.

Made by `spak.config` (or by a test); the runner only looks things up in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spak.errors import UnavailableError
from spak.ports import (
    Asking,
    Backend,
    Keeping,
    Launcher,
    Limits,
    Predicate,
    Proposer,
    Redacting,
    Sealed,
    Searching,
    Tool,
    Toolchain,
    ToolResult,
    Validator,
)
from spak.runner.secrets import Secrets


def no_hint(texts: Iterable[str]) -> str:
    """Of a workspace that is no copy, or whole."""
    return ""


@dataclass(frozen=True, slots=True)
class Own:
    """What the operator adds to what ships, by name."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    validators: Mapping[str, Validator] = field(default_factory=dict)
    backends: Mapping[str, Backend] = field(default_factory=dict)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    """What each of them is: the hash of its declaration, or a distribution and its version. The names of
    backends and predicates are `backend NAME` and `predicate NAME`."""


SHIPPED = Own()
"""None of one's own."""


@dataclass(frozen=True, slots=True)
class Host:
    """What a run has of the machine it is on: tools, backends, launchers, secrets."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    validators: Mapping[str, Validator] = field(default_factory=dict)
    proposers: Mapping[str, Proposer | Asking | Searching] = field(default_factory=dict)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    backend: Backend | None = None
    launcher: Launcher | None = None
    toolchain: Toolchain = field(default_factory=Toolchain)
    limits: Limits = field(default_factory=Limits)
    secrets: Secrets = field(default_factory=Secrets)
    redactor: Redacting | None = None
    shown_secrets: tuple[str, ...] = ()
    """Patterns of paths that are no files of secrets, whatever their names say."""
    reach: tuple[str, ...] = ("public",)
    """The kinds of addresses that requests of tools may reach."""
    sealed: Sealed | None = None
    """The checks that judge what the run made, as its last step."""
    hint: Callable[[Iterable[str]], str] = no_hint
    """What helps where one of the texts names a path that the run's copy lacks; empty where nothing does."""

    def tool(self, name: str) -> Tool:
        """Raises: UnavailableError `unavailable.tool` for one that is elsewhere."""
        if name not in self.tools:
            raise _elsewhere(name)
        return self.tools[name]

    def validator(self, name: str) -> Validator:
        """Raises: UnavailableError `unavailable.tool` for one that is elsewhere."""
        if name not in self.validators:
            raise _elsewhere(name)
        return self.validators[name]

    def hints(self, args: Mapping[str, Any], result: ToolResult) -> list[Mapping[str, Any]]:
        """Of a tool that failed where its arguments or its output name what the run's copy lacks."""
        if (result.status, result.exit) == ("exited", 0):
            return []
        texts = [item for item in args.values() if isinstance(item, str)]
        hint = self.hint([*texts, result.output.decode("utf-8", "replace")])
        return [{"code": "workspace.left_out", "message": hint}] if hint else []

    def answered_by(self, backend: Backend) -> Host:
        """The same with another backend."""
        return replace(self, backend=backend)

    def release(self) -> None:
        """End what validators keep between measurements, and servers of tools."""
        for adapter in (*self.validators.values(), *self.tools.values()):
            if isinstance(adapter, Keeping):
                adapter.close()


def _elsewhere(name: str) -> UnavailableError:
    hint = "name its file or its package in [tools] of spak.toml"
    return UnavailableError("unavailable.tool", f"{name} is not here", hint)
