"""The problems that CpuProfiler can measure: one small file each, one table that lists them.

A problem knows its inputs, its reference, its tolerance, how many floating-point operations its answer needs
and the name that a candidate exports. It knows nothing of processes, clocks or rivals.

ABI of every problem: `void SYMBOL(long n, const float *A, const float *B, const float *C, float *O, float
*scratch)`; pointers are 64-byte aligned, scratch holds 2^20 floats of unknown content, n is at most 1024 and
unknown when the candidate is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping

from spak.validators.problems.attention import Attention
from spak.validators.problems.problem import Case, Problem

PROBLEMS: Mapping[str, Problem] = {problem.name: problem for problem in (Attention(),)}

__all__ = ["PROBLEMS", "Case", "Problem"]
