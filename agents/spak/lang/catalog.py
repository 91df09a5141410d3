"""The catalog: names, schemas, triggers and classes of everything a spec may mention.

Built in `spak.config` from the tables of tools, validators, proposers, backends and launchers; handed to
check, compile, the language server and, as JSON, to genesis. Pure data: it starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

EffectClass = Literal["pure", "costly", "effect"]
"""pure: may be repeated and shares an fsync; costly: repeated at a price; effect: changes the world."""

OnFail = Literal["stop", "retry", "continue"]
"""What a non-zero exit of a tool step means unless the step says otherwise (`on_fail:`): end the task with
`fail`, go back to the task's proposer with R4 (else stop), or go on as if nothing had happened."""


BACKEND_ALIASES: Mapping[str, str] = {"gemini_cli_sim": "manual"}
"""Other names of backends: the seeds' simulation shows the prompt and a person types the answer.
Source: seed 002 section 4.3."""


def backend_name(name: str) -> str:
    """The backend that a name or an alias stands for; a name that nobody knows stays."""
    return BACKEND_ALIASES.get(name, name)


USES = frozenset({"reads", "edits", "writes", "deletes", "tracks", "runs", "host", "text"})
"""Paths: read, changed in place, made by a program, deleted, committed. Then a program or code that is run,
an address that is connected to, and text, which does nothing by itself."""


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """What is known of a tool without running it; its schema is in the pinned dialect."""

    name: str
    version: int
    summary: str
    schema: Mapping[str, Any]
    effect: EffectClass = "effect"
    on_fail: OnFail = "stop"
    sandboxed: bool = True
    writes: bool = True
    idempotent: bool = False
    aliases: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    """Other names that a step may give to arguments, each with the argument's own."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """What each argument is to the policy: one of USES; `reads=.` is a path with its default, `reads?` one
    that may be left out. Genesis records it, and the facts about a call follow from it. The table of tools
    takes no tool that leaves one out. A tool from a file says instead what all of its calls may use: the
    member `secret://`, one `secret://NAME` for each secret, and `https://host:443` with `host=N` for each
    host, N being the most requests of a call."""


@dataclass(frozen=True, slots=True)
class ValidatorEntry:
    """What is known of a validator without running it."""

    name: str
    version: int
    summary: str
    schema: Mapping[str, Any]
    triggers: tuple[str, ...] = ("success", "fail", "timeout")
    metric: str = ""
    effect: EffectClass = "costly"
    device: str = ""
    axioms: str = ""
    """The option that takes the SYSTEM_MODEL's axioms where a spec leaves it out."""


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """A proposer, a backend, a launcher or a check of an axiom; `rank` orders launchers by strictness."""

    name: str
    summary: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tools, validators, proposers, backends and launchers by name, as a spec may use them."""

    tools: Mapping[str, ToolEntry] = field(default_factory=dict)
    validators: Mapping[str, ValidatorEntry] = field(default_factory=dict)
    proposers: Mapping[str, NamedEntry] = field(default_factory=dict)
    backends: Mapping[str, NamedEntry] = field(default_factory=dict)
    launchers: Mapping[str, NamedEntry] = field(default_factory=dict)
    checks: Mapping[str, NamedEntry] = field(default_factory=dict)
    """What `AXIOM ... CHECK name {...}` may name. None are known to the catalog of a genesis record, whose
    spec was judged before."""

    def tool(self, name: str) -> ToolEntry | None:
        """The tool of that name or alias (`nvcc`, `write_cuda` and other names of the seeds are aliases)."""
        found = self.tools.get(name)
        if found is not None:
            return found
        return next((tool for tool in self.tools.values() if name in tool.aliases), None)

    def to_json(self) -> dict[str, Any]:
        """The catalog as it stands in genesis, without `checks`; `from_json` gives it back."""
        made = asdict(self)
        del made["checks"]
        return made

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Catalog:
        """The catalog of a genesis record. Raises: KeyError, TypeError where it is none."""
        return cls(
            tools={
                name: ToolEntry(**{**item, "aliases": tuple(item["aliases"])})
                for name, item in value["tools"].items()
            },
            validators={
                name: ValidatorEntry(**{**item, "triggers": tuple(item["triggers"])})
                for name, item in value["validators"].items()
            },
            **{
                table: {name: NamedEntry(**item) for name, item in value[table].items()}
                for table in ("proposers", "backends", "launchers")
            },
        )
