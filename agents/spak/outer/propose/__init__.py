"""Proposers of candidates: by rules from findings, from a model's answer under the contract, by evolution."""

from spak.outer.propose.evolve import Scored, evolve
from spak.outer.propose.model import FORMAT, asked, contract, prompt
from spak.outer.propose.rules import from_findings
from spak.outer.propose.training import Training

__all__ = ["FORMAT", "Scored", "Training", "asked", "contract", "evolve", "from_findings", "prompt"]
