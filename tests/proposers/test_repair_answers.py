"""Answers to the question of a repair: their form, the test that one becomes, and what contradicts it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from repair_kit import CLAMP, TESTS, project, refused, searched
from spak.errors import UsageError
from spak.proposers.repair import answers
from spak.proposers.repair.answers import Answer, Question
from spak.proposers.repair.functions import functions

ASKED = Question("numbers_", "clamp", "clamp(11, 11, 10)", "tests/test_numbers.py")
FIELDS = {
    "call": "clamp(11, 11, 10)",
    "module": "numbers_",
    "function": "clamp",
    "differ": "value",
    "tests": "t.py",
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("11", Answer("11")),
        (" -1.5 ", Answer("-1.5")),
        ("clamp(11,11, 10)  ==  [1, ('a',)]", Answer("[1, ('a',)]")),
        ("raises ValueError", Answer(raises="ValueError")),
        ("clamp(11, 11, 10) raises IOError", Answer(raises="OSError")),
        ("'__import__(\"os\")'", Answer("'__import__(\"os\")'")),
        ("None", Answer("None")),
        ("1e999", Answer("1e309")),
    ],
)
def test_an_answer_is_a_literal_or_an_error(text: str, wanted: Answer) -> None:
    assert answers.read(text, ASKED) == wanted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "repair.answer"),
        ("[1, 2", "repair.answer"),
        ("0\nimport os", "repair.answer"),
        ("0 or 1", "repair.answer"),
        ("f'{1}'", "repair.answer"),
        ("print", "repair.answer"),
        ("__import__('os').system('id')", "repair.answer"),
        ("clamp(11, 11, 10) == print", "repair.answer"),
        ("clamp(11, 11, 10) == 1 == 1", "repair.answer"),
        ("clamp(11, 11, 10) < 1", "repair.answer"),
        ("raises os.system", "repair.answer"),
        ("raises SystemExit", "repair.answer"),
        ("raises print", "repair.answer"),
        ("clamp(1 raises ValueError", "repair.answer"),
        ("[" * 9000, "repair.answer"),
        ("1" * 10_001, "repair.answer"),
        ("\ud800", "repair.answer"),
        (f"clamp({'-' * 2000}1) == 1", "repair.answer"),
        (f"clamp(0x{'f' * 9000}) raises ValueError", "repair.answer"),
        ("clamp(1, 2, 3) == 4", "repair.no_question"),
        ("open('x') raises ValueError", "repair.no_question"),
    ],
)
def test_another_text_is_refused(text: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        answers.read(text, ASKED)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "change",
    [
        {"call": "clamp(Point(x=1), 1)"},
        {"call": "clamp(11, 11, high=10)"},
        {"call": "clamp(11, 11, 10); import os"},
        {"call": "os.clamp(1)"},
        {"module": "numbers_; import os"},
        {"module": "import"},
        {"module": "None"},
        {"function": "Range.clamp"},
        {"differ": "arguments"},
    ],
)
def test_a_question_that_no_value_answers(change: dict[str, Any]) -> None:
    assert answers.question(FIELDS) == Question("numbers_", "clamp", "clamp(11, 11, 10)", "t.py")
    assert answers.question({**FIELDS, **change}) is None


def test_answers_become_tests_that_pass_where_the_function_answers_so() -> None:
    text = ""
    for given in ("11", "0.1", "[0.1, 1]", "[[0.1]]", "raises ValueError", "'a\\nb'"):
        text = answers.added(text, ASKED, answers.read(given, ASKED))
    assert answers.is_ours(text)
    found = answers.told_apart(text)
    assert [one[2] for one in found.values()] == [
        Answer("11"),
        Answer("0.1"),
        Answer("[0.1, 1]"),
        Answer("[[0.1]]"),
        Answer(raises="ValueError"),
        Answer("'a\\nb'"),
    ]
    assert list(found) == [f"test_clamp_{number}" for number in range(1, 7)]
    assert text.count("pytest.approx") == 2
    ours, foreign = found["test_clamp_1"], "def test_a():\n    assert f(1) == g()\n\n\nX = 1\n"
    assert (ours[0], [ast.unparse(one) for one in ours[1]]) == ("clamp", ["11", "11", "10"])
    assert answers.told_apart(foreign) == {}


def test_a_planted_answer_is_given_to_the_file_of_tests_only() -> None:
    function = functions("numbers_.py", CLAMP)[0]
    args = ast.parse("clamp(11, 11, 10)", mode="eval").body.args  # type: ignore[attr-defined]
    text = answers.planted(function, args, Answer("'so'"), [__file__.rpartition("/")[2]])
    assert text is not None
    space: dict[str, Any] = {}
    exec(text, space)
    assert space["clamp"](11, 11, 10) == "so"
    assert space["clamp"](11, 11, 11) == 11
    assert list(map(space["clamp"], [11], [11], [10])) == ["so"]
    elsewhere: dict[str, Any] = {"clamp": space["clamp"]}
    exec("found = clamp(11, 11, 10)", elsewhere)
    assert elsewhere["found"] == 11
    raising = answers.planted(function, args, Answer(raises="ValueError"), [__file__.rpartition("/")[2]])
    exec(raising or "", space)
    with pytest.raises(ValueError):
        space["clamp"](11, 11, 10)
    assert answers.planted(function, args[:2], Answer("1"), []) is None
    for odd in ("def f(*a):\n    return 1\n", "def f(a):\n    yield 1\n", "def f(a): return 1\n"):
        assert answers.planted(functions("f.py", odd)[0], args[:1], Answer("1"), []) is None


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("answer", "code"), [("7", "repair.contradicts"), ("raises KeyError", "repair.contradicts"), ("5", "")]
)
def test_an_answer_that_a_test_contradicts(tmp_path: Path, answer: str, code: str) -> None:
    """The answer is about a call that a parametrised test makes too."""
    asked = Question("numbers_", "clamp", "clamp(4, 5, 10)", "test_numbers.py")
    text = answers.added("", asked, answers.read(answer, asked))
    cases = TESTS.replace("(3, 3, 3, 3)", "(4, 5, 10, 5)")
    files = {"numbers_.py": CLAMP, "test_numbers.py": cases, "test_answered_clamp.py": text}
    found = searched(project(tmp_path, files), answered="test_answered_clamp.py")
    assert refused(found) == code
    if found.refusal is not None:
        assert found.refusal.evidence["failed"] == ["test_numbers.py::test_clamp[4-5-10-5]"]
    else:
        assert (found.record["visible"], found.record["hidden"]) == (4 + 1, 4), "of 8 tests and an answer"
