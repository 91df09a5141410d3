"""A small world for kernel tests: programs made by hand, a catalog of plain tools, a driver that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from law_kit import under
from spak import canon
from spak.kernel.gate import Gate, compiled
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, State
from spak.kernel.step import step
from spak.lang.catalog import Catalog, NamedEntry, ToolEntry, ValidatorEntry
from spak.program import Budgets, Heuristic, MetricRule, Program, Proposing, Ref, Step, Task
from spak.records import Authority, Kind, Record

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
CATALOG = Catalog(
    tools={
        "write": ToolEntry("write", 1, "writes", TEXT, "effect"),
        "look": ToolEntry("look", 1, "looks", TEXT, "pure", writes=False),
        "poll": ToolEntry("poll", 1, "polls", TEXT, "pure", writes=False, idempotent=True),
        "mend": ToolEntry("mend", 1, "mends", TEXT, "effect", on_fail="retry"),
    },
    validators={
        "Timer": ValidatorEntry("Timer", 1, "times", {"type": "object"}, metric="time_ns"),
        "Tests": ValidatorEntry("Tests", 1, "tests", {"type": "object"}, effect="pure"),
    },
    proposers={"tuner": NamedEntry("tuner", "tunes")},
)
RULE = MetricRule("time_ns", patience=3, evaluations=20)
FAST = [{"rival": "incumbent", "candidate": [50, 51, 52], "incumbent": [100, 101, 102]}] * 8
SAME = [{"rival": "incumbent", "candidate": [100, 101, 102], "incumbent": [100, 101, 102]}] * 8


def tool(id: str, name: str = "look", on_fail: Any = "stop", **args: Any) -> Step:
    return Step(id, "tool", name, args or {"text": id}, on_fail=on_fail)


def program(*tasks: Task, **more: Any) -> Program:
    return Program("P", 4, tasks[0].name, {task.name: task for task in tasks}, **more)


PERMITS = "\n".join(f"permitted(Action) :- tool(Action, /{name})." for name in CATALOG.tools)
"""What the shipped law does not know, the operator's has to permit."""


def rules(made: Program, seed: int = 7, law: str = PERMITS) -> Rules:
    return Rules(made, CATALOG, seed, "root-0", "opening", _refs(made), _gate(law))


@cache
def _gate(law: str) -> Gate:
    return Gate(compiled(under(law), "", {}))


def _refs(made: Program) -> frozenset[str]:
    from spak.kernel.rules import _wanted

    return _wanted(made)


@dataclass
class World:
    """Runs a program: each effect is answered by `script`, a function of the effect and a counter."""

    rules: Rules
    script: Callable[[Effect, int], tuple[Kind, Mapping[str, Any]] | None]
    state: State = field(default_factory=State)
    records: list[Record] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    ms: int = 1

    def feed(self, kind: Kind, body: Mapping[str, Any], side: Mapping[str, Any] | None = None) -> State:
        record = Record(
            kind, Authority.PROPOSAL, canon.loads(canon.dumps(body)), at=len(self.records), side=side or {}
        )
        stepped = step(self.rules, self.state, record)
        self.state = stepped.state
        self.records += [record, *stepped.commits]
        self.effects += stepped.effects
        return self.state

    def run(self, limit: int = 400) -> World:
        if not self.records:
            self.feed(Kind.GENESIS, {})
        for count in range(limit):
            if self.state.ended or self.state.r6 is None:
                return self
            answer = self.script(self.state.r6, count)
            if answer is None:
                return self
            self.feed(answer[0], {"of": self.state.r6.id, **answer[1]}, {"ms": self.ms})
        raise AssertionError(f"still running after {limit} effects")

    def kinds(self) -> list[str]:
        return [record.kind for record in self.records]

    def bodies(self, kind: str) -> list[Mapping[str, Any]]:
        return [record.body for record in self.records if record.kind == kind]

    def signals(self) -> list[str]:
        return [body["signal"] for body in self.bodies("route")]


def exited(code: int = 0, **more: Any) -> tuple[Kind, Mapping[str, Any]]:
    return Kind.ACT, {"outcome": "exited", "exit": code, **more}


def fresh(effect: Effect, count: int) -> tuple[Kind, Mapping[str, Any]]:
    """Every tool succeeds, every result is new; every measurement is ok; every plan proposes `write`."""
    if effect.act == "plan":
        return Kind.PLAN, {"candidates": [{"tool": "write", "args": {"text": f"c{count}"}}]}
    if effect.act == "ask":
        return Kind.ACT, {"outcome": "answered", "out": f"answer {count}"}
    if effect.act == "validate":
        return measured(1000 - count, key=f"k{count}")
    if effect.act == "check":
        return Kind.ACT, {"facts": [True for _ in effect.args["atoms"]]}
    more: dict[str, Any] = {"key": f"k{count}", "out": f"out {count}"}
    if effect.watch:
        more["facts"] = [True for _ in effect.watch]
    if effect.cls == "effect":
        more["r3"] = f"root-{count + 1}"
    return exited(0, **more)


def measured(value: int, pairs: list[Any] | None = None, **more: Any) -> tuple[Kind, Mapping[str, Any]]:
    body = {
        "outcome": "exited",
        "status": "measured",
        "checks": [{"name": "correct", "ok": True, "code": ""}],
        "metrics": {"time_ns": value},
        "pairs": FAST if pairs is None else pairs,
        "subject": {"binary": {"$blob": f"blob-{value}"}},
        **more,
    }
    return Kind.ACT, body


def tuning(**more: Any) -> Program:
    """A baseline, then a loop over candidates until plateau."""
    return program(
        Task("base", steps=(Step("v", "validate", "Timer"),), edges={"success": "tune"}, rule=RULE),
        Task(
            "tune",
            tools=("write", "look"),
            steps=(Step("p", "plan", "tuner"), Step("v", "validate", "Timer")),
            edges={"metric_improved": "tune", "success": "tune", "fail": "tune", "plateau": "done"},
            proposing=Proposing("tuner"),
            rule=RULE,
            retries=5,
        ),
        Task("done", steps=(tool("last"),)),
        **more,
    )


__all__ = [
    "CATALOG",
    "FAST",
    "RULE",
    "SAME",
    "Budgets",
    "Heuristic",
    "Ref",
    "World",
    "exited",
    "fresh",
    "measured",
    "program",
    "rules",
    "tool",
    "tuning",
]


def looping(
    *, retries: int = 3, heuristics: tuple[Heuristic, ...] = (), edges: dict[str, str] | None = None
) -> Any:
    """A task that plans, acts and goes back to itself on `fail`."""
    task = Task(
        "t",
        tools=("write",),
        steps=(Step("p", "plan", "tuner"), Step("v", "validate", "Tests")),
        edges={"fail": "t", "success": "end"} if edges is None else edges,
        proposing=Proposing("tuner"),
        retries=retries,
    )
    return program(task, Task("end", steps=(tool("s"),)), heuristics=heuristics)


def planned(*candidates: Any) -> Any:
    return Kind.PLAN, {"candidates": list(candidates)}
