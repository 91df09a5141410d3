"""The port of validators: what is measured against what, and what was seen. The kernel derives the signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from spak.cancel import Cancel
from spak.lang.catalog import ValidatorEntry
from spak.ports.sandbox import Heard, Launcher, Limits
from spak.ports.tools import Toolchain


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that was or will be measured: named files by content."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """Role (`binary`, `source`) to content."""


Asked = Mapping[str, str]
"""An item of a prompt: `{role, name, text}`."""
Ask = Callable[[Sequence[Asked], Mapping[str, Any]], str]
"""Asks the configured model: the items and the schema that its answer has to fit; gives its text.

Raises: UnavailableError `unavailable.judge` where no model is configured, RunError `llm.*`.
"""


@dataclass(frozen=True, slots=True)
class MeasureCall:
    """What is to be measured, and against which earlier candidates."""

    id: str
    validator: str
    options: Mapping[str, Any]
    workspace: Path
    launcher: Launcher | None
    limits: Limits = field(default_factory=Limits)
    toolchain: Toolchain | None = None
    seed: int = 0
    """Hidden from the candidate; inputs and sizes are drawn from it."""
    rivals: Mapping[str, Subject] = field(default_factory=dict)
    """`incumbent`, `baseline`, `runner_up`: what the candidate is compared with, by name."""
    rule: Mapping[str, int] = field(default_factory=dict)
    """The MetricRule's integers: margin_num, margin_den, evidence, max_pairs; higher (1: more is better)."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """The texts of problems that the run began with, by the name that options give them."""
    inherit: tuple[int, ...] = ()
    cancel: Cancel | None = None
    heard: Heard | None = None
    ask: Ask | None = None
    hides: Callable[[str], bool] = lambda path: False
    """Whether a path of the workspace leads to a file of secrets: no check of texts on this side reads it."""
    changed: Callable[[], Mapping[str, bytes | None]] = dict
    """The files that differ from the run's beginning, each with what it held then; None: it was not there."""
    original: Path | None = None
    """The folder that the workspace is a copy of; a proposer asks what exists there, PyTest its recording."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a validator saw. The kernel derives the signal; a validator never names one.

    status: `measured` with samples, `static` evidence only, `checked` pass-or-fail without a metric,
    `void` (the measurement itself is worthless: retry), `unavailable` (no device), `timeout`.
    """

    status: Literal["measured", "static", "checked", "void", "unavailable", "timeout"]
    checks: tuple[Mapping[str, Any], ...] = ()
    """`{name, ok, code, detail}`; all must be ok. `detail` decides nothing."""
    metrics: Mapping[str, float | int] = field(default_factory=dict)
    pairs: tuple[Mapping[str, Any], ...] = ()
    """`{rival, process, order, candidate:[ns,ns,ns], incumbent:[ns,ns,ns]}` in the order taken."""
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    subject: Subject = Subject()
    diagnostics: tuple[Mapping[str, Any], ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    wall_ms: int = 0
    cpu_ms: int = 0


class Validator(Protocol):
    """Something that checks or measures the files of a task."""

    entry: ValidatorEntry

    def measure(self, call: MeasureCall) -> Measurement:
        """Measure. Raises: Cancelled within a second of `call.cancel`."""


class Sealed(Protocol):
    """Checks that judge what a run made, once, as its last step, and whose files no run sees."""

    @property
    def hash(self) -> str:
        """The name of the checks and their files as they are now. Raises: UserError where they are gone."""

    def measure(self, call: MeasureCall, begun: Path) -> Measurement:
        """What they say of the workspace; `begun` has the files that the run began with. `hides` is true of
        paths that they do not see. Raises: Cancelled; UnavailableError where one could not be carried out."""


@runtime_checkable
class Keeping(Protocol):
    """A validator that keeps something, as a started sandbox, from one measurement of a run to the next."""

    def close(self) -> None:
        """End what is kept; idempotent. A later measurement starts it again."""
