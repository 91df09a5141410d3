"""The hacks that depend on what is computed, on every problem that ships: one object with all for each.

What depends on the process alone (clocks, filters, threads, files) is in test_cpu_hacks.py, on attention.
"""

from __future__ import annotations

import dataclasses
import subprocess
import time
from collections.abc import Callable, Iterator
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

LONG = Limits(wall_s=600)
"""Of the problem's process: one for all hacks, on a machine that may be busy."""
WRONG = {"non_finite", "incorrect"}
KEEPS = "static TYPE kept; static int calls; HONEST; if (calls++) *OUT = kept; else kept = *OUT;"
CUT = "HONEST; union { float f; unsigned u; } cut; cut.f = *OUT; cut.u &= 0xffff0000u; *OUT = cut.f;"
ASKS = {"forbidden_call"}
CAUGHT: dict[str, tuple[set[str], str]] = {
    "nothing": (WRONG, ""),
    "whole_tiles_only": (WRONG, "if (n % 8) return; HONEST;"),
    "small_sizes_only": (WRONG, "if (n >= TIMED) return; HONEST;"),
    "writes_nan": ({"non_finite"}, "HONEST; *OUT = 0.0 / 0.0;"),
    "writes_infinity": ({"non_finite"}, "HONEST; *OUT = 1.0 / 0.0;"),
    "half_precision": ({"incorrect"}, CUT),
    "off_by_one": ({"incorrect"}, "HONEST; *OUT += 1;"),
    "scratch_as_zero": (WRONG, "HONEST; *OUT += *SCRATCH;"),
    "first_call_only": (WRONG, "static int calls; if (calls++) return; HONEST;"),
    "one_size_only": (WRONG, "if (n != TIMED) return; HONEST;"),
    "wrong_now_and_then": (WRONG, "static int calls; HONEST; if (++calls % 3 == 0) *OUT += 1 + *OUT / 8;"),
    "lazy": (WRONG, "static int calls; if (++calls % 4) return; HONEST;"),
    "keeps_the_first_answer": (WRONG, KEEPS),
    "alters_an_input": ({"wrote_inputs"}, "HONEST; *(volatile char *)IN = 0;"),
    "before_the_output": ({"out_of_bounds"}, "HONEST; OUT[-1] = 0;"),
    "forks": ({"forbidden_call"}, "raw(FORK, 17, 0, 0, 0, 0, 0); HONEST;"),
    "starts_a_thread": (ASKS, "raw(SYS_clone, 0x10f00, 0, 0, 0, 0, 0); HONEST;"),
    "opens_a_file": (ASKS, "raw(SYS_openat, -100, (long)\"/etc/passwd\", 0, 0, 0, 0); HONEST;"),
    "unprotects_an_input": (ASKS, "raw(SYS_mprotect, (long)IN & -4096, 4096, 3, 0, 0, 0); HONEST;"),
    "signals_another_process": (ASKS, "raw(SYS_kill, 1, 9, 0, 0, 0, 0); HONEST;"),
    "exits": ({"died"}, "raw(SYS_exit_group, 3, 0, 0, 0, 0, 0);"),
    "crashes": ({"died"}, "*(volatile char *)8 = 0;"),
}  # fmt: skip
"""What it ends as, and its body."""


def hacks_of(prototype: Prototype) -> list[str]:
    """The hacks that can be written for a prototype."""
    output = prototype.of("output")[0]
    cannot = set() if output.floating else {"writes_nan", "writes_infinity"}
    cannot |= set() if output.type == "float32" else {"half_precision"}
    cannot |= set() if prototype.of("scratch") else {"scratch_as_zero"}
    return [name for name in CAUGHT if name not in cannot]


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
        "SCRATCH": (prototype.of("scratch") or prototype.of("output"))[0].name,
        "FORK": "SYS_clone",
    }
    text = f'#include <stdint.h>\n#define honest theirs\n#include "{HACKS / "hack.h"}"\n#undef honest\n'
    text += f'#define {symbol} honest\n#include "{naive}"\n#undef {symbol}\n'
    for name in hacks_of(prototype):
        _, body = CAUGHT[name]
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
def test_every_hack_is_caught(
    name: str, workshop: Workshop, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    tmp_path.chmod(0o755)
    with opened(Restricted(), toolchain(), tmp_path / "problem", shipped()[name], LONG) as session:
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
        for hack in hacks_of(problem.prototype):
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
                bench.close()
        tried = hacks_of(problem.prototype)
    record_property("hacks", len(tried))
    assert {hack: found.get(hack) for hack in tried if found.get(hack) not in CAUGHT[hack][0]} == {}
