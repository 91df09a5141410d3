"""Random edits of a spec, and how many of them widen what it may do without being marked privileged."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.planted import work
from spak import config
from spak.evolve.gate import Candidate, form, privileged
from spak.lang import parse
from spak.lang.diff import compare
from spak.lang.edit import from_json

CATALOG = config.catalog()
BASE = work(
    6, 'SYSTEM_MODEL M { AXIOM "Be brief." HEURISTIC "Stand on one leg." HEURISTIC "Read the error." }'
)


def gained(draw: Random, many: int, base: str) -> int:
    """How many of random edits widen something and are not marked."""
    wrong = 0
    for _ in range(many):
        made = Candidate(tuple(random_op(draw) for _ in range(draw.randrange(1, 3))), "random")
        _, text = form(base, made, CATALOG)
        if not text:
            continue
        widened = [
            item
            for item in compare(parse(base), parse(text), CATALOG).capabilities
            if item.widens is not False
        ]
        if widened and privileged(base, text, CATALOG).verdict != "privileged":
            wrong += 1
    return wrong


def random_op(draw: Random) -> Any:
    tools = ["write_file", "read_file", "list_files", "run", "git_commit", "apply_patch", "http_request"]
    number, task = draw.choice([0, 1, 3, 50, 10**6]), draw.choice(["write", "hand_over"])
    return from_json(
        draw.choice(
            [
                {"op": "set", "key": "RETRIES", "value": number, "task": task},
                {
                    "op": "set",
                    "key": draw.choice(["BUDGET.steps", "BUDGET.tokens", "BUDGET.watchdog"]),
                    "value": number,
                },
                {
                    "op": "set",
                    "key": "TOOLS",
                    "value": draw.sample(tools, draw.randrange(1, 5)),
                    "task": task,
                },
                {
                    "op": "set",
                    "key": "CONFIG.SANDBOX",
                    "value": draw.choice(["RESTRICTED", "DOCKER", "NONE"]),
                },
                {"op": "set", "key": "CONFIG.MODE", "value": draw.choice(["full_auto", "stepwise"])},
                {"op": "set_level", "level": draw.randrange(1, 6)},
                {
                    "op": "clear",
                    "key": draw.choice(["VALIDATOR", "TOOLS", "RETRIES", "GOAL"]),
                    "task": "write",
                },
                {
                    "op": "add_edge",
                    "task": task,
                    "trigger": draw.choice(["timeout", "success", "x"]),
                    "target": "write",
                },
                {"op": "remove_edge", "task": "write", "trigger": draw.choice(["success", "fail"])},
                {"op": "retarget_edge", "task": "write", "trigger": "fail", "target": "hand_over"},
                {"op": "add_step", "task": task, "name": "more", "kind": f"tool.{draw.choice(tools)}"},
                {"op": "remove_step", "task": "hand_over", "step": "show"},
                {"op": "remove_model_item", "kind": draw.choice(["axiom", "heuristic"]), "number": 1},
                {"op": "set_start", "task": task},
            ]
        )
    )
