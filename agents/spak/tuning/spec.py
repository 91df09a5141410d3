"""The spec that tunes a kernel, as text, with the files of its folder.

Takes a Kernel; gives a Draft. How it tunes depends on what there is, and the spec's first lines say so:

    template    the problem ships with a template and a space: points of it against the kernel
    flags       neither ships: the kernel as it is, under other compilers and flags
    evolve      the kernel has SPAK-EVOLVE blocks and a model is named: the model writes them anew

It writes nothing and runs nothing.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spak import data
from spak.errors import UsageError
from spak.lang.format import format_text
from spak.tools.cc import MARK, marked
from spak.tuning.kernel import Kernel
from spak.validators.problems import FOLDER

How = Literal["template", "flags", "evolve"]
SAYS: Mapping[How, str] = {
    "template": "points of the template that ships with the problem, against your kernel",
    "flags": "your kernel as it is, under other flags: no template ships for the problem",
    "evolve": "the marked blocks of your kernel, written anew by a model",
}
BLOCK = b"SPAK-EVOLVE-BEGIN"
_SHARED = b"#ifndef THREADS"
"""What a template has that shares its work between threads."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A spec, the files of its folder, and how it tunes."""

    how: How
    text: str
    files: Mapping[str, bytes]


def draft(
    kernel: Kernel,
    title: str,
    evaluations: int,
    compilers: Sequence[str],
    model: bool = False,
    threads: int = 1,
) -> Draft:
    """The spec for a kernel. `title` is the kernel's file, `compilers` are those of the toolchain, `model`
    says that somebody answers for a model, and `threads` how many a candidate may use.

    Raises: UsageError `tune.threads`."""
    if model:
        if threads > 1:
            raise _one_thread("what a model writes is measured on one thread")
        return Draft(
            "evolve", _text("evolve", kernel, title, evaluations, _EVOLVE), {"naive.c": kernel.source}
        )
    found = _shipped(kernel.facts.name, threads)
    if found is None:
        how: How = "flags"
        template, space = kernel.source, flags(kernel, compilers)
    else:
        how = "template"
        template, space = found
    if threads > 1:
        space = {**space, **_several(threads, how)}
    body = _TUNER.replace("{space}", rendered(space))
    files = {"naive.c": kernel.source, "template.c": template}
    return Draft(how, _text(how, kernel, title, evaluations, body, threads), files)


def _several(threads: int, how: How) -> dict[str, Any]:
    """The parameters of a space in which candidates may use several threads: one or all. OpenMP's library
    ends those that a smaller team leaves over, and the filter ends a candidate for it."""
    if how == "flags":
        return {"FLAGS_THREADS": ["-fno-openmp", "-fopenmp"]}
    return {"THREADS": [1, threads], "FLAGS_THREADS": ["-fopenmp"]}


def _one_thread(why: str) -> UsageError:
    return UsageError("tune.threads", why, "leave --threads out: it is tuned for one core")


def flags(kernel: Kernel, compilers: Sequence[str]) -> dict[str, Any]:
    """The space of flags for a kernel that has no template: what may change its speed and not its text.
    -ffast-math only where the problem's tolerance lets sums be reordered."""
    machine = ["-march=native"]
    if platform.machine() in ("x86_64", "AMD64"):
        machine += ["-march=native -mprefer-vector-width=512", "-march=x86-64-v3"]
    loose = kernel.facts.tolerance.abs or kernel.facts.tolerance.rel
    space: dict[str, Any] = {
        "FLAGS_LEVEL": ["-O2", "-O3"],
        "FLAGS_MACHINE": machine,
        "FLAGS_LOOPS": ["-fno-unroll-loops", "-funroll-loops"],
        "FLAGS_MATH": ["-fno-math-errno", *(["-ffast-math"] if loose else [])],
    }
    if "clang" in compilers:
        space["COMPILER"] = ["gcc", "clang"]
    return space


def rendered(space: Mapping[str, Any]) -> str:
    """A space as the lines of SPACE."""
    lines = []
    for name, choices in space.items():
        if isinstance(choices, dict):
            ((word, ends),) = choices.items()
            lines.append(f"{name}: {word}({', '.join(map(str, ends))})")
        else:
            lines.append(f"{name}: {json.dumps(choices)}")
    return "\n".join(lines)


def shared(problem: str) -> Path | None:
    """The template of a shipped problem that shares its work between threads; None where there is none."""
    names = (f"{problem}_threads_template.c", f"{problem}_template.c")
    files = [data.path(FOLDER) / name for name in names]
    return next((file for file in files if file.is_file() and _SHARED in file.read_bytes()), None)


def _shipped(problem: str, threads: int) -> tuple[bytes, dict[str, Any]] | None:
    """The template and the space of a shipped problem; None where it has none.

    Raises: UsageError `tune.threads`."""
    folder = data.path(FOLDER)
    template, space = folder / f"{problem}_template.c", folder / f"{problem}_space.json"
    if not (template.is_file() and space.is_file()):
        return None
    if threads > 1:
        found = shared(problem)
        if found is None:
            raise _one_thread(f"the template for {problem} has no parameter THREADS")
        template = found
    return template.read_bytes(), json.loads(space.read_text(encoding="utf-8"))


def _text(how: How, kernel: Kernel, title: str, evaluations: int, body: str, threads: int = 1) -> str:
    own = marked(kernel.source, MARK)  # the kept kernel is built with the flags that its candidate had
    names = {
        "title": re.sub(r"[^\w.-]", "_", title),
        "says": SAYS[how],
        "agent": f"{kernel.facts.prototype.symbol.capitalize()}_Tuning",
        "problem": kernel.facts.name,
        "measured": f", n: {kernel.facts.most}, threads: {threads}" if threads > 1 else "",
        "steps": 10 * evaluations + 100,
        "seconds": 40 * evaluations + 300,
        "budget": f", tokens: {20_000 * evaluations}" if how == "evolve" else "",
        "evaluations": evaluations,
        "patience": max(evaluations // 2, 6),
        "symbol": kernel.facts.prototype.symbol,
        "mark": f"{MARK} {' '.join([*_NATIVE, own]).strip()}\\n" if how == "evolve" else "",
    }
    text = _HEAD + body + _TAIL
    for name, value in names.items():
        text = text.replace("{" + name + "}", str(value))
    return format_text(text).text


_NATIVE = ("-O3", "-march=native")
"""The flags of what a model writes; a template names its own in each point."""
_HEAD = """\
// Tunes {title} for the problem {problem}: {says}.
// `spak tune` wrote this spec. You may change it: the next `spak tune {title}` runs it as it is.

AGENT {agent} LEVEL 5 {
  CONFIG {
    SANDBOX RESTRICTED
    MODE full_auto
    BUDGET { steps: {steps}, elapsed_s: {seconds}{budget} }
  }

  START -> baseline

  TASK baseline {
    GOAL "Compile the kernel as it is and measure it."
    step build: tool.cc { source: "naive.c", output: "baseline.so", flags: ["-O2"], flags_from_source: true }
    VALIDATOR CpuProfiler {
      problem: "{problem}", binary: "baseline.so", source: "naive.c", role: "baseline"{measured}
    }
    NEXT { success -> tune }
  }

"""
_TUNER = """\
  TASK tune {
    GOAL "Find a kernel that is faster than the best so far and still right."
    TOOLS [instantiate]
    PROPOSER tuner { tool: "instantiate", args: { template: "template.c", path: "candidate.c" } }
    SPACE {
{space}
    }
    step draft: llm.plan { role: "coder" }
    step build: tool.cc {
      source: "candidate.c", output: "candidate.so", flags: ["-O2"], flags_from_source: true
    }
    VALIDATOR CpuProfiler { problem: "{problem}", binary: "candidate.so", source: "candidate.c"{measured} }
    RULE { patience: {patience}, evaluations: {evaluations} }
    RETRIES {evaluations}
    NEXT { metric_improved -> tune, success -> tune, fail -> tune, timeout -> tune, plateau -> finalize }
  }

"""
_EVOLVE = """\
  TASK tune {
    GOAL "Make {symbol} faster on one core, still right."
    TOOLS [write_file]
    PROPOSER evolve { path: "candidate.c", islands: 2, population: 4, migrate: 4 }
    step draft: llm.plan { role: "coder" }
    step build: tool.cc {
      source: "candidate.c", output: "candidate.so", flags: ["-O3", "-march=native"], flags_from_source: true
    }
    VALIDATOR CpuProfiler { problem: "{problem}", binary: "candidate.so", source: "candidate.c" }
    RULE { patience: {patience}, evaluations: {evaluations} }
    RETRIES {evaluations}
    NEXT { metric_improved -> tune, success -> tune, fail -> tune, timeout -> tune, plateau -> finalize }
  }

"""
_TAIL = """\
  TASK finalize {
    GOAL "Keep the best kernel and measure it again, on fresh inputs, against the baseline."
    step keep: tool.write_file { path: "best.c", content: "{mark}{{best.source}}" }
    step build: tool.cc { source: "best.c", output: "best.so", flags: ["-O2"], flags_from_source: true }
    VALIDATOR CpuProfiler {
      problem: "{problem}", binary: "best.so", source: "best.c", role: "final"{measured}
    }
  }
}
"""
