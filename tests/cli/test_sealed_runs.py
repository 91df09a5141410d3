"""Sealed checks of an ordinary run: judged once, as its last step, by files that the run never sees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli_kit import run_dir, spak

TEST = "from src.app import double\n\ndef test_double():\n    assert double(3) == 6\n"
GOOD = "def double(n):\n    return 2 * n\n"
HARD_CODED = "def double(n):\n    return 6\n"
EQUAL = """class Anything(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__

def double(n):
    return Anything(n)
"""
LIES = """import _pytest.runner as r
made = r.TestReport.from_item_and_call

def turned(item, call):
    call.excinfo = None
    return made(item, call)

r.TestReport.from_item_and_call = turned

def double(n):
    return n
"""
CHECK = """import os
import subprocess

ask = [os.environ["SPAK_WORK"], "python3", "-c", "from src.app import double; print(int(double(21)))"]
done = subprocess.run(ask, capture_output=True, stdin=subprocess.DEVNULL, text=True)
assert done.stdout.split() == ["42"], "THE-SECRET-ANSWER-IS-42"
print("held")
"""
SPEC = """AGENT Mends LEVEL 2 {{
    START -> mend
    TASK mend {{
        GOAL "Mend double."
        TOOLS [write_file]
        step s: tool.write_file {{ path: "src/app.py", content: {text} }}
        VALIDATOR PyTest {{ paths: ["tests"] }}
    }}
}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project, and beside it a case with sealed checks."""
    made = tmp_path / "project"
    files = {"src/app.py": "def double(n):\n    return n\n", "src/__init__.py": "", "tests/test_app.py": TEST}
    for path, text in files.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "check_double.py").write_text(CHECK)
    words = ["--check", "python check_double.py", "--output", "held", "--sealed", "hidden"]
    code, said = spak(
        tmp_path, "suite", "add", "double", "--suite", "suite", "--workspace", "project", *words
    )
    assert code == 0, said
    return tmp_path


def begun(place: Path, text: str, *more: str) -> tuple[int, Any]:
    (place / "mends.spak").write_text(SPEC.format(text=json.dumps(text)))
    words = ["run", "mends.spak", "--workspace", "project", "--sealed", "suite/double", *more, "--json"]
    return spak(place, *words)


def records(place: Path, seen: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir(place, seen) / "trace.jsonl").read_text().splitlines()]


def test_good_work_ends_green_and_the_record_has_neither_command_nor_output(place: Path) -> None:
    code, seen = begun(place, GOOD)
    assert (code, seen["state"]) == (0, "succeeded")
    found = records(place, seen)
    assert found[0]["body"]["rules"]["sealed"]
    acts = [record["body"] for record in found if record["kind"] == "act"]
    assert acts[-1]["checks"] == [{"name": "sealed.1", "ok": True}]
    assert sum("sealed.1" in json.dumps(record["body"]) for record in found) == 1  # once
    assert spak(place, "replay", str(seen["run"]), "--json")[1]["equal"] is True
    assert spak(place, "apply", str(seen["run"]), "--json")[0] == 0
    assert (place / "project/src/app.py").read_text() == GOOD


@pytest.mark.parametrize(
    "text", [HARD_CODED, EQUAL, LIES], ids=["hard-coded", "equal to all", "turns reports"]
)
def test_an_attack_that_passes_the_visible_tests_fails_the_sealed_ones(place: Path, text: str) -> None:
    code, seen = begun(place, text)
    assert (code, seen["state"], seen["refusal"]["codes"]) == (1, "failed", ["run.sealed_checks"])
    whole = (run_dir(place, seen) / "trace.jsonl").read_text()
    assert "THE-SECRET-ANSWER" not in whole and "check_double" not in whole
    assert not any("THE-SECRET" in path.read_text(errors="replace") for path in files(run_dir(place, seen)))
    assert "sealed checks" in seen["refusal"]["cause"]
    run = str(seen["run"])
    assert spak(place, "replay", run, "--json")[1]["equal"] is True
    code, found = spak(place, "apply", run, "--json")
    assert code != 0, found
    assert (place / "project/src/app.py").read_text() != text


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_run_never_sees_them(place: Path) -> None:
    for folder in ("project/suite", "project"):
        shutil.copytree(place / "suite", place / "project/suite", dirs_exist_ok=True)
        (place / "mends.spak").write_text(SPEC.format(text=json.dumps(GOOD)))
        case = f"{folder}/double" if folder != "project" else "suite/double/../../project/suite/double"
        words = ["run", "mends.spak", "--workspace", "project", "--sealed", case, "--json"]
        code, said = spak(place, *words)
        assert (code, said["error"]["code"]) == (2, "usage.sealed")
    assert not (place / ".spak/runs").exists() or not list((place / ".spak/runs").iterdir())


def test_what_is_no_case_or_has_no_sealed_check_is_refused(place: Path) -> None:
    spak(place, "suite", "add", "plain", "--suite", "suite", "--workspace", "project")
    (place / "mends.spak").write_text(SPEC.format(text=json.dumps(GOOD)))
    for case, wanted in (("suite/plain", "usage.sealed"), ("nowhere", "suite.missing")):
        words = ["run", "mends.spak", "--workspace", "project", "--sealed", case, "--json"]
        assert spak(place, *words)[1]["error"]["code"] == wanted


def test_the_operator_may_say_it_for_all_runs(place: Path) -> None:
    (place / "spak.toml").write_text('[checks]\nsealed = "suite/double"\n')
    (place / "mends.spak").write_text(SPEC.format(text=json.dumps(HARD_CODED)))
    code, seen = spak(place, "run", "mends.spak", "--workspace", "project", "--json")
    assert (code, seen["refusal"]["codes"]) == (1, ["run.sealed_checks"])


def test_checks_that_changed_meanwhile_are_not_taken_and_the_run_goes_on_with_the_right_ones(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "mends.spak").write_text(SPEC.format(text=json.dumps(GOOD)).replace(
        "GOAL", 'step hear: llm.query { prompt: "A word." output_var: word }\n        GOAL'
    ))  # fmt: skip
    words = ["--workspace", "project", "--sealed", "suite/double", "--backend", "manual", "--json"]
    code, seen = spak(place, "run", "mends.spak", *words)
    assert (code, seen["state"]) == (4, "waiting")
    run, check = str(seen["run"]), place / "suite/double/sealed/check_double.py"
    text = check.read_text()
    check.write_text('print("held")\n')
    code, said = spak(place, "step", run, "--answer", "word", "--json")
    code, said = spak(place, "resume", run, "--json")
    assert said["error"]["code"] == "run.sealed_changed", said
    check.write_text(text)
    code, seen = spak(place, "resume", run, "--json")
    assert (code, seen["state"]) == (0, "succeeded")
