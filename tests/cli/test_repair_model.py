"""A model as one more proposer of `spak repair`: behind the same checks, and marked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done
from llm_stub import MODEL, Stub
from repair_kit import AREA, WRONG, project
from spak.proposers.repair import model
from spak.proposers.repair.functions import functions
from spak.proposers.repair.refusals import Refusal

NAME = "mod.py::area"
RIGHT = "def area(w, h):\n    return w * h\n"
OVERFIT = "def area(w, h):\n    if w == 1:\n        return 1\n    return 'no'\n"


def said(function: str, text: str) -> str:
    return "say " + json.dumps({"function": function, "text": text})


Asked = Callable[..., tuple[Done, list[Any]]]


@pytest.fixture
def asked(cli: Cli, tmp_path: Path) -> Asked:
    """Repairs a project that single edits do not mend, with a model that answers as the script says."""
    project(tmp_path / "work", {"mod.py": WRONG, "test_mod.py": AREA})

    def call(word: str, *args: str) -> tuple[Done, list[Any]]:
        with Stub() as stub:
            stub.script = [word]
            lines = f'mode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\n'
            (tmp_path / "spak.toml").write_text(f"[llm]\n{lines}")
            return cli("repair", "work", *args), stub.bodies()

    return call


@pytest.mark.sandbox
def test_a_model_mends_what_single_edits_do_not(asked: Asked, cli: Cli) -> None:
    done, questions = asked(said(NAME, RIGHT), "--json")
    assert done.code == 0 and done.json["repair"]["by"] == f"model {MODEL}"
    assert [check["ok"] for check in done.json["repair"]["checks"]] == [True] * 5
    assert "+    return w * h" in done.json["repair"]["patch"]
    (question,) = questions
    text = question["messages"][1]["content"]
    seen = [name for name in ("test_a", "test_b", "test_c", "test_d") if f"test_mod.py::{name}" in text]
    assert NAME in text and len(seen) == 1, "hidden tests are not shown"
    assert cli("replay", "latest", "--json").json["equal"], "no model is asked for it"
    assert MODEL in cli("show", "latest", "--costs").out


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("word", "code", "words"),
    [
        (said(NAME, OVERFIT), "repair.overfit", "it passes the visible tests and not the hidden ones"),
        (
            said(NAME, "def area(w, h):\n    return None\n"),
            "repair.exhausted",
            "it does not pass the failing",
        ),
        ("say Multiply them!", "repair.model", "expected one JSON object"),
        ("400", "llm.rejected", "temperature is not supported"),
    ],
)
def test_what_no_check_accepts_is_refused_with_its_reason(
    asked: Asked, word: str, code: str, words: str
) -> None:
    done, questions = asked(word)
    assert done.code == 5 and len(questions) == 1, "it is asked once"
    assert "no patch: " in done.err and f"[{code}]" in done.err and words in done.err
    assert "by: model" not in done.err


@pytest.mark.sandbox
def test_no_question_where_an_edit_is_found_or_a_person_is_asked(cli: Cli, tmp_path: Path) -> None:
    project(tmp_path / "work")
    with Stub() as stub:
        lines = f'mode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\n'
        (tmp_path / "spak.toml").write_text(f"[llm]\n{lines}")
        done = cli("repair", "work", "--json")
        assert done.code == 0 and "by" not in done.json["repair"] and stub.bodies() == []


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"function": "test_mod.py::test_a", "text": "def test_a():\n    pass\n"}, "repair.model", "test_a"),
        ({"function": NAME}, "repair.model", "text"),
        ({"function": NAME, "text": "x" * 20_000}, "repair.model", "12000"),
        ({"function": NAME, "text": "area = 1\n"}, "repair.model", "not one function area"),
        ({"function": NAME, "text": "def area(w, h:\n"}, "repair.model", "not one function area"),
        ({"function": NAME, "text": RIGHT + "\nimport os\n"}, "repair.model", "not one function area"),
        ({"function": NAME, "text": WRONG}, "repair.model", "that of before"),
        ({"function": NAME, "text": "def area(w, h):\n    import sys\n    sys.exit(0)\n"},
         "repair.not_minimal", "imports"),
        ({"function": NAME, "text": "def area(w, h):\n    exit(0)\n"}, "repair.not_minimal", "exit"),
        ({"function": NAME, "text": "def area(w, h, *, x=open('/etc/passwd')):\n    return w * h\n"},
         "repair.not_minimal", "parameters"),
    ],
)  # fmt: skip
def test_hostile_answers_never_run(answer: dict[str, str], code: str, words: str) -> None:
    shown, _, schema = model.question(functions("mod.py", WRONG), {}, [])
    found = model.read(json.dumps(answer), shown, schema)
    assert isinstance(found, Refusal) and found.code == code and words in found.message


def test_a_method_gets_its_indentation_and_decorators_stay() -> None:
    text = "class A:\n    @staticmethod\n    def area(w, h):\n        return 'no'\n"
    shown, _, schema = model.question(functions("mod.py", text), {}, [])
    found = model.read(json.dumps({"function": "mod.py::A.area", "text": RIGHT}), shown, schema)
    assert not isinstance(found, Refusal)
    assert found.function.in_file(found.edit.text) == text.replace("'no'", "w * h")
