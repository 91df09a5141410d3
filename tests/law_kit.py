"""The law of tests: the shipped one, with a text of the operator."""

from __future__ import annotations

from spak.policy.law import Law
from spak.runner.genesis import constitution


def under(text: str = "") -> Law:
    """The shipped law, and this text of the operator."""
    return Law(constitution(), {"kit.mg": text} if text else {})
