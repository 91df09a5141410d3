"""The port of tools: a permitted call, what a tool did, the texts of the run that it may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spak.cancel import Cancel
from spak.costs.run_cost import NANOUSD, TOKENS
from spak.lang.catalog import ToolEntry
from spak.ports.sandbox import Heard, Launcher, Limits, Status

if TYPE_CHECKING:
    from spak.repository.commits import Commits


@dataclass(frozen=True, slots=True)
class Kept:
    """A text of a run that a prompt may name as `ref://N`: N, who made it, bytes."""

    ref: int
    name: str
    size: int


class Archive(Protocol):
    """The texts of a run: results of tools and answers, as its ledger holds them."""

    def refs(self) -> Sequence[Kept]:
        """All of them, oldest first."""

    def text(self, ref: int) -> str | None:
        """One of them, whole; None when there is none of that number."""


@dataclass(frozen=True, slots=True)
class Call:
    """A permitted tool call: arguments rendered, schema checked, secrets resolved."""

    id: str
    tool: str
    args: Mapping[str, Any]
    workspace: Path
    launcher: Launcher | None
    limits: Limits = field(default_factory=Limits)
    toolchain: Toolchain | None = None
    inherit: tuple[int, ...] = ()
    archive: Archive | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    """What was seen when it was permitted (spak.kernel.observed): hosts are used at the addresses in it."""
    reach: tuple[str, ...] = ("public",)  # kinds of addresses (spak.policy.urls), whatever was permitted
    shown: Callable[[str, str], str | None] | None = None
    """For a text and a path: the hash of the file's content that the text's author could see, or None."""
    heard: Heard | None = None  # for jobs whose output is for people
    repository: Commits | None = None
    """The commits of the run, for the tools that make and send them."""
    cancel: Cancel | None = None
    first: Callable[[], bool] = lambda: True
    """Writes down, durably, that it begins; False where that was written before: it may have been done."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Programs and read-only folders that tools may use inside a sandbox, found by `spak.config`."""

    programs: Mapping[str, str] = field(default_factory=dict)
    """Name (`gcc`, `python`, `pytest`, `ruff`, `nvcc`) to the absolute path inside the sandbox."""
    binds: tuple[Path, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool did. `key` holds only what a repetition would repeat: exit, named diagnostics; no clock."""

    status: Status
    exit: int = 0
    output: bytes = b""
    """What `{{last_tool_output}}` will show: standard output and error, as kept."""
    size: int = 0
    """Bytes that the tool wrote in all; `sha256` is of all of them."""
    sha256: str = ""
    truncated: bool = False
    key: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: tuple[Mapping[str, Any], ...] = ()
    """`{severity, file, line, code, message}`; severity is error, warning or info."""
    wall_ms: int = 0
    cpu_ms: int = 0
    anchors: Mapping[str, str | None] = field(default_factory=dict)
    """The hash of each changed file's content before the change, None where there was no file."""
    requests: int = 0
    """Requests that it sent to other hosts, which the run's BUDGET counts."""
    request_bytes: int = 0
    """Bytes of those requests."""
    model: str = ""
    """Of a call that asked a model: which, the tokens that it took, and billionths of a US dollar where its
    price is known."""
    tokens: int = 0
    cost_nanousd: int | None = None

    @property
    def side(self) -> dict[str, Any]:
        """What of it goes beside its record: what it took, and its output's size where that was cut."""
        found: dict[str, Any] = {"ms": self.wall_ms, "cpu_ms": self.cpu_ms}
        if self.requests or self.request_bytes:
            found |= {"requests": self.requests, "request_bytes": self.request_bytes}
        if self.tokens:
            found |= {TOKENS: self.tokens, "model": self.model}
            found |= {} if self.cost_nanousd is None else {NANOUSD: self.cost_nanousd}
        if self.truncated:
            found |= {"size": self.size, "sha256": self.sha256}
        return found


class Tool(Protocol):
    """Something that a step may do. Its entry says what it may touch."""

    entry: ToolEntry

    def run(self, call: Call) -> ToolResult:
        """Do it. Raises nothing for what a user can cause: that is a status or an exit code; Cancelled
        within a second of `call.cancel`."""
