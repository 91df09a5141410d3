"""The compliance kit: our kernel passes, its mutants do not, and the chat loop fails what chat loops fail."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from spak.compliance.cases import Case, cases
from spak.compliance.check import CHECKS
from spak.compliance.kit import OURS, judge, judge_mutants, verdict_of
from spak.compliance.mutants import MUTANTS, Mutant, environment, replace_line
from spak.compliance.play import PLAYS
from spak.compliance.talk import Runtime
from spak.errors import BugError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/aep.md").read_text()
OWN_MEMBERS = {"pending", "sum", "calls", "other"}
"""What kinds of parts look at themselves."""
NUMBERS = [case.number for case in cases()]


@pytest.mark.sandbox
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_our_kernel_passes(case: Case) -> None:
    assert verdict_of(case, lambda: Runtime(OURS)) == ""


@pytest.mark.sandbox
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_a_mutant_of_our_kernel_fails_its_test(mutant: Mutant) -> None:
    """That it fails no other is what `spak compliance --mutants` shows; it takes eleven times as long."""
    (found,) = judge_mutants(only=[mutant.number], others=False)
    assert found.caught and found.why


def test_each_test_has_a_mutant() -> None:
    assert [mutant.number for mutant in MUTANTS] == NUMBERS


def test_a_mutant_whose_text_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BugError, match="0 times"):
        environment(Mutant(1, "none", "errors.py", "this text is nowhere", ""), tmp_path)


def test_a_mutant_changes_its_copy_only(tmp_path: Path) -> None:
    before = (ROOT / "agents/spak/kernel/route.py").read_bytes()
    environment(MUTANTS[0], tmp_path)
    assert (tmp_path / "spak/kernel/route.py").read_bytes() != before
    assert (ROOT / "agents/spak/kernel/route.py").read_bytes() == before
    twice = tmp_path / "twice"
    twice.write_text("a a")
    with pytest.raises(BugError, match="2 times"):
        replace_line(twice, "a", "b")


def test_a_chat_loop_fails_what_the_documentation_says() -> None:
    verdicts = judge((sys.executable, str(ROOT / "specs/compliance/chat_loop.py")))
    table = re.findall(r"^\| (\d+) \| (passes|fails) \|", PAGE, re.M)
    assert [(str(one.case.number), "passes" if one.passed else "fails") for one in verdicts] == table
    assert all(one.why for one in verdicts if not one.passed)


def test_each_clause_of_the_specification_is_the_text_of_a_test() -> None:
    plain = " ".join(PAGE.split())
    assert re.findall(r"^### AEP-K([1-9]\d*) ", PAGE, re.M) == [str(number) for number in NUMBERS]
    for case in cases():
        assert f"### {case.id} {case.title} {' '.join(case.holds.split())}" in plain, case.id


def test_the_tests_are_those_of_the_source() -> None:
    seed = (ROOT / "tests/compliance/seed_001.txt").read_text().splitlines()
    assert len(seed) == 11
    for case in cases():
        assert case.seed == seed[case.number - 1]


def test_a_part_expects_nothing_that_nobody_looks_at() -> None:
    for case in cases():
        for part in case.parts:
            assert part.kind in PLAYS, part.name
            assert part.expect.keys() <= CHECKS.keys() | OWN_MEMBERS, part.name
