"""Whether an imported run may go on here: only under the rules that a new run of its spec would have.

Takes its folder, the body of its first record and the settings. The first record of an import was written by
somebody else, law, tools and approvers with it; shown, verified and replayed it does no harm. It changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spak import canon, config
from spak.errors import RunError, UserError
from spak.kernel.rules import Rules
from spak.ledger.intake import IMPORTED
from spak.own import own
from spak.policy.law import rules_of
from spak.runner.genesis import genesis

_OTHER = {
    "policy": "its law is not the one of these settings",
    "catalog": "its tools or validators are not those of this installation",
    "keys": "its approvals would be signed with other keys than those of these settings",
}


def must_be_ours(folder: Path, body: Mapping[str, Any], chosen: config.Settings) -> None:
    """Raises: RunError `run.imported`."""
    if (folder / IMPORTED).exists() and (why := _other(body, chosen)):
        raise RunError(
            "run.imported", f"run {folder.name} was imported and cannot be resumed here: {why}",
            "it can be shown, verified and replayed; start a run of its spec",
        )  # fmt: skip


def _other(body: Mapping[str, Any], chosen: config.Settings) -> str:
    """Why the run is none of ours; empty when a new one would have its rules."""
    if body["host"].get("in_place"):
        return "it works in a folder of the machine that it comes from"
    rules, program = body["rules"], Rules.of(body).program
    try:
        used = config.used(config.catalog(own(chosen)), program)
        made = genesis(
            rules["spec"], used, rules["inputs"], rules["r3"],
            rules["seed"], {}, rules.get("proposer", ""), rules["policy"].get("spec", ""),
            rules_of(program.axioms), chosen.approvers, config.law(chosen),
        )["rules"]  # fmt: skip
    except (UserError, KeyError, TypeError) as error:
        return str(getattr(error, "message", type(error).__name__))
    names = [*_OTHER, *{**rules, **made}]
    other = next((name for name in names if canon.dumps(rules.get(name)) != canon.dumps(made.get(name))), "")
    return _OTHER.get(other, f"its {other} is another") if other else ""
