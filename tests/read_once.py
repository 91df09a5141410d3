"""What almost every process of the command reads first, read once in the process that they are forked from:
the catalog, the shipped law with its tables, and the versions of the programs of the toolchain. A run in
memory has the code of the law written that decisions and their proofs need.

No setting plays a part in any of it but the path, on which the programs are found. The run has no sandbox:
what a machine lets one do is found by each process itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from spak import config

SPEC = """\
AGENT Warm LEVEL 2 {
  START -> act
  TASK act {
    step one: tool.run { cmd: "git status" }
    step two: tool.write_file { path: "a.txt" content: "a" }
    NEXT { success -> ask }
  }
  TASK ask { step three: llm.query { prompt: "Say a word." output_var: word } }
}
"""
RUN = """\
AGENT Warm LEVEL 2 {
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    step two: tool.write_file { path: "a.txt" content: "a" }
    step three: tool.read_file { path: "a.txt" }
    NEXT { success -> denied }
  }
  TASK denied { step four: tool.write_file { path: ".env" content: "a" } }
}
"""
"""Steps that are permitted, and one that is not."""


@lru_cache(maxsize=1)
def read_once() -> None:
    """Check a spec under the shipped law, as each run does before its first step."""
    from spak.kernel.foresee import foresee
    from spak.kernel.gate import gate_of
    from spak.lang import parse
    from spak.lang.check import examine
    from spak.lang.imports import resolve
    from spak.program import compile as compile_program
    from spak.runner.genesis import genesis
    from spak.runner.laws import operators

    config.versions()
    law, full = operators({}), config.catalog()
    whole = resolve(parse(SPEC), lambda name: name)
    foresee(examine(whole.parsed.spec, full), whole, law)
    compile_program(whole.parsed, full, {})
    gate_of(genesis(SPEC, full, {}, "", 1, {}, law=law)["rules"]["policy"])
    _run_once()


def _run_once() -> None:
    from spak.ledger.memory import MemoryLedgers
    from spak.runner import Host, Run
    from spak.runner.genesis import genesis
    from spak.runner.laws import operators
    from spak.tools import TOOLS
    from spak.workspace import Workspace

    with TemporaryDirectory() as folder:
        place = Workspace(Path(folder) / "workspace", Path(folder) / "store")
        first = genesis(RUN, config.catalog(), {}, place.snapshot(), 1, {"run": "warm"}, law=operators({}))
        run = Run.create(MemoryLedgers(), "warm", first, Host(tools=TOOLS), place)
        run.advance("full_auto")
        run.close()


def forget_programs(env: Mapping[str, str]) -> None:
    """Before these variables are set: another path has other programs."""
    if env.get("PATH") != os.environ.get("PATH"):
        config.toolchain.cache_clear()
        config.versions.cache_clear()
