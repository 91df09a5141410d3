"""The policy language (Mangle) and its engine: `load` a policy, open a session over facts, ask, explain."""

from __future__ import annotations

from spak.policy.errors import PolicyError, PolicyLimit
from spak.policy.evaluate import Limits
from spak.policy.externals import Request
from spak.policy.session import Policy, Session, atom, load
from spak.policy.syntax import Finding, Var
from spak.policy.values import Fact, Map, Name, Pair, Struct, Value

__all__ = [
    "Fact",
    "Finding",
    "Limits",
    "Map",
    "Name",
    "Pair",
    "Policy",
    "PolicyError",
    "PolicyLimit",
    "Request",
    "Session",
    "Struct",
    "Value",
    "Var",
    "atom",
    "load",
]
