"""A host for runner tests: plain tools, a validator with a table, a real ledger and workspace around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from law_kit import under
from spak.kernel.rules import Rules
from spak.lang import parse
from spak.lang.catalog import Catalog, NamedEntry, ToolEntry, ValidatorEntry
from spak.ledger.files import FileLedgers
from spak.ports import Call, Ledgers, MeasureCall, Measurement, Subject, ToolResult
from spak.program import compile as compile_program
from spak.proposers.tuner import Tuner
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.workspace import Workspace

ANY = {"type": "object"}


class Look:
    """A pure tool: says its argument."""

    entry = ToolEntry("look", 1, "looks", ANY, "pure", writes=False, sandboxed=False)

    def run(self, call: Call) -> ToolResult:
        text = str(call.args.get("text", ""))
        return ToolResult("exited", 0, text.encode(), len(text), key={"text": text})


class Write:
    """An effect: writes `text` into `path`; `exit` and `status` are its own to choose."""

    entry = ToolEntry("write", 1, "writes", ANY, "effect", sandboxed=False)

    def __init__(self) -> None:
        self.calls: list[str] = []

    def run(self, call: Call) -> ToolResult:
        self.calls.append(call.id)
        path = call.workspace / str(call.args["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(call.args.get("text", "")), encoding="utf-8")
        status = call.args.get("status", "exited")
        return ToolResult(status, int(call.args.get("exit", 0)), b"written", 7, key={"path": str(path.name)})


class Timer:
    """A metric validator that times a file by its length: shorter is faster, and the pairs say so."""

    entry = ValidatorEntry(
        "Timer",
        1,
        "times",
        ANY,
        metric="time_ns",
        triggers=("success", "fail", "timeout", "metric_improved", "plateau"),
    )

    def measure(self, call: MeasureCall) -> Measurement:
        from spak.kernel.metric.decision import decide

        data = (call.workspace / str(call.options["file"])).read_bytes()
        mine = 1000 + len(data)
        pairs: list[Mapping[str, Any]] = []
        for rival, subject in call.rivals.items():
            taken: list[Mapping[str, Any]] = []
            other = 1000 + len(subject.files["binary"])
            while decide(taken, call.rule).outcome == "undecided" and len(taken) < call.rule["max_pairs"]:
                taken.append({"rival": rival, "candidate": [mine] * 3, "incumbent": [other] * 3})
            pairs += taken if call.options.get("role") == "final" or rival == "incumbent" else []
        check = {"name": "correct", "ok": True, "code": ""}
        if len(data) >= 900:
            check |= {"ok": False, "code": "incorrect", "detail": f"{len(data)} bytes, at most 899"}
        return Measurement(
            "measured",
            checks=(check,),
            metrics={"time_ns": mine},
            pairs=tuple(pairs),
            subject=Subject({"binary": data}),
        )


class Shrink:
    """A proposer: each turn a text of another length, drawn from the seed."""

    entry = NamedEntry("shrink", "draws lengths")

    def propose(self, request: Any) -> list[Any]:
        import random

        from spak.ports import Candidate

        length = random.Random(f"{request.seed}/{request.turn}").randint(10, 1000)
        return [Candidate("write", {"path": "c.txt", "text": "x" * length}, params={"length": length})]


TUNING = """
AGENT Tune LEVEL 5 {
  CONFIG { BUDGET { steps: 500 } }
  SYSTEM_MODEL M { AXIOM "Short is fast." HEURISTIC "Use fewer letters." }
  START -> base
  TASK base {
    step w: tool.write { path: "c.txt" text: "LONG" }
    VALIDATOR Timer { file: "c.txt", role: "baseline" }
    NEXT { success -> tune }
  }
  TASK tune {
    TOOLS [write]
    PROPOSER shrink
    VALIDATOR Timer { file: "c.txt" }
    RULE { patience: 4, evaluations: 12 }
    RETRIES 50
    NEXT { metric_improved -> tune, fail -> tune, plateau -> done }
  }
  TASK done {
    step keep: tool.write { path: "best.txt" text: "{{best.binary}}" }
    VALIDATOR Timer { file: "best.txt", role: "final" }
  }
}
""".replace("LONG", "x" * 600)


def catalog() -> Catalog:
    return Catalog(
        tools={"look": Look.entry, "write": Write.entry},
        validators={"Timer": Timer.entry},
        proposers={"shrink": Shrink.entry, "tuner": Tuner.entry},
    )


def host() -> Host:
    return Host(
        tools={"look": Look(), "write": Write()},
        validators={"Timer": Timer()},
        proposers={"shrink": Shrink(), "tuner": Tuner()},
    )


PERMITS = """
permitted(Action) :- tool(Action, /look).
permitted(Action) :- tool(Action, /write).
"""
"""What the shipped law does not know, the operator's has to permit."""


def start(
    folder: Path,
    spec: str,
    run: str = "run-1",
    ledgers: Ledgers | None = None,
    seed: int = 5,
    law: str = PERMITS,
    keys: Sequence[Mapping[str, Any]] = (),
    searches: Mapping[str, Mapping[str, Any]] | None = None,
) -> Run:
    """A new run of a spec text in `folder/<run>`."""
    place = Workspace(folder / run / "workspace", folder / run / "store")
    program = compile_program(parse(spec), catalog(), {})
    body = genesis(
        spec,
        catalog(),
        {},
        place.snapshot(),
        seed,
        {"run": run},
        law=under(law),
        keys=keys,
        searches=searches,
    )
    assert program.tasks
    return Run.create(ledgers or FileLedgers(folder), run, body, host(), place)


def reopen(folder: Path, run: str = "run-1", ledgers: Ledgers | None = None) -> Run:
    place = Workspace(folder / run / "workspace", folder / run / "store")
    return Run.open(ledgers or FileLedgers(folder), run, host(), place)


__all__ = ["TUNING", "Rules", "catalog", "host", "reopen", "start"]
