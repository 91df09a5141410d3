"""The ports: what the runner asks of the outside, and the data that passes.

Adapters (ledger, workspace, sandbox, tools, validators, proposers, llm) implement these and know nothing of
each other. One contract suite per port runs over all of its adapters. Paths are host paths unless said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from spak.cancel import Cancel
from spak.kernel.snapshot import Snapshot
from spak.lang.catalog import NamedEntry, ToolEntry, ValidatorEntry
from spak.records import Record

# ---- sandbox -------------------------------------------------------------------------------------------

MIB = 1 << 20

Heard = Callable[[int, bytes], None]
"""Gets what a job puts out while it runs: the number of the stream (1 output, 2 errors) and bytes of it, in
order, in whatever thread reads them. It comes back at once and raises nothing; it decides nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    wall_s: float = 60.0
    cpu_s: int = 60
    memory_bytes: int = 2048 * MIB
    processes: int = 128
    file_bytes: int = 64 * MIB
    output_bytes: int = MIB
    """How much of each stream is kept: half from the head, half from the tail; the rest only counted."""
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Job:
    """One command line for a launcher. The workspace is `/ws` inside, and the working directory."""

    argv: tuple[str, ...]
    workspace: Path
    writable: bool = True
    repository: bool = False
    """Whether `.git` at the top of a writable workspace may be written; else it is shown read-only."""
    masked: tuple[str, ...] = ()
    """Paths below the workspace, without links, that the job does not see: a line instead, or nothing."""
    whole: bool = False  # the runner's own: nothing is masked in it
    limits: Limits = Limits()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    """The working directory instead: below the workspace, without links on its way."""
    binds: tuple[Path, ...] = ()
    """Host folders or files shown read-only at the same path inside (toolchains)."""
    stdin: bytes = b""
    inherit: tuple[int, ...] = ()
    """Descriptors that the sandboxed process keeps (the workspace lock)."""
    heard: Heard | None = None
    cancel: Cancel | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    data: bytes = b""
    size: int = 0
    sha256: str = ""
    truncated: bool = False


Status = Literal["exited", "timeout", "oom", "limit", "launcher", "crash"]
"""exited: it ended by itself, exit code valid; limit: a resource limit ended it; launcher: it never started;
crash: it died by a signal of its own making (`exit` = 128 + signal)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    status: Status
    exit: int = 0
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    wall_ms: int = 0
    cpu_ms: int = 0
    detail: str = ""


class Child(Protocol):
    """A sandboxed process that its starter talks to and ends itself (the profiler's)."""

    pid: int
    """The candidate's own process id, seen from outside (its CPU clock can be read)."""

    def poll(self) -> int | None: ...
    def kill(self) -> None:
        """End the whole group; returns when nothing of it lives."""

    def wait(self, timeout_s: float) -> Outcome: ...


class Launcher(Protocol):
    entry: NamedEntry

    def probe(self) -> str:
        """Empty when a nonce came back from inside and a forbidden read failed; else why not, and a mend."""

    def run(self, job: Job) -> Outcome:
        """Run it to its end. Raises: Cancelled within a second of `job.cancel`, when nothing of it lives."""

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Child:
        """Start without waiting, with the given descriptors open inside at the same numbers."""


# ---- tools and validators ------------------------------------------------------------------------------


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
    limits: Limits = Limits()
    toolchain: Toolchain | None = None
    inherit: tuple[int, ...] = ()
    archive: Archive | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    """What was seen when it was permitted (spak.kernel.observed): hosts are used at the addresses in it."""
    reach: tuple[str, ...] = ("public",)  # kinds of addresses (spak.policy.urls), whatever was permitted
    shown: Callable[[str, str], str | None] | None = None
    """For a text and a path: the hash of the file's content that the text's author could see, or None."""
    heard: Heard | None = None  # for jobs whose output is for people
    repository: bool = False  # whether it may change `.git` (spak.policy.repository)
    cancel: Cancel | None = None


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


class Tool(Protocol):
    entry: ToolEntry

    def run(self, call: Call) -> ToolResult:
        """Do it. Raises nothing for what a user can cause: that is a status or an exit code; Cancelled
        within a second of `call.cancel`."""


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
    id: str
    validator: str
    options: Mapping[str, Any]
    workspace: Path
    launcher: Launcher | None
    limits: Limits = Limits()
    toolchain: Toolchain | None = None
    seed: int = 0
    """Hidden from the candidate; inputs and sizes are drawn from it."""
    rivals: Mapping[str, Subject] = field(default_factory=dict)
    """`incumbent`, `baseline`, `runner_up`: what the candidate is compared with, by name."""
    rule: Mapping[str, int] = field(default_factory=dict)
    """The MetricRule's integers: margin_num, margin_den, evidence, max_pairs; higher (1: more is better)."""
    inherit: tuple[int, ...] = ()
    cancel: Cancel | None = None
    heard: Heard | None = None
    ask: Ask | None = None


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
    entry: ValidatorEntry

    def measure(self, call: MeasureCall) -> Measurement:
        """Measure. Raises: Cancelled within a second of `call.cancel`."""


# ---- proposers and models ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """One earlier candidate of a task and what became of it, oldest first in a history."""

    args: Mapping[str, Any]
    params: Mapping[str, Any]
    outcome: Literal["improved", "measured", "fail"]
    value: float | None = None
    """The metric, in its own unit; None when there is none."""
    ratio: float | None = None
    """candidate / incumbent as the pairs saw it, when they were taken."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    id: str
    task: str
    step: str
    turn: int
    """How many plans this task asked for before."""
    seed: int
    options: Mapping[str, Any]
    space: Mapping[str, Any]
    tools: Mapping[str, ToolEntry]
    history: Sequence[Trial] = ()
    error: Mapping[str, Any] | None = None
    heuristics: tuple[str, ...] = ()
    cancel: Cancel | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    tool: str
    args: Mapping[str, Any]
    score: int = 0
    """Higher is preferred; ties go to the lower index."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The point of the parameter space that it stands for, for the history and the table of candidates."""


class Proposer(Protocol):
    entry: NamedEntry

    def propose(self, request: PlanRequest) -> Sequence[Candidate]:
        """Candidates for the next turn; empty when the space is used up. Same request, same answer.
        Raises: UsageError, Cancelled."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a backend is asked: ordered items `{role, name, text}`, and who it is for."""

    id: str
    items: tuple[Mapping[str, str], ...]
    """`role` is `system`, `user` or `assistant`; `name` says what the item is (`goal`, `error`, ...)."""
    role: str = ""
    kind: Literal["ask", "plan"] = "ask"
    task: str = ""
    schema: Mapping[str, Any] | None = None
    """What the answer has to fit. An engine that can mask does; the caller validates in any case."""
    prefix: int = 0
    """How many items, from the first on, stay the same over the calls of a task: what a cache may keep."""
    model: str = ""
    """Another model than the configured one."""
    max_tokens: int = 0
    """The longest answer; 0 is the backend's configured limit."""
    timeout_s: float = 0.0  # for the whole call with its retries; 0 is the configured limit
    params: Mapping[str, Any] = field(default_factory=dict)
    """Sampling: `temperature`, `top_p`, `seed`, `stop`; they override the configured ones."""
    step: str = ""
    given: tuple[Mapping[str, Any], ...] = ()
    """The recorded answers that this run has already been given (`Answer.recorded`), from its ledger."""

    @property
    def text(self) -> str:
        return "\n\n".join(item["text"] for item in self.items)


Finish = Literal["stop", "length", "refused", ""]
"""Why an answer ended: by itself, cut at max_tokens, refused by the provider, or not said."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    usage: Mapping[str, int] = field(default_factory=dict)
    """Tokens: `input` (all of the prompt), `output`, and of the input `cached` read from and `cache_write`
    written to a prefix cache. A key that the engine did not report is absent."""
    model: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The sampling parameters as sent."""
    finish: Finish = ""
    latency_ms: int = 0
    cost_nanousd: int | None = None
    """What the call cost in 1e-9 US dollars, by the price table; None when model or usage is not known."""
    logprobs: tuple[float, ...] | None = None
    """Natural log-probability of each output token; None when the engine does not give them."""
    tries: int = 1
    """How often the wire was tried: one and the retries after 429, 5xx and cut streams."""
    told: bool = True
    """Whether the usage is all there is to say: an engine that kept its own to itself makes this False."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """Which answer of which recording this is: `name`, `line` from 1, and its `hash`. It is recorded with the
    answer, so that a run that is taken up again goes on with the next one."""

    @property
    def tokens(self) -> int:
        """What counts against a token budget: `cached` and `cache_write` are part of `input`."""
        return self.usage.get("input", 0) + self.usage.get("output", 0)


class Backend(Protocol):
    entry: NamedEntry

    def check(self) -> None:
        """Return if it can answer here and now.

        Raises: UnavailableError `llm.*`: no key, not reachable, no such model; the hint mends it.
        """

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer | None:
        """The answer, or None when a person will give it later (the run waits).

        `on_text` gets each piece of text as it comes, in the calling thread; after a retry it gets the text
        from its start again, announced by an empty piece. When `cancel` is set the call ends within a second.
        What the model wrote is returned as it is, fitting or not: judging it is the caller's.
        Raises: UnavailableError `llm.*` when there is no answer; RunError `llm.cancelled`.
        """


@runtime_checkable
class Sized(Protocol):
    """A backend that knows how much its model takes in."""

    def window(self, prompt: Prompt) -> int:
        """Tokens that the model of a prompt reads and writes at once; 0 where it is not known."""


@runtime_checkable
class Priced(Protocol):
    """A backend that knows what a call can cost."""

    def bound(self, prompt: Prompt, input_tokens: int) -> int | None:
        """The most nano-dollars that a call can cost; None when its model has no known price."""


class Redacting(Protocol):
    """What takes secrets out of what is stored. `text` and `value` raise RunError `llm.redaction`."""

    def knowing(self, found: Collection[str]) -> Redacting:
        """The same, which also takes out these values of files of secrets."""

    def text(self, text: str) -> str: ...
    def value(self, value: Any) -> Any: ...

    def stream(self, put: Callable[[str], None]) -> Callable[[str], None]:
        """For pieces of a text as they come: what is handed on never holds a part of a secret."""

    def whole(self, text: str) -> int:
        """How much of the beginning of a text has the same secrets in it, however the text goes on."""

    def rest(self, text: str, after: int = 0) -> int:
        """How much of the beginning may be the rest of a secret; `after` letters before it are known."""


# ---- stores --------------------------------------------------------------------------------------------


class Blobs(Protocol):
    def put(self, data: bytes) -> str:
        """Keep the bytes under their SHA-256 (base64url) and return it; idempotent."""

    def get(self, digest: str) -> bytes:
        """Raises: LedgerError `ledger.blob` when it is missing or does not match its name."""

    def has(self, digest: str) -> bool:
        """Whether it was put, for this run; what is durable by then only `flush` says."""

    def flush(self) -> None:
        """Make everything put so far durable."""


class Ledger(Protocol):
    """An append-only chain of records, held by one writer at a time."""

    run: str
    count: int
    head: str
    blobs: Blobs
    fence: int
    """Grows with every lease of the run; 0 where a lease cannot be lost while its holder lives."""

    def read(self, start: int = 0) -> Iterator[tuple[Record, bytes]]:
        """Records with their exact lines, from a sequence number on."""

    def kept(self) -> Snapshot | None:
        """The one kept last. Raises: LedgerError `ledger.snapshot_discarded`: it is not of these records."""

    def keep(self, snapshot: Snapshot | None) -> None:
        """Keep one of the records so far, which are durable, or none. It may be lost: that is no error."""

    def append(self, records: Sequence[Record]) -> list[Record]:
        """Write the records in one go and return them with seq and hash; durable only after `flush`."""

    def flush(self) -> None: ...

    def confirm(self) -> None:
        """Ask whoever grants leases whether this one is held. Raises: LedgerError `ledger.lost_lease`."""

    def close(self) -> None:
        """Flush and give the lease back; twice is once."""


class Ledgers(Protocol):
    """Where runs live."""

    def create(self, run: str, genesis: Record) -> Ledger:
        """A new run, which exists with its genesis or not at all; the lease is held."""

    def open(self, run: str) -> Ledger:
        """Take the lease of a run.

        Raises: LedgerError `ledger.busy`, `ledger.unknown_run`, `ledger.tampered`.
        """

    def reader(self, run: str) -> Ledger:
        """Read without a lease; append is refused."""

    def runs(self) -> list[str]:
        """Run ids, oldest first."""
