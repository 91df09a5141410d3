"""The gate: what a candidate has to pass before a person sees it. Each stage has its own verdict.

form            it parses, checks, formats back to itself, and changes something
privileges      what no evidence can pass, only a person with that right
counterfactual  recorded runs under the candidate, without a model
task_outcomes   by task: in how many of these runs it would come out otherwise
golden, fresh   cases that must not get worse, and the paired test (spak.outer.campaigns)
"""

from spak.outer.gate.candidate import Candidate, of_diff
from spak.outer.gate.counterfactual import Rehearsal, Replayed, rehearse, total
from spak.outer.gate.form import form
from spak.outer.gate.privileges import privileged
from spak.outer.gate.stage import Stage

__all__ = [
    "Candidate",
    "Rehearsal",
    "Replayed",
    "Stage",
    "form",
    "of_diff",
    "privileged",
    "rehearse",
    "total",
]
