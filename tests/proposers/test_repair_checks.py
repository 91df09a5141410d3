"""What each of the five checks says, and what it alone catches; on what a guest could have said."""

from __future__ import annotations

from typing import Any

import pytest

from repair_kit import CLAMP, bad
from spak.proposers.repair.candidates import Candidate, Edit
from spak.proposers.repair.checks import Outcome, external, judge, reach
from spak.proposers.repair.functions import functions
from spak.proposers.repair.lab import Heard
from spak.proposers.repair.refusals import Refusal

(FUNCTION,) = functions("numbers_.py", CLAMP)
INPUTS = [f"clamp({n}, 0, 5)" for n in range(120)]
BEFORE = ["= 1"] * 120


def candidate(old: str = "value < high", new: str = "value > high") -> Candidate:
    return Candidate(FUNCTION, Edit("comparison", 1, 8, FUNCTION.text.replace(old, new)))


TWO = (candidate(), candidate("value < high", "value >= high"))


def judged(
    *answers: list[str],
    hidden: Any = (None, None),
    tests: int = 3,
    off: str = "",
    steps: tuple[int, int] = (9, 9),
    inputs: list[str] = INPUTS,
    alike: Any = (4, []),
    before: list[str] = BEFORE,
    tried: tuple[Candidate, ...] = TWO,
) -> Outcome:
    table = {
        "path": "numbers_.py",
        "qual": "clamp",
        "hidden": [f"h{n}" for n in range(tests)],
        "visible": ["v"],
    }
    count, of = len(answers), [["numbers_.py", "clamp", "numbers_"]] * len(inputs)
    lines: list[Any] = [{"shown": inputs, "of": of, "recorded": 3}, {"before": before[: len(inputs)]}]
    lines += [
        {"place": place, "answers": answers[place][: len(inputs)], "alike": list(alike), "steps": list(steps)}
        for place in range(count) if hidden[place] is None or off == "hidden"
    ]  # fmt: skip
    said: list[Any] = [{"hidden": place, "bad": hidden[place]} for place in range(count)]
    said.append({"compared": lines, "end": ""})
    return judge(tried[:count], [table], Heard(tuple(said), 0), frozenset({off} if off else ()))


def code(outcome: Outcome) -> str:
    return outcome.refusal.code if outcome.refusal else ""


def test_patches_that_agree_are_accepted_with_five_verdicts() -> None:
    found = judged(BEFORE, BEFORE)
    assert found.candidate == TWO[0]
    assert [one.name for one in found.verdicts] == [
        "visible",
        "hidden",
        "agrees",
        "no_new_failure",
        "minimal",
    ]
    assert bad(found.verdicts) == []


def test_a_patch_that_fails_where_most_answer_alike_is_left_out() -> None:
    before = ["raise TypeError", *BEFORE[1:]]
    tried = (*TWO, candidate("value < high", "high < value"))
    found = judged(["hang", *BEFORE[1:]], BEFORE, BEFORE, hidden=(None,) * 3, before=before, tried=tried)
    assert found.candidate == TWO[1]


def test_true_is_one_for_tests_and_for_patches() -> None:
    assert judged(["= True | [1]", *BEFORE[1:]], ["= 1 | [1]", *BEFORE[1:]]).candidate is not None


def test_hidden_tests_alone_catch_a_patch_that_is_alone() -> None:
    assert code(judged(BEFORE, hidden=(["h1", "fail", ""],))) == "repair.overfit"
    assert judged(BEFORE, hidden=(["h1", "fail", ""],), off="hidden").candidate is not None


def test_too_few_hidden_tests_are_no_check() -> None:
    found = judged(BEFORE, tests=1)
    assert code(found) == "repair.unchecked"
    assert found.refusal is not None
    assert "+    if value > high" in found.refusal.evidence["patch"]


def test_agreement_alone_catches_patches_that_differ() -> None:
    other = [*BEFORE[:60], "= 2", *BEFORE[61:]]
    found = judged(BEFORE, other)
    assert code(found) == "repair.ambiguous"
    assert judged(BEFORE, other, off="agrees").candidate is not None
    assert found.refusal is not None
    question = found.refusal.evidence["question"]
    assert question["call"] == "clamp(60, 0, 5)"
    assert [(one["answer"], one["patches"]) for one in question["answers"]] == [("1", 1), ("2", 1)]


def test_the_question_is_the_smallest_input() -> None:
    other = ["= 2" if n in (7, 60, 110) else "= 1" for n in range(120)]
    found = judged(BEFORE, other)
    assert found.refusal is not None
    assert found.refusal.evidence["question"]["call"] == "clamp(7, 0, 5)"


def test_new_failures_alone_catch_a_patch_that_raises() -> None:
    raises = [*BEFORE[:5], "raise ZeroDivisionError", *BEFORE[6:]]
    assert code(judged(raises)) == "repair.new_failure"
    assert judged(raises, off="no_new_failure").candidate is not None
    assert judged(raises, BEFORE).candidate == TWO[1], "it is left out, and the others are asked"


@pytest.mark.parametrize("answer", ["hang", "died", "raise MemoryError"])
def test_hanging_and_dying_are_failures(answer: str) -> None:
    assert code(judged([answer, *BEFORE[1:]])) == "repair.new_failure"


def test_an_input_on_which_most_fail_counts_for_nobody() -> None:
    before = ["raise TypeError", *BEFORE[1:]]
    first = ["raise TypeError", *BEFORE[1:]]
    second = ["raise KeyError", *BEFORE[1:]]
    assert judged(first, second, before=before).candidate is not None
    third = ["= 3", *BEFORE[1:]]
    assert code(judged(first, third, before=before)) == "repair.ambiguous"


def test_minimal_alone_catches_a_patch_that_costs_twice_as_much() -> None:
    assert code(judged(BEFORE, steps=(1000, 2501))) == "repair.not_minimal"
    assert judged(BEFORE, steps=(1000, 2501), off="minimal").candidate is not None
    assert judged(BEFORE, steps=(1000, 2500)).candidate is not None


def test_minimal_alone_catches_a_patch_that_reaches_further() -> None:
    reaching = candidate("return value", "return __import__('os').getpid()")
    assert code(judged(BEFORE, tried=(reaching,))) == "repair.not_minimal"
    assert judged(BEFORE, tried=(reaching,), off="minimal").candidate == reaching


def test_without_inputs_only_a_patch_that_is_alone() -> None:
    assert judged([], inputs=[]).candidate is not None
    assert code(judged([], [], inputs=[])) == "repair.unchecked"


def test_a_patch_that_tells_tests_from_others_is_not_accepted() -> None:
    assert code(judged(BEFORE, alike=(4, [["clamp(1, 0, 5)", "1", "9"]]))) == "repair.overfit"


def test_a_comparison_that_did_not_end_accepts_nothing() -> None:
    said = ({"hidden": 0, "bad": None}, {"compared": [], "end": "late"})
    table = {"path": "numbers_.py", "qual": "clamp", "hidden": ["a", "b"], "visible": ["v"]}
    assert judge(TWO[:1], [table], Heard(said, 0)).candidate is None


@pytest.mark.parametrize(
    "body",
    [
        "import os\n    return value",
        "return open('x').read()",
        "return value.__class__",
        "return eval('1')",
        "return sys.exit(0)",
        "global clamp\n    return value",
        "value.wanted = low\n    return value",
        "return getattr(value, 'x')",
        "return os.environ['PYTEST_CURRENT_TEST']",
    ],
)
def test_what_a_patch_may_not_reach(body: str) -> None:
    assert reach(FUNCTION, FUNCTION.text.replace("return value", body))


@pytest.mark.parametrize(
    "body", ["return min(value, high)", "return sorted([value])[0]", "low = 1\n    return low"]
)
def test_what_a_patch_may_use(body: str) -> None:
    assert reach(FUNCTION, FUNCTION.text.replace("return value", body)) == ""


def test_other_parameters_are_another_function() -> None:
    assert reach(FUNCTION, FUNCTION.text.replace("(value, low, high)", "(value, low, high=1)"))


def test_a_patch_from_elsewhere_is_the_new_text_of_one_function() -> None:
    text = CLAMP.replace("value < high", "value > high")
    found = external({"numbers_.py": text}, [FUNCTION])
    assert isinstance(found, Candidate)
    assert found.function.in_file(found.edit.text) == text
    for edits in (
        {"numbers_.py": text + "import os\n"},
        {"numbers_.py": text, "conftest.py": ""},
        {"test_numbers.py": ""},
        {"numbers_.py": CLAMP},
        {"numbers_.py": ""},
        {"numbers_.py": text.replace("    return value\n", "    return value\n\n\ndef other():\n    pass\n")},
    ):
        assert isinstance(external(edits, [FUNCTION]), Refusal), edits


def test_a_question_asks_for_a_value_before_what_became_of_the_arguments() -> None:
    """Values differ on a longer call; where none do, the question says that it is about the arguments."""
    changed = ["= 1 | [2]" if n == 7 else BEFORE[n] for n in range(120)]
    for other, call, differ in (
        (["= 2 | [1]" if n == 110 else changed[n] for n in range(120)], "clamp(110, 0, 5)", "value"),
        (changed, "clamp(7, 0, 5)", "arguments"),
    ):
        found = judged(BEFORE, other)
        assert found.refusal is not None
        question = found.refusal.evidence["question"]
        assert (question["call"], question["differ"]) == (call, differ)
        assert len({one["answer"] for one in question["answers"]}) == 2
        assert (question["module"], question["tests"]) == ("numbers_", "v")
