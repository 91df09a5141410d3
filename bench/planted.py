"""Runs with one planted fault each, and healthy ones that look alike: the ground truth for findings.

`planted(kind, seed)` gives the records of one or more runs; `healthy(kind, seed)` those of runs in which
nothing is wrong, among them pages of a listing, polls, retries that get on, and many files that are attached
one by one. Sizes, texts and places follow from the seed. The faults are made by the real kernel on a script.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from bench.scripted import Script, checked, exited, ledger, measured, planned, root
from spak.kernel.state import Effect
from spak.records import Record

Runs = list[list[Record]]
Prompts = dict[str, Any]

WORK = """
AGENT A LEVEL 4 {{
  CONFIG {{ BUDGET {{ steps: {steps}, watchdog: {watchdog} }} }}
  {model}
  START -> write
  TASK write {{
    GOAL "Write a.txt."
    TOOLS [write_file, read_file, list_files]
    step draft: llm.plan {{ role: "coder" }}
    VALIDATOR PyTest {{ paths: ["tests/"] }}
    RETRIES {retries}
    NEXT {{ success -> hand_over, fail -> write{more} }}
  }}
  TASK hand_over {{ step show: tool.read_file {{ path: "a.txt" }} }}
}}
"""
STEPS = """
AGENT A LEVEL 4 {{
  START -> look
  TASK look {{
{steps}
    NEXT {{ success -> done }}
  }}
  TASK done {{ step end: tool.write_file {{ path: "b.txt", content: "{content}" }} }}
}}
"""


SEARCH = """
AGENT A LEVEL 5 {
  CONFIG { BUDGET { steps: 600 } }
  START -> first
  TASK first {
    VALIDATOR CpuProfiler { problem: "attention", binary: "a.so", source: "a.c", role: "baseline" }
    NEXT { success -> tune }
  }
  TASK tune {
    TOOLS [write_file]
    step draft: llm.plan { role: "coder" }
    VALIDATOR CpuProfiler { problem: "attention", binary: "b.so", source: "b.c" }
    RULE { patience: 3, evaluations: 40 }
    NEXT { metric_improved -> tune, success -> tune, plateau -> done }
  }
  TASK done { step show: tool.list_files { path: "." } }
}
"""


def work(retries: int = 12, model: str = "", more: str = "", steps: int = 400, watchdog: int = 50) -> str:
    return WORK.format(retries=retries, model=model, more=more, steps=steps, watchdog=watchdog)


def coder(
    draw: Random,
    passes: Callable[[int], bool],
    call: Callable[[int], tuple[str, dict[str, Any]]] | None = None,
    fails: Callable[[int], bool] = lambda number: False,
) -> Script:
    """A model that plans, a tool that does it, a validator: attempt n passes where `passes(n)`."""
    seen = {"plan": 0, "tool": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            seen["plan"] += 1
            number = seen["plan"]
            made = call(number) if call else ("write_file", {"path": "a.txt", "content": f"draft {number}"})
            return planned(made, tokens=draw.randrange(300, 900))
        if effect.act == "validate":
            return checked(passes(seen["plan"]))
        seen["tool"] += 1
        if fails(seen["tool"]):
            return exited(1, f"it broke at {seen['tool']}", **_root(effect, seen["tool"]))
        return exited(0, f"result {seen['tool']}", **_root(effect, seen["tool"]))

    return script


def _root(effect: Effect, number: int) -> dict[str, Any]:
    return {"r3": root(number)} if effect.cls == "effect" else {}


# ---- faults --------------------------------------------------------------------------------------------


def _loop(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """The model reads the same file over and over; nothing changes."""
    times = draw.randrange(4, 9)

    state = {"plans": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            state["plans"] += 1
            if state["plans"] <= times:
                return planned(("read_file", {"path": "a.txt"}))
            return planned(("write_file", {"path": "a.txt", "content": "done"}))
        if effect.act == "validate":
            return checked(state["plans"] > times)
        if effect.cls == "effect":
            return exited(0, "written", r3=root(1))
        return exited(0, f"the same text {seed}")

    return [ledger(work(), script, seed)]


def _redundant(seed: int, draw: Random, prompts: Prompts) -> Runs:
    listed = []
    for n, name in ((1, "a"), (2, "b"), (3, "a")):
        line = 2 if n == 2 else 1
        listed.append(f's{n}: tool.read_file {{ path: "{name}.txt", start_line: {line} }}')
    text = STEPS.format(steps="\n".join(f"    step {item}" for item in listed), content=seed)

    def script(effect: Effect, count: int) -> Any:
        more = {"r3": root(1)} if effect.cls == "effect" else {}
        return exited(
            0, f"text of {effect.args.get('path')} {effect.args.get('start_line')}", draw_ms(draw), **more
        )

    return [ledger(text, script, seed)]


def draw_ms(draw: Random) -> int:
    return draw.randrange(5, 50)


def _cycle(seed: int, draw: Random, prompts: Prompts) -> Runs:
    return [ledger(work(draw.randrange(4, 10)), coder(draw, lambda number: False), seed)]


def _failing(seed: int, draw: Random, prompts: Prompts) -> Runs:
    runs = []
    for number in range(6):
        order = Random(seed * 100 + number)
        runs.append(
            ledger(
                work(60),
                coder(order, lambda n: n >= 8, fails=lambda n, order=order: order.random() < 0.7),  # type: ignore[misc]
                seed,
            )
        )
    return runs


def _rejected(seed: int, draw: Random, prompts: Prompts) -> Runs:
    state = {"asked": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            state["asked"] += 1
            if state["asked"] % 3 and state["asked"] < 9:
                return planned(("no_such_tool", {"n": state["asked"]}))
            return planned(("write_file", {"path": "a.txt", "content": f"{state['asked']}"}))
        if effect.act == "validate":
            return checked(state["asked"] >= 9)
        return exited(0, f"w{count}", **_root(effect, count))

    return [ledger(work(20), script, seed)]


def _resent(seed: int, draw: Random, prompts: Prompts) -> Runs:
    model = 'SYSTEM_MODEL M { AXIOM "' + " ".join(f"word{draw.randrange(999)}" for _ in range(900)) + '" }'
    return [ledger(work(12, model), coder(draw, lambda number: number >= 7), seed, prompts)]


def _unreferenced(seed: int, draw: Random, prompts: Prompts) -> Runs:
    steps = '    step big: tool.read_file { path: "a.txt" }\n    step small: tool.read_file { path: "b.txt" }'
    lines = "\n".join(f"line number {draw.random()} of a long text" for _ in range(30))

    def script(effect: Effect, count: int) -> Any:
        more = {"r3": root(1)} if effect.cls == "effect" else {}
        return exited(0, lines if effect.step == "big" else "short", **more)

    return [ledger(STEPS.format(steps=steps, content=seed), script, seed)]


def _dead(seed: int, draw: Random, prompts: Prompts) -> Runs:
    text = work(12, more=", timeout -> hand_over")
    return [ledger(text, coder(draw, lambda number: number >= 4), seed) for _ in range(7)]


def _useless(seed: int, draw: Random, prompts: Prompts) -> Runs:
    model = 'SYSTEM_MODEL M { HEURISTIC "Stand on one leg." HEURISTIC "Read the error." }'
    return [ledger(work(12, model), coder(draw, lambda number: number >= 3), seed) for _ in range(21)]


def _flaky(seed: int, draw: Random, prompts: Prompts) -> Runs:
    turn = {"n": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            turn["n"] += 1
            return planned(("write_file", {"path": "a.txt", "content": f"v{turn['n']}"}))
        if effect.act == "validate":
            return checked(turn["n"] >= 3)
        return exited(0, f"w{turn['n']}", r3=root(1 if turn["n"] >= 2 else 0))

    return [ledger(work(), script, seed)]


def _burn(seed: int, draw: Random, prompts: Prompts) -> Runs:
    steps = draw.randrange(12, 24)
    changing = coder(draw, lambda number: number % 3 == 0)
    text = work(90, steps=steps).replace("success -> hand_over", "success -> write")
    text = text.replace("fail -> write", "fail -> write, timeout -> hand_over").replace("LEVEL 4", "LEVEL 5")
    return [ledger(text, changing, seed)]


def _unhandled(seed: int, draw: Random, prompts: Prompts) -> Runs:
    text = work().replace("success -> hand_over, fail -> write", "fail -> hand_over")
    return [ledger(text, coder(draw, lambda number: True), seed)]


def search(draw: Random, improves: Callable[[int], bool]) -> Script:
    """A metric loop: evaluation n beats the best so far where `improves(n)`."""
    state = {"n": 0, "best": 1_000_000}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            state["n"] += 1
            return planned(("write_file", {"path": "b.c", "content": f"kernel {state['n']}"}), tokens=0)
        if effect.act == "validate":
            best, better = state["best"], state["n"] > 0 and improves(state["n"])
            now = best * 9 // 10 if better else best * 11 // 10
            state["best"] = min(best, now) if state["n"] else best
            return measured(now if state["n"] else best, best, draw_ms(draw))
        return exited(0, f"w{state['n']}", **_root(effect, state["n"]))

    return script


def _impatient(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """Each evaluation has the same chance to improve, however many before it did not."""
    return [ledger(SEARCH, search(draw, lambda n: n < 30 and draw.random() < 0.4), seed) for _ in range(30)]


def _hasty(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """Each attempt has the same chance to pass; three are too few for some runs."""
    return [ledger(work(2), coder(draw, lambda n: draw.random() < 0.4), seed) for _ in range(40)]


FAULTS: dict[str, Callable[[int, Random, Prompts], Runs]] = {
    "loop": _loop,
    "redundant_call": _redundant,
    "retry_cycle": _cycle,
    "tool_failure": _failing,
    "rejected_answers": _rejected,
    "resent_tokens": _resent,
    "unreferenced": _unreferenced,
    "dead_edge": _dead,
    "useless_heuristic": _useless,
    "flaky_validator": _flaky,
    "budget_burn": _burn,
    "unhandled_trigger": _unhandled,
    "short_patience": _impatient,
    "few_retries": _hasty,
}

# ---- healthy runs --------------------------------------------------------------------------------------


def _pages(seed: int, draw: Random, prompts: Prompts) -> Runs:
    pages = draw.randrange(4, 9)

    def call(number: int) -> tuple[str, dict[str, Any]]:
        if number <= pages:
            return "read_file", {"path": "a.txt", "start_line": 100 * number}
        return "write_file", {"path": "a.txt", "content": "x"}

    return [ledger(work(20), coder(draw, lambda number: number > pages, call), seed)]


def _attached(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """Files attached one by one, each call with the same answer: True."""

    state = {"plans": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            state["plans"] += 1
            return planned(("write_file", {"path": f"f{state['plans']}.txt", "content": "x"}))
        if effect.act == "validate":
            return checked(state["plans"] >= 5)
        return exited(0, "True", r3=root(state["plans"]))

    return [ledger(work(), script, seed)]


def _polled(seed: int, draw: Random, prompts: Prompts) -> Runs:
    text = STEPS.format(
        steps='    step ready: tool.run { cmd: "cat a.txt", poll: { every_s: 1, limit: 9 } }',
        content=seed,
    )
    last = draw.randrange(4, 8)

    state = {"polls": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.name == "run":
            state["polls"] += 1
            return exited(0 if state["polls"] >= last else 1, "not yet", **_root(effect, 0))
        return exited(0, "w", **_root(effect, 1))

    return [ledger(text, script, seed)]


def _retried(seed: int, draw: Random, prompts: Prompts) -> Runs:
    return [ledger(work(), coder(draw, lambda number: number >= draw.randrange(2, 4)), seed)]


def _again(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """The same file read again after it was changed, with another text; and after a failed call."""
    step = {"n": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            step["n"] += 1
            if step["n"] % 2:
                return planned(("read_file", {"path": "a.txt"}))
            return planned(("write_file", {"path": "a.txt", "content": f"{step['n']}"}))
        if effect.act == "validate":
            return checked(step["n"] >= 6)
        return exited(0, f"text {step['n']}", **_root(effect, step["n"]))

    return [ledger(work(), script, seed)]


def _settled(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """Searches that improve at once or not at all: patience ends them where nothing more was to come."""
    runs = []
    for _ in range(30):
        last = draw.randrange(6)
        runs.append(ledger(SEARCH, search(draw, lambda n, last=last: n <= last), seed))  # type: ignore[misc]
    return runs


def _hopeless(seed: int, draw: Random, prompts: Prompts) -> Runs:
    """Attempts that pass at once or never: more retries would help none of them."""
    runs = []
    for _ in range(40):
        easy = draw.random() < 0.6
        runs.append(ledger(work(2), coder(draw, lambda n, easy=easy: easy), seed))  # type: ignore[misc]
    return runs


HEALTHY: dict[str, Callable[[int, Random, Prompts], Runs]] = {
    "pages": _pages,
    "attached": _attached,
    "polls": _polled,
    "retries": _retried,
    "again": _again,
    "settled": _settled,
    "hopeless": _hopeless,
}


def planted(kind: str, seed: int) -> tuple[Runs, Prompts]:
    prompts: Prompts = {}
    return FAULTS[kind](seed, Random(seed), prompts), prompts


def healthy(kind: str, seed: int) -> tuple[Runs, Prompts]:
    prompts: Prompts = {}
    return HEALTHY[kind](seed, Random(seed), prompts), prompts
