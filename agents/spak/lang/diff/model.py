"""What a comparison of two specs says: changes, capabilities, flags. Frozen data with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Op = Literal["add", "remove", "change", "rename", "move", "reorder"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs. `path` names it as the new spec does, or as the old one where it is gone;
    `before` and `after` are JSON, None where there was or is nothing."""

    op: Op
    path: str
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True)
class Capability:
    """What the agent may do, or is held to, that differs. `widens` is True when the new spec is allowed more
    or held to less, None when that can not be told; `why` is a sentence about it."""

    kind: str
    change: Literal["gained", "lost", "changed"]
    path: str
    name: str
    before: Any = None
    after: Any = None
    widens: bool | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that a reviewer should not miss."""

    flag: Literal["widens", "breaking"]
    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Difference:
    """`equal` is about meaning; `formatting_only` says that the texts differ all the same. `renames` gives
    the new name of each renamed task by its old one."""

    equal: bool
    formatting_only: bool
    changes: tuple[Change, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    flags: tuple[Flag, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object that `spak diff --json` prints."""
        return {
            "equal": self.equal,
            "formatting_only": self.formatting_only,
            "changes": [
                {"op": item.op, "path": item.path, "before": item.before, "after": item.after}
                for item in self.changes
            ],
            "capabilities": [
                {
                    "kind": item.kind,
                    "change": item.change,
                    "path": item.path,
                    "name": item.name,
                    "before": item.before,
                    "after": item.after,
                    "widens": item.widens,
                }
                for item in self.capabilities
            ],
            "flags": [{"flag": item.flag, "path": item.path, "why": item.why} for item in self.flags],
            "renames": dict(self.renames),
        }
