"""The gate: what a candidate has to pass before a person sees it. Each stage has its own verdict.

form            it parses, checks, formats back to itself, and changes something
privileges      what no evidence can pass, only a person with that right
counterfactual  recorded runs under the candidate, without a model
task_outcomes   by task: in how many of these runs it would come out otherwise
golden, fresh   cases that must not get worse, and the paired test (spak.evolve.campaigns)
"""

from spak.evolve.gate.candidate import Candidate, of_diff
from spak.evolve.gate.counterfactual import Rehearsal, Replayed, rehearse, total
from spak.evolve.gate.form import form
from spak.evolve.gate.privileges import privileged
from spak.evolve.gate.stage import Stage

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
