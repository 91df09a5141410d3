"""Random stratified programs, a naive evaluator, and clingo and mangle-py in processes of their own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from itertools import product
from typing import Any

from hypothesis import settings

from process_kit import WAIT_S
from spak.datalog import Name

LAW = settings(max_examples=int(os.environ.get("SPAK_FUZZ_EXAMPLES", "200")), deadline=None)
"""For properties of policies: 200 examples, and as many as `make fuzz` says there."""

CONSTANTS = ("/a", "/b", "/c", "/d")
EDB = {"e": 2, "f": 1, "g": 2}
IDB = ("p", "q", "r", "s")

Atom = tuple[str, tuple[str, ...]]
Rule = tuple[Atom, tuple[tuple[bool, Atom], ...]]
Facts = set[Atom]


def random_program(seed: int) -> tuple[list[Rule], Facts]:
    """Rules over names only: predicates in levels, negation of lower levels, recursion in a level."""
    draw = random.Random(seed)
    arity = dict(EDB) | {name: draw.choice((1, 2)) for name in IDB}
    rules: list[Rule] = []
    for level, head in enumerate(IDB):
        for _ in range(draw.randint(1, 3)):
            lower = [*EDB, *IDB[:level]]
            body = []
            for _ in range(draw.randint(1, 3)):
                name = draw.choice([*lower, *([head] if draw.random() < 0.5 else [])])
                args = tuple(draw.choice(("X", "Y", "Z", "/a", "/b")) for _ in range(arity[name]))
                body.append((False, (name, args)))
            bound = sorted({arg for _, (_, args) in body for arg in args if arg.isupper()})
            if draw.random() < 0.5:
                name = draw.choice(lower)
                args = tuple(draw.choice([*bound, "/a", "_"]) for _ in range(arity[name]))
                body.append((True, (name, args)))
            draw.shuffle(body)
            head_args = tuple(draw.choice([*bound, "/c"]) for _ in range(arity[head]))
            rules.append(((head, head_args), tuple(body)))
    facts = {
        (name, tuple(draw.choice(CONSTANTS) for _ in range(width)))
        for name, width in EDB.items()
        for _ in range(draw.randint(1, 6))
    }
    return rules, facts


def text_of(rules: list[Rule]) -> str:
    lines = [f"Decl {name}({', '.join(f'A{at}' for at in range(width))})." for name, width in EDB.items()]
    for (name, args), body in rules:
        parts = ", ".join(f"{'!' if negated else ''}{show(atom)}" for negated, atom in body)
        lines.append(f"{show((name, args))} :- {parts}.")
    return "\n".join(lines)


def show(atom: Atom) -> str:
    return f"{atom[0]}({', '.join(atom[1])})"


def given(facts: Facts) -> list[tuple[str, tuple[Name, ...]]]:
    return [(name, tuple(Name(arg) for arg in args)) for name, args in sorted(facts)]


def naive(rules: list[Rule], facts: Facts) -> Facts:
    """Every rule under every assignment, level by level, until nothing is new."""
    model = set(facts)
    for level in IDB:
        changed = True
        while changed:
            changed = False
            for (name, args), body in rules:
                if name != level:
                    continue
                variables = sorted({arg for _, (_, used) in body for arg in used if arg.isupper()})
                for values in product(CONSTANTS, repeat=len(variables)):
                    known = dict(zip(variables, values, strict=True))
                    if all(_holds(atom, known, model) != negated for negated, atom in body):
                        new = (name, tuple(known.get(arg, arg) for arg in args))
                        changed |= new not in model
                        model.add(new)
    return model


def _holds(atom: Atom, known: dict[str, str], model: Facts) -> bool:
    wanted = [known.get(arg, arg) for arg in atom[1]]
    return any(
        name == atom[0]
        and len(row) == len(wanted)
        and all(want in ("_", value) for want, value in zip(wanted, row, strict=True))
        for name, row in model
    )


_CLINGO = """
import clingo, json, sys
for program in json.load(sys.stdin):
    control = clingo.Control(["--warn=none"])
    control.add("base", [], program)
    control.ground([("base", [])])
    rows = []
    control.solve(on_model=lambda model: rows.extend(str(item) for item in model.symbols(atoms=True)))
    print(json.dumps(sorted(rows)))
"""


def clingo_rows(programs: list[tuple[list[Rule], Facts]]) -> list[Facts]:
    """The models that clingo finds."""
    texts = []
    for rules, facts in programs:
        lines = [f"{_asp(fact)}." for fact in sorted(facts)]
        for number, (head, body) in enumerate(rules):
            parts = []
            for at, (negated, atom) in enumerate(body):
                if negated and "_" in atom[1]:
                    bare = tuple(arg for arg in atom[1] if arg != "_")
                    lines.append(f"{_asp((f'w{number}_{at}', bare))} :- {_asp(atom)}, {_domain(bare)}.")
                    atom = (f"w{number}_{at}", bare)
                parts.append(("not " if negated else "") + _asp(atom))
            lines.append(f"{_asp(head)} :- {', '.join(parts)}.")
        lines.append(" ".join(f"dom({value[1:]})." for value in CONSTANTS))
        texts.append("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", _CLINGO],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    found = []
    for line in done.stdout.splitlines():
        rows = set()
        for text in json.loads(line):
            name, _, rest = text.partition("(")
            if name in EDB or name in IDB:
                rows.add((name, tuple("/" + arg for arg in rest.rstrip(")").split(","))))
        found.append(rows)
    return found


def _domain(args: tuple[str, ...]) -> str:
    return ", ".join([f"dom({arg})" for arg in args if arg.isupper()] or ["dom(a)"])


def _asp(atom: Atom) -> str:
    args = ", ".join(arg.removeprefix("/") for arg in atom[1])
    return f"{atom[0]}({args})" if args else atom[0]


_MANGLE = """
import json, sys
import mangle
for program, names in json.load(sys.stdin):
    try:
        found = mangle.Program(program)
        rows = {name: sorted([str(value) for value in row] for row in found.query(name)) for name in names}
    except mangle.MangleError as error:
        rows = {"error": str(error)}
    print(json.dumps(rows), flush=True)
"""


def mangle_rows(programs: list[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    """What mangle-py finds for each predicate that is named, or its error."""
    done = subprocess.run(
        [sys.executable, "-c", _MANGLE],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
