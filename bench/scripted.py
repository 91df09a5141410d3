"""Runs without a sandbox or a model: the real kernel, a spec's text, and a script that answers its effects.

`ledger(text, script, seed)` gives the records of a whole run, chained as a store would have them. The script
gets each effect and how many it has answered, and gives `(kind, body, side)`; what the gate asks about the
world is answered from an empty folder that holds what `FILES` says. The tests of the outer loop plant faults
with it, and the benches measure on it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from spak import canon, config
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, State
from spak.kernel.step import step
from spak.lang import parse
from spak.program import compile as compile_program
from spak.records import Authority, Kind, Record, place
from spak.runner.genesis import genesis
from spak.runner.observe import observe

Answer = tuple[Kind, Mapping[str, Any], Mapping[str, Any]]
Script = Callable[[Effect, int], Answer]
FILES = ("a.txt", "b.txt", "tests/test_a.py")
MOST = 3_000


@lru_cache(maxsize=1)
def _folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="spak-scripted-"))
    for name in FILES:
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text("x\n")
    return made


@lru_cache(maxsize=64)
def _begun(text: str, seed: int) -> tuple[Mapping[str, Any], Rules]:
    parsed = parse(text)
    program = compile_program(parsed, config.catalog(), {})
    body = genesis(
        parsed.text, config.used(config.catalog(), program), {}, canon.ZERO, seed, {"run": f"r{seed}"}
    )
    body = canon.loads(canon.dumps(body))
    return body, Rules.of(body)


def ledger(
    text: str,
    script: Script,
    seed: int = 1,
    prompts: dict[str, Any] | None = None,
    heard: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """The records of a run that the script answers; `prompts` gets the items of each prompt by its hash, and
    `heard` each record as soon as it has its place."""
    body, rules = _begun(text, seed)
    state, made, head = State(), [], canon.ZERO
    proposal = Record(Kind.GENESIS, Authority.PROPOSAL, body)
    for count in range(MOST):
        stepped = step(rules, state, proposal)
        state = stepped.state
        for record in (proposal, *stepped.commits):
            placed, _ = place(record, len(made), head)
            head = placed.hash
            made.append(placed)
            heard(placed)
        if state.ended or state.r6 is None:
            return made
        effect = state.r6
        if prompts is not None and effect.items:
            prompts[str(effect.args.get("prompt", ""))] = effect.items
        kind, answer, side = _answer(effect, count, script)
        told = canon.loads(canon.dumps({"of": effect.id, **answer}))
        proposal = Record(
            kind, Authority.PROPOSAL, told, effect.task, effect.step, effect.attempt, side=side, at=count + 1
        )
    raise AssertionError(f"still running after {MOST} effects")


def _answer(effect: Effect, count: int, script: Script) -> Answer:
    if effect.act == "observe":
        return Kind.OBSERVE, {"facts": observe(effect.args["questions"], _folder())}, {}
    return script(effect, count)


def exited(code: int = 0, out: str = "", ms: int = 10, **more: Any) -> Answer:
    """A tool that ended; `key` follows from its output, as a tool that prints no clock has it."""
    return (
        Kind.ACT,
        {"outcome": "exited", "exit": code, "out": out, "key": canon.content_hash([code, out]), **more},
        {"ms": ms},
    )


def checked(ok: bool, ms: int = 20) -> Answer:
    """What a validator that only checks came to."""
    checks = [{"name": "tests", "ok": ok, "code": "" if ok else "failed"}]
    body = {"outcome": "exited", "status": "checked", "checks": checks, "key": canon.content_hash([ok])}
    return Kind.ACT, {**body, "metrics": {"passed": int(ok)}}, {"ms": ms}


def measured(now: int, best: int, ms: int = 20) -> Answer:
    """What a measurement came to: eight pairs of a candidate's time and that of the best so far."""
    return (
        Kind.ACT,
        {
            "outcome": "exited", "status": "measured", "metrics": {"time_ns": now},
            "pairs": [{"candidate": [now], "incumbent": [best]}] * 8,
            "checks": [{"name": "correct", "ok": True, "code": ""}],
            "key": canon.content_hash([now, best]),
        },
        {"ms": ms},
    )  # fmt: skip


def planned(*calls: tuple[str, Mapping[str, Any]], tokens: int = 500) -> Answer:
    """A model's plan."""
    listed = [{"tool": name, "args": dict(args)} for name, args in calls]
    return Kind.PLAN, {"by": "model", "candidates": listed}, {"ms": 100, "tokens": tokens}


def root(number: int) -> str:
    """A workspace's root hash that is as good as any."""
    return canon.content_hash(["root", number])


__all__ = ["Script", "checked", "exited", "ledger", "measured", "planned", "root"]
