"""The hacks that depend on what is computed, on every problem that ships: one object with all for each.

What depends on the process alone (clocks, filters, threads, files) is in test_cpu_hacks.py, on attention.
"""

from __future__ import annotations

import dataclasses
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cpu_calls import HACKS
from spak import data
from spak.ports import Limits
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_build import Workshop
from spak.validators.cpu_candidate import Native
from spak.validators.cpu_process import Violation
from spak.validators.cpu_session import Bench, Side
from spak.validators.problems import Problem, Prototype, opened, shipped
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

WRONG = {"non_finite", "incorrect"}
KEEPS = "static TYPE kept; static int calls; HONEST; if (calls++) *OUT = kept; else kept = *OUT;"
CAUGHT: dict[str, tuple[set[str], str]] = {
    "nothing": (WRONG, ""),
    "first_call_only": (WRONG, "static int calls; if (calls++) return; HONEST;"),
    "one_size_only": (WRONG, "if (n != TIMED) return; HONEST;"),
    "wrong_now_and_then": (WRONG, "static int calls; HONEST; if (++calls % 3 == 0) *OUT += 1 + *OUT / 8;"),
    "lazy": (WRONG, "static int calls; if (++calls % 4) return; HONEST;"),
    "keeps_the_first_answer": (WRONG, KEEPS),
    "alters_an_input": ({"wrote_inputs"}, "HONEST; *(volatile char *)IN = 0;"),
    "before_the_output": ({"out_of_bounds"}, "HONEST; OUT[-1] = 0;"),
    "forks": ({"forbidden_call"}, "raw(FORK, 17, 0, 0, 0, 0, 0); HONEST;"),
    "exits": ({"died"}, "raw(SYS_exit_group, 3, 0, 0, 0, 0, 0);"),
}  # fmt: skip
"""What it ends as, and its body."""


def source(prototype: Prototype, naive: Path, timed: int) -> str:
    """All hacks on a problem, each a function of the prototype's type."""
    symbol = prototype.symbol
    arguments = ", ".join(item.name for item in prototype.parameters)
    output = prototype.of("output")[0]
    words = {
        "HONEST": f"honest({arguments})",
        "TIMED": str(timed),
        "OUT": output.name,
        "TYPE": output.c,
        "IN": prototype.of("input")[0].name,
        "FORK": "SYS_clone",
    }
    text = f'#include <stdint.h>\n#define honest theirs\n#include "{HACKS / "hack.h"}"\n#undef honest\n'
    text += f'#define {symbol} honest\n#include "{naive}"\n#undef {symbol}\n'
    for name, (_, body) in CAUGHT.items():
        for word, value in words.items():
            body = body.replace(word, value)
        text += prototype.text.replace(f"void {symbol}(", f"void {name}(") + f" {{ {body} }}\n"
    return text


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.close()


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_hack_is_caught(name: str, workshop: Workshop, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with opened(Restricted(), toolchain(), tmp_path / "problem", shipped()[name], Limits()) as session:
        problem = Problem.of(session)
        problem.most = problem.timed = min(
            max(40, problem.least), problem.most
        )  # small: this is about answers
        file = tmp_path / "hacks.c"
        file.write_text(source(problem.prototype, data.path(f"specs/problems/{name}.c"), problem.timed))
        binary = tmp_path / "hacks.so"
        line = ["gcc", "-O1", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", str(binary), str(file), "-lm"]
        subprocess.run(line, check=True)
        driver = workshop.driver(None, problem.prototype)
        found = {}
        for hack in CAUGHT:
            folder = tmp_path / hack
            folder.mkdir(mode=0o755)
            bench = Bench(
                launcher=Restricted(),
                limits=Limits(),
                problem=dataclasses.replace(
                    problem, prototype=dataclasses.replace(problem.prototype, symbol=hack)
                ),
                n=problem.timed,
                random=np.random.default_rng(5),
                deadline=time.monotonic() + 600,
                folder=folder,
                peak=lambda again: 10**12,
            )
            side = Side(bench, "candidate", Native(driver, binary.read_bytes()))
            try:
                side.check()
            except Violation as violation:
                found[hack] = violation.code
            finally:
                side.close()
    missed = {hack: found.get(hack) for hack, (codes, _) in CAUGHT.items() if found.get(hack) not in codes}
    assert not missed
