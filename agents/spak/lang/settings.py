"""The settings of the language: one table of keys: type, default, place, the version that brought them.

`check` reads types and places from here, the parser's recovery the keys, docs/language.md the rest (a test
compares). A new setting is a new row and its use in `compile`; the grammar does not change.
"""

# ruff: noqa: E501  a row of the table reads best as one line

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GRAMMAR_VERSION = 1
"""Raise it when a text that parsed before no longer parses, or means something else."""

TRIGGERS: Mapping[str, str] = {
    "success": "every step is done and what judges the task is content",
    "fail": "a step, `success:` or the VALIDATOR says no; a heuristic is added to the next prompt",
    "timeout": "a tool or the VALIDATOR ran out of time",
    "metric_improved": "a VALIDATOR with a metric finds the candidate better than the best so far",
    "plateau": "`patience` evaluations without gain, or `evaluations` in all",
    "budget_low": "`low_percent` of BUDGET's `tokens` are used up: once, at the next end of a task with such an edge, in place of its verdict",
}
"""What an edge of NEXT may wait for; which of them a VALIDATOR gives is in its entry of the catalog."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A key. `schema` is what its value must fit (schema.py) where it is plain; `kind` says how it is read:
    plain, name (of a catalog table), tagged (a name with options), names (a list), map (a table of its own),
    inputs, space."""

    key: str
    where: str
    kind: str
    about: str
    example: str
    default: Any = None
    schema: Mapping[str, Any] = field(default_factory=dict)
    table: str = ""
    """For names: the table of the catalog; for maps: the place of the keys inside."""
    since: str = "0.1"


def _count(minimum: int = 1) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum}


def _choice(*words: str) -> dict[str, Any]:
    return {"enum": list(words)}


_TEXT = {"type": "string"}
MEMORIES = ("FIFO", "SUMMARIZE", "FLUSH_ON_TRANSITION", "PRUNE_ON_CONFIRM")
SANDBOXES = ("RESTRICTED", "DOCKER", "GVISOR")
MODES = ("stepwise", "semi_auto", "full_auto")
APPROVALS = ("deny", "ask")
EXPORTS = ("mcp",)

TABLE: tuple[Setting, ...] = (
    Setting("CONFIG", "agent", "map", "how the agent runs", "CONFIG { MODE full_auto }", table="config"),
    Setting("POLICY", "agent", "plain", "policy text or a file's name", 'POLICY "rules.mg"', "", _TEXT),
    Setting("INPUTS", "agent", "inputs", "typed inputs with defaults", "INPUTS { n: int = 512 }"),
    Setting("IMPORT", "agent", "plain", "another file's SYSTEM_MODELs and tasks", 'IMPORT "shared/house.spak"', "", _TEXT),
    Setting("EXPORT", "agent", "plain", "where else it is offered: to clients of the platform's MCP server, as a tool", "EXPORT mcp", None, _choice(*EXPORTS), since="0.2"),
    Setting("MEMORY", "config", "plain", "what the model remembers", "MEMORY FLUSH_ON_TRANSITION", "FLUSH_ON_TRANSITION", _choice(*MEMORIES)),
    Setting("SANDBOX", "config", "name", "the weakest launcher that will do", "SANDBOX RESTRICTED", "RESTRICTED", table="launchers"),
    Setting("MODE", "config", "plain", "where the run stops", "MODE full_auto", None, _choice(*MODES)),
    Setting("AUTO_STEPS", "config", "plain", "model steps between stops of semi_auto", "AUTO_STEPS 5", 0, _count()),
    Setting("BACKEND", "config", "name", "the model backend", "BACKEND manual", "", table="backends"),
    Setting("PROPOSER", "config", "tagged", "the generator that fills plans", "PROPOSER tuner { strategy: climb }", "", table="proposers"),
    Setting("APPROVALS", "config", "plain", "whether an action that a signed approval would permit waits for one", "APPROVALS ask", "deny", _choice(*APPROVALS)),
    Setting("HOSTS", "config", "plain", "hosts that requests may reach, in addition to those of the operator's law and the team's rules", 'HOSTS ["docs.python.org"]', (), {"type": "array", "maxItems": 256, "items": {"type": "string", "minLength": 1, "maxLength": 253}}),
    Setting("HISTORY", "config", "plain", "commits of your repository, of a run's source or of a suite's case, without files of secrets, that jobs see in theirs", "HISTORY 20", 0, {**_count(0), "maximum": 1000}, since="0.2"),
    Setting("BUDGET", "config", "map", "what a run may use up", "BUDGET { steps: 200 }", table="budget"),
    Setting("RETRIES", "config", "plain", "retries of each task", "RETRIES 3", 3, _count(0)),
    Setting("steps", "budget", "plain", "steps in all, 0 for no limit", "steps: 200", 1000, _count(0)),
    Setting("elapsed_s", "budget", "plain", "seconds of effects, 0 for no limit", "elapsed_s: 240", 3600, {"type": "number", "minimum": 0}),
    Setting("tokens", "budget", "plain", "tokens of models, 0 for no limit", "tokens: 100000", 0, _count(0)),
    Setting("cost", "budget", "plain", "micro-dollars of models (500000 is $0.50), 0 for no limit", "cost: 500000", 0, _count(0)),
    Setting("low_percent", "budget", "plain", "percent of `tokens` at which `budget_low` is given", "low_percent: 80", 80, {**_count(), "maximum": 99}, since="0.2"),
    Setting("extend_percent", "budget", "plain", "percent of steps, elapsed_s, tokens and cost that a person or the law may add while the run is under way, in all", "extend_percent: 50", 0, {**_count(0), "maximum": 1000}, since="0.2"),
    Setting("watchdog", "budget", "plain", "turns with the same results in a row that end a run, 0 for no limit", "watchdog: 3", 3, _count(0)),
    Setting("window", "budget", "plain", "results and answers of the longest turn that the watchdog looks for", "window: 12", 12, _count(2)),
    Setting("rollbacks", "budget", "plain", "rollbacks in a row on one tool that end a run", "rollbacks: 3", 3, _count()),
    Setting("requests", "budget", "plain", "requests that tools may send, 0 for no limit", "requests: 20", 0, _count(0)),
    Setting("request_bytes", "budget", "plain", "bytes of those requests, 0 for no limit", "request_bytes: 65536", 0, _count(0)),
    Setting("GOAL", "task", "plain", "what the task is for", 'GOAL "Make it faster."', "", _TEXT),
    Setting("TOOLS", "task", "names", "the tools that its plans may choose from; a step needs none", "TOOLS [cc, write_file]", (), table="tools"),
    Setting("OUTPUT", "task", "plain", "the variable that has what the plan's tool wrote, in a task without steps", "OUTPUT notes", "", _TEXT, since="0.2"),
    Setting("VALIDATOR", "task", "tagged", "what judges it, or none", "VALIDATOR CpuProfiler { warmup: 3 }", "", table="validators"),
    Setting("PROPOSER", "task", "tagged", "the generator that fills its plan", "PROPOSER tuner { strategy: climb }", "", table="proposers"),
    Setting("SPACE", "task", "space", "the parameters to search", "SPACE { tile: [8, 16] unroll: range(1, 8) }"),
    Setting("RETRIES", "task", "plain", "retries after a fail", "RETRIES 3", 3, _count(0)),
    Setting("RULE", "task", "map", "when a measurement is an improvement", "RULE { margin_percent: 1 }", table="rule"),
    Setting("BUDGET", "task", "map", "what its loop may use up", "BUDGET { evaluations: 60 }", table="task budget"),
    Setting("metric", "rule", "plain", "the metric's name", "metric: time_ns", "the validator's", _TEXT),
    Setting("better", "rule", "plain", "which way is up", "better: lower", "lower", _choice("lower", "higher")),
    Setting("margin_percent", "rule", "plain", "the least gain that counts", "margin_percent: 1", 1, {"type": "number", "minimum": 0, "maximum": 90}),
    Setting("evidence", "rule", "plain", "odds that a verdict needs", "evidence: 20", 20, _count(2)),
    Setting("max_pairs", "rule", "plain", "most paired samples", "max_pairs: 80", 80, _count()),
    Setting("patience", "rule", "plain", "evaluations without gain until plateau", "patience: 5", 5, _count()),
    Setting("evaluations", "rule", "plain", "evaluations until plateau", "evaluations: 60", 60, _count()),
    Setting("patience", "task budget", "plain", "as in RULE", "patience: 5", 5, _count()),
    Setting("evaluations", "task budget", "plain", "as in RULE", "evaluations: 60", 60, _count()),
    Setting("every_s", "poll", "plain", "seconds between two polls", "every_s: 5", 5, {"type": "number", "minimum": 0, "maximum": 86400}, since="0.2"),
    Setting("limit", "poll", "plain", "polls until the step fails", "limit: 12", 12, {**_count(), "maximum": 10000}, since="0.2"),
)  # fmt: skip

PLACES: Mapping[str, Mapping[str, Setting]] = {
    place: {item.key: item for item in TABLE if item.where == place}
    for place in dict.fromkeys(item.where for item in TABLE)
}
KEYS = frozenset(item.key for item in TABLE if item.where in ("agent", "config", "task"))
"""Keys in capitals, as they stand in bodies."""


def find(place: str, key: str) -> Setting | None:
    """The setting of that key at a place; the case of letters does not matter."""
    table = PLACES[place]
    return table.get(key) or table.get(key.upper()) or table.get(key.lower())


def place_of(key: str) -> str:
    """Where a key belongs, if anywhere."""
    return next((item.where for item in TABLE if item.key.lower() == key.lower()), "")


def example(key: str) -> str:
    """A line that shows the key's use."""
    return next((f"for example: {item.example}" for item in TABLE if item.key == key), "")
