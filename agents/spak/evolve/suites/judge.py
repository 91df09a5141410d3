"""Whether a run of a case was right: its end state and codes, then files, validator and sealed checks.

Takes how the run ended and the folder that it left; gives a Verdict. A run that did not end, or a check that
could not be carried out, is void: no result, and never a pass. Checks after the first that fails are run all
the same, so that a report names everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spak.evolve.suites import sealed
from spak.evolve.suites.model import STATES, Case

Outcome = Literal["pass", "fail", "void"]
UNANSWERED = (
    "it waits for a person, and nobody answers a run of a case: name a backend, or give the case a recording"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` names what failed or what made the run void; empty for a pass."""

    outcome: Outcome
    why: str = ""
    results: tuple[sealed.Result, ...] = ()


def judge(case: Case, state: str, codes: Sequence[str], left: Path, bench: sealed.Bench | None) -> Verdict:
    """The verdict on a run that ended (or stopped) in `state` with `codes`, and left the folder `left`.

    `bench` may be None for a case that runs no checks.
    """
    if state == "waiting":
        return Verdict("void", UNANSWERED)
    if state not in STATES:
        return Verdict("void", f"the run is {state}, it did not end")
    right = case.right
    problems = []
    if state != right.state:
        because = f" ({', '.join(codes)})" if codes else ""
        problems.append(f"it {_ended(state)}{because}, expected {right.state}")
    elif right.codes and not set(right.codes) <= set(codes):
        problems.append(f"codes {', '.join(codes) or 'none'}, expected {', '.join(right.codes)}")
    results = sealed.files(case, left)
    if case.right.runs_checks:
        assert bench is not None, "a case with checks is judged with a bench"
        results += [*sealed.validate(case, left, bench), *sealed.check(case, left, bench)]
    void = [item for item in results if item.void]
    if void:
        return Verdict("void", f"{void[0].name}: {void[0].why}", tuple(results))
    problems += [f"{item.name}: {item.why}" for item in results if not item.ok]
    return Verdict("fail" if problems else "pass", "; ".join(problems), tuple(results))


def _ended(state: str) -> str:
    return {"refused": "was refused", "cancelled": "was cancelled"}.get(state, state)
