"""Proposers of candidates: by rules from findings, from a model's answer under the contract, by evolution."""

from spak.evolve.propose.evolve import Scored, evolve
from spak.evolve.propose.model import FORMAT, asked, contract, prompt
from spak.evolve.propose.rules import from_findings
from spak.evolve.propose.training import Training

__all__ = ["FORMAT", "Scored", "Training", "asked", "contract", "evolve", "from_findings", "prompt"]
