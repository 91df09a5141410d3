"""Datalog in the Mangle dialect: a language and its engine, which know nothing of agents.

Takes the text of rules and facts; gives what follows from them, with proofs and with what is missing:

    >>> from spak.datalog import Name, load
    >>> rules = "Decl edge(X, Y). path(X, Y) :- edge(X, Y). path(X, Z) :- edge(X, Y), path(Y, Z)."
    >>> policy = load({"rules.mg": rules})
    >>> session = policy.session([("edge", (Name("/a"), Name("/b"))), ("edge", (Name("/b"), Name("/c")))])
    >>> session.query("path", Name("/a"), None)
    [(Name(text='/a'), Name(text='/b')), (Name(text='/a'), Name(text='/c'))]

`text` reads a text into the tree of `syntax` and formats it; `static_check`, `types` and `lint` give
findings; `plan`, `evaluate` and `terms` derive; `explain` and `why_not` give reasons, `proof_checker`
verifies a proof on its own. docs/policy.md describes the language.
"""

from __future__ import annotations

from spak.datalog.errors import PolicyError, PolicyLimit
from spak.datalog.evaluate import Limits
from spak.datalog.externals import Request
from spak.datalog.session import Policy, Session, atom, load
from spak.datalog.syntax import Finding, Var
from spak.datalog.values import Fact, Map, Name, Pair, Struct, Value

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
