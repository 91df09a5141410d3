"""Proposers of candidates: by rules from findings, and from a model's answer under the contract."""

from spak.outer.propose.model import FORMAT, contract, prompt
from spak.outer.propose.rules import from_findings
from spak.outer.propose.training import Training

__all__ = ["FORMAT", "Training", "contract", "from_findings", "prompt"]
