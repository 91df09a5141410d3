"""The schema against the one of 0.1 (contract.txt, made at the commit before documents were defined once):
what a program relies on still holds, and nothing more is asked of it.

`CHANGED` lists each line that no longer holds and the words of the changelog that say so.
"""

from __future__ import annotations

from pathlib import Path

from openapi_contract import facts
from openapi_kit import FILE, read

BEFORE = set((Path(__file__).parent / "contract.txt").read_text().strip().replace("\n", "; ").split("; "))
NOW = set(facts(read(FILE.read_text())))
CHANGELOG = Path(__file__).resolve().parents[3] / "CHANGELOG.md"

VALUES = "which values the filters `state`, `trials` and `version` of a list of runs take"
CHANGED = {f"list_runs takes query {name} optional string": VALUES for name in ("state", "trials", "version")}


def asked(lines: set[str]) -> set[str]:
    """The parameters and members of bodies that a request has to have, of operations known before."""
    known = {line.split()[0] for line in BEFORE if " takes " in line or " body " in line}
    bodies = {
        line.split()[-1] for line in lines if " body application/json " in line and line.split()[0] in known
    }
    return {
        line for line in lines
        if (" takes " in line and " always " in line and line.split()[0] in known)
        or (" always " in line and line.split(".")[0] in bodies)
    }  # fmt: skip


def test_what_a_program_relies_on_still_holds() -> None:
    assert set(CHANGED) == BEFORE - NOW


def test_no_request_has_to_have_more() -> None:
    assert len(asked(BEFORE)) > 300
    assert asked(NOW) <= asked(BEFORE)


def test_each_change_is_in_the_changelog() -> None:
    changelog = CHANGELOG.read_text()
    assert [line for line, words in CHANGED.items() if words not in changelog] == []
