"""Kernel semantics: the number of the kernel's decisions, which a ledger names and this kernel has to know.

Takes the rules of a genesis record; refuses those of another kernel. A ledger names its number as `kernel`.
Ledgers of earlier spak name theirs as `semantics`, 1 to 5, which mean other decisions: they are told apart by
that and are never replayed. VERSIONING.md says what raises the number; with a second one, what it decides
differently gets a named flag here, which the kernel asks instead of the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.errors import LedgerError

SEMANTICS = 1
"""The number of this kernel."""

REPLAYS_EARLIER = "3be26be8"
"""The last commit that replays ledgers which name `semantics`."""


class Earlier(LedgerError):
    """`ledger.semantics` of a kernel before this one: no later version replays the run again."""


def require_known(rules: Mapping[str, Any]) -> None:
    """Nothing where this kernel replays a run with these rules.

    Raises: LedgerError `ledger.semantics`; KeyError where they name no kernel.
    """
    if "kernel" not in rules and "semantics" in rules:
        raise Earlier(
            "ledger.semantics",
            f"an earlier kernel made it (semantics {rules['semantics']}), and this one does not replay it",
            f"replay it with commit {REPLAYS_EARLIER} of spak; `spak report` shows it here",
        )
    number = rules["kernel"]
    if type(number) is not int or number != SEMANTICS:
        raise LedgerError(
            "ledger.semantics",
            f"kernel {number} made it, and this one is kernel {SEMANTICS}",
            "replay it with the version of spak that wrote it",
        )
