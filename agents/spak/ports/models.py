"""The ports of proposers and of model backends: a plan request, a prompt, an answer, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from spak.cancel import Cancel
from spak.kernel.packet import Misfit
from spak.lang.catalog import NamedEntry, ToolEntry
from spak.ports.validators import MeasureCall


@dataclass(frozen=True, slots=True)
class Trial:
    """One earlier candidate of a task and what became of it, oldest first in a history."""

    args: Mapping[str, Any]
    params: Mapping[str, Any]
    outcome: Literal["improved", "measured", "fail", "refused"]
    """`refused`: an answer of a model that was no candidate; it has no arguments."""
    value: float | None = None
    """The metric, in its own unit; None when there is none."""
    ratio: float | None = None
    """candidate / incumbent as the pairs saw it, when they were taken."""
    code: str = ""
    """Of a failure."""
    said: str = ""
    """What was printed or found wrong, shortened; text of the candidate's, to be shown as data."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a proposer knows when it is asked for candidates."""

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
    prior: Sequence[Trial] = ()
    """Trials of an earlier run in the same space; their values may be of another machine, and none of them
    counts as tried."""
    cancel: Cancel | None = None
    items: tuple[Mapping[str, str], ...] = ()
    """What the kernel would ask a model: `{role, name, text}`, in order. Only an Asking proposer gets it."""
    baseline: str | None = None
    """The source that the run measured as its baseline; only for an Asking proposer, None without one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One call that is proposed; a higher score is preferred."""

    tool: str
    args: Mapping[str, Any]
    score: int = 0
    """Higher is preferred; ties go to the lower index."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The point of the parameter space that it stands for, for the history and the table of candidates."""
    checks: Sequence[Mapping[str, Any]] = ()
    """Verdicts `{name, ok, code, detail}` that it met; the kernel takes none with one that is not ok."""


@dataclass(frozen=True, slots=True)
class Search:
    """The end of a proposer's search: candidates, or why there is none."""

    candidates: Sequence[Candidate]
    record: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters and counts, which decide nothing."""
    refusal: Mapping[str, Any] | None = None
    """`{code, message, hint}` and evidence, where there is no candidate; the run ends as refused."""


class Proposer(Protocol):
    """A generator of candidates. It is given a seed and draws nothing by itself."""

    entry: NamedEntry

    def propose(self, request: PlanRequest) -> Sequence[Candidate] | Search:
        """Candidates for the next turn; empty when the space is used up, or a Search whose refusal says why
        there is none. Same request, same answer, but for an agent outside. Raises: UsageError, Cancelled."""


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
        """All items as one text."""
        return "\n\n".join(item["text"] for item in self.items)


Finish = Literal["stop", "length", "refused", ""]
"""Why an answer ended: by itself, cut at max_tokens, refused by the provider, or not said."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend answered, and what it cost."""

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
    complete_usage: bool = True
    """Whether the usage is all there is to say: an engine that kept its own to itself makes this False."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """Which answer of which recording this is: `name`, `line` from 1, and its `hash`. It is recorded with the
    answer, so that a run that is taken up again goes on with the next one."""

    @property
    def tokens(self) -> int:
        """What counts against a token budget: `cached` and `cache_write` are part of `input`."""
        return self.usage.get("input", 0) + self.usage.get("output", 0)


@dataclass(frozen=True, slots=True)
class Question:
    """What a proposer asks a model."""

    items: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]
    """What the answer has to fit."""
    prefix: int = 0
    """How many items, from the first on, stay the same over the questions of a task."""
    max_tokens: int = 0
    """The longest answer; 0 is the backend's configured limit."""


@runtime_checkable
class Searching(Protocol):
    """A proposer that runs code of the workspace, in the sandbox, to find candidates. Same files, same
    request, same answer; it writes nothing. It may put one question to a model, by `place.ask`."""

    entry: NamedEntry

    def search(self, request: PlanRequest, place: MeasureCall) -> Search:
        """Search. Raises: UserError where it cannot be carried out here and now; Cancelled."""


@runtime_checkable
class Asking(Protocol):
    """A proposer that asks a model. Both functions are pure: same request, same question; same answer to it,
    same candidates. A Misfit says why there is none, as an answer of a model that nobody could use."""

    entry: NamedEntry

    def question(self, request: PlanRequest) -> Question | Misfit:
        """What the model is asked for the next turn. Raises: UsageError for options that do not fit."""

    def read(self, request: PlanRequest, answer: str) -> Sequence[Candidate] | Misfit:
        """What an answer to the request's question proposes. Raises: UsageError, as `question`."""


class Backend(Protocol):
    """Whoever answers prompts: a model, a recording, people."""

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
