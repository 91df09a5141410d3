"""Random stratified programs: our rows are those of a naive evaluator and of clingo, also after changes."""

from __future__ import annotations

import random

import pytest

from policy_kit import CONSTANTS, EDB, IDB, Facts, clingo_rows, given, naive, random_program, text_of
from spak.datalog import Name, Session, load, rule_tables
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts
from spak.datalog.why_not import why_not

SEEDS = range(120)


def rows_of(session: Session) -> Facts:
    return {
        (name, tuple(str(value) for value in row)) for name in (*EDB, *IDB) for row in session.query(name)
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_those_of_the_naive_evaluator_and_stay_so_when_facts_change(seed: int) -> None:
    rules, facts = random_program(seed)
    policy = load({"random.mg": text_of(rules)})
    session = policy.session(given(facts))
    assert rows_of(session) == naive(rules, facts)
    draw = random.Random(seed)
    for _ in range(6):
        gone = {fact for fact in facts if draw.random() < 0.3}
        new = {
            (name, tuple(draw.choice(CONSTANTS) for _ in range(EDB[name])))
            for name in draw.choices([*EDB], k=draw.randint(0, 3))
        }
        facts = (facts - gone) | new
        session.update(given(gone), given(new))
        assert rows_of(session) == naive(rules, facts)


@pytest.mark.parametrize("seed", range(40))
def test_rows_stay_so_when_facts_come_and_go_one_by_one(seed: int) -> None:
    rules, facts = random_program(seed)
    session = load({"random.mg": text_of(rules)}).session(given(facts))
    draw = random.Random(seed)
    less: Facts = set()
    more: Facts = set()
    for turn in range(30):
        if turn and draw.random() < 0.4:
            less, more = more, less  # what was last done is taken back
        else:
            name = draw.choice([*EDB])
            fact = (name, tuple(draw.choice(CONSTANTS) for _ in range(EDB[name])))
            less, more = (set(), {fact} - facts) if draw.random() < 0.5 else ({fact} & facts, set())
        facts = (facts - less) | more
        session.update(given(less), given(more))
        assert rows_of(session) == naive(rules, facts)
    assert rows_of(session) == rows_of(session.policy.session(given(facts)))


@pytest.mark.parametrize("seed", range(40))
def test_tables_of_constants_change_no_row_and_no_proof(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, facts = random_program(seed)
    plain = load({"random.mg": text_of(rules)}).session(given(facts))
    monkeypatch.setattr(rule_tables, "LEAST", 1)
    merged = load({"random.mg": text_of(rules)}).session()
    for fact in given(facts):
        merged.assert_facts([fact])
    assert len(merged.policy.tables) >= len(plain.policy.tables)
    assert rows_of(merged) == rows_of(plain)
    for name in IDB:
        for row in plain.query(name):
            assert prove(merged, name, *row).hash == prove(plain, name, *row).hash
    merged.update(given(facts), [])
    assert rows_of(merged) == naive(rules, set())


def test_clingo_agrees() -> None:
    programs = [random_program(seed) for seed in SEEDS]
    for (rules, facts), expected in zip(programs, clingo_rows(programs), strict=True):
        assert rows_of(load({"random.mg": text_of(rules)}).session(given(facts))) == expected


@pytest.mark.parametrize("seed", range(40))
def test_proofs_are_accepted_and_the_same_in_any_order(seed: int) -> None:
    rules, facts = random_program(seed)
    policy = load({"random.mg": text_of(rules)})
    session = policy.session(given(facts))
    draw = random.Random(seed)
    shuffled, turned = list(rules), given(facts)
    draw.shuffle(shuffled)
    draw.shuffle(turned)
    renamed = text_of(shuffled).replace("X", "Aa").replace("Y", "Bb")
    other_policy = load({"other.mg": renamed})
    other = other_policy.session()
    for fact in turned + turned:
        other.assert_facts([fact])
    assert other_policy.hash == policy.hash
    for name in IDB:
        for row in session.query(name):
            proof = prove(session, name, *row)
            assert accepts(policy, given(facts), proof), proof.text()
            assert prove(other, name, *row).hash == proof.hash


def test_supplying_what_a_why_not_names_flips_the_answer() -> None:
    assert sum(flips(seed) for seed in range(60)) > 100


def flips(seed: int) -> int:
    """How many attempts of this program were tried, each of which must flip its answer."""
    rules, facts = random_program(seed)
    policy = load({"random.mg": text_of(rules)})
    flipped = 0
    for name in IDB:
        session = policy.session(given(facts))
        width = next(len(args) for (head, args), _ in rules if head == name)
        for value in CONSTANTS:
            goal = (Name(value),) * width
            if session.holds(name, *goal):
                continue
            for attempt in why_not(session, name, *goal).attempts:
                if attempt.failed or attempt.conditions:
                    continue
                if any(f"{pred}(" in attempt.rule.partition(":-")[2] for pred in IDB):
                    continue  # a derived predicate may change with what is supplied
                atoms = [(item.pred, item.args) for item in attempt.missing]
                assert atoms or attempt.against
                if any(None in args for _, args in atoms):
                    continue
                more = [(pred, tuple(Name(str(arg)) for arg in args)) for pred, args in atoms]
                less = [(item.pred, tuple(Name(arg) for arg in item.args)) for item in attempt.against]
                trial = policy.session(given(facts))
                trial.update(less, more)
                assert trial.holds(name, *goal), attempt
                flipped += 1
    return flipped
