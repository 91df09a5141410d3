"""What a change of the law permits with any k facts: a question to a solver (clingo, the extra `solver`).

`ask` is what callers use; `domain` says which facts are combined, `translate` (with `bodies`) writes both
laws as one program of answer sets, `search` runs it. Every counterexample is judged by our own engine before
it is shown.
"""

from __future__ import annotations

from spak.outer.solver.question import Answer, Asked, Counterexample, ask

__all__ = ["Answer", "Asked", "Counterexample", "ask"]
