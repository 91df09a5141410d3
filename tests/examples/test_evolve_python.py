"""Marked blocks of a Python function evolved by a recording and by a server; bad marks, no model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, ROOT, run_dir, spak
from llm_stub import MODEL, Stub
from spak.patch import blocks

NAME = "evolve_python"
RECORDING = EXAMPLES / "answers" / f"{NAME}.jsonl"
ANSWERS = [json.loads(line)["text"] for line in RECORDING.read_text(encoding="utf-8").splitlines()]
SLOW = blocks.read((EXAMPLES / NAME / "slow.py").read_text(encoding="utf-8"))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The example, with a metric that counts steps of the interpreter: no test rests on a machine's speed."""
    shutil.copytree(EXAMPLES / NAME, tmp_path / NAME)
    spec = (EXAMPLES / f"{NAME}.spak").read_text(encoding="utf-8")
    (tmp_path / f"{NAME}.spak").write_text(
        spec.replace('metric: "cpu_ms"', 'metric: "steps"'), encoding="utf-8"
    )
    measure = tmp_path / NAME / "measure.py"
    text = measure.read_text(encoding="utf-8")
    counted = re.sub("LISTS, LENGTH = .*", "LISTS, LENGTH = 1, 60", text)
    counted = counted.replace("print(json.dumps(module.answers(json.load(sys.stdin))))", _COUNTED)
    counted = counted.replace("json.loads(done.stdout) ==", "json.loads(done.stdout)[1] ==")
    steps = '"steps": json.loads(done.stdout)[0] if done.stdout else 1, "correct": int(correct)'
    counted = counted.replace('"correct": int(correct)', steps)
    assert counted.count("module.answers") == 1 and steps in counted and "[1] ==" in counted
    measure.write_text(counted, encoding="utf-8")
    return tmp_path


_COUNTED = """
lists, steps = json.load(sys.stdin), 0
def count(frame, event, arg):
    global steps
    steps += 1
    return count
sys.settrace(count)
found = module.answers(lists)
sys.settrace(None)
print(json.dumps([steps, found]))
"""


def ended_well(folder: Path, code: int, seen: dict[str, object]) -> str:
    assert (code, seen["state"]) == (0, "succeeded"), seen
    text = (run_dir(folder, seen) / "workspace/fast.py").read_text(encoding="utf-8")
    found = blocks.read(text)
    assert found.around == SLOW.around and found.blocks != SLOW.blocks
    code, replayed = spak(folder, "replay", "latest", "--json")
    assert (code, replayed["equal"]) == (0, True)
    return found.blocks["inversions"]


@pytest.mark.sandbox
def test_the_recording_improves_the_block(here: Path) -> None:
    code, seen = spak(here, "run", f"{NAME}.spak", "--from", str(RECORDING), "--seed", "3", "--json")
    text = ended_well(here, code, seen)
    metrics = seen["metrics"]
    assert text == json.loads(ANSWERS[1])["blocks"]["inversions"], "fewest lines are run by the one-liner"
    assert metrics["best"] * 5 < metrics["baseline"] and metrics["evaluations"] == 6


@pytest.mark.sandbox
def test_a_server_is_asked_with_parents_and_failures(here: Path) -> None:
    with Stub() as stub:
        model = f'mode = "ollama"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\nretries = 1\nconnect_s = 60\n'
        (here / "spak.toml").write_text(f"[llm]\n{model}", encoding="utf-8")
        stub.script = [f"say {text}" for text in ANSWERS]
        code, seen = spak(here, "run", f"{NAME}.spak", "--seed", "3", "--json")
        asked = [json.dumps(body) for body in stub.bodies()]
    ended_well(here, code, seen)
    assert len(asked) == len(ANSWERS) == 6
    assert all("SPAK-EVOLVE-BEGIN inversions" in text and "maxLength" in text for text in asked)
    assert "Earlier tries" not in asked[0] and "answer.not_json" in asked[1]
    assert "SyntaxError" in asked[3], "what the failed version printed"
    assert "Two equal numbers are no inversion." in asked[4], "the heuristic of a broken constraint"
    assert seen["metrics"]["calls"] == 6


def test_without_a_model_it_does_not_begin(tmp_path: Path) -> None:
    code, seen = spak(tmp_path, "run", str(EXAMPLES / f"{NAME}.spak"), "--backend", "manual", "--json")
    assert (code, seen["error"]["code"]) == (7, "unavailable.model")
    assert not list(tmp_path.glob(".spak/runs/*"))


@pytest.mark.parametrize("mode", ["stepwise", "semi_auto"])
def test_a_mode_that_stops_at_questions_is_refused(tmp_path: Path, mode: str) -> None:
    arguments = ("run", str(EXAMPLES / f"{NAME}.spak"), "--from", str(RECORDING), "--mode", mode, "--json")
    code, seen = spak(tmp_path, *arguments)
    assert (code, seen["error"]["code"]) == (2, "usage.mode"), seen
    assert not list(tmp_path.glob(".spak/runs/*"))


def test_a_run_is_not_taken_up_in_such_a_mode(here: Path) -> None:
    run = ("run", f"{NAME}.spak", "--from", str(RECORDING), "--seed", "3", "--json")
    code, _ = spak(here, *run, "--timeout", "0.5")
    assert code == 6
    code, seen = spak(here, "resume", "latest", "--mode", "stepwise", "--json")
    assert (code, seen["error"]["code"]) == (2, "usage.mode"), seen


def test_bad_marks_are_told_before_the_run(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / NAME, tmp_path / NAME)
    spec = (EXAMPLES / f"{NAME}.spak").read_text(encoding="utf-8")
    (tmp_path / f"{NAME}.spak").write_text(
        spec.replace('metric: "cpu_ms"', 'metric: "steps"'), encoding="utf-8"
    )
    file = tmp_path / NAME / "slow.py"
    file.write_text(file.read_text().replace("# SPAK-EVOLVE-END\n", ""))
    code, found = spak(tmp_path, "check", f"{NAME}.spak", "--json")
    errors = [item for item in found["files"][0]["diagnostics"] if item["severity"] == "error"]
    assert code == 3 and [item["code"] for item in errors] == ["blocks.open"]
    assert "slow.py: line 3" in errors[0]["message"]
    code, seen = spak(tmp_path, "run", f"{NAME}.spak", "--from", str(RECORDING), "--json")
    assert (code, seen["error"]["code"]) == (3, "lang.invalid") and "blocks.open" in seen["error"]["message"]
    assert not list(tmp_path.glob(".spak/runs/*"))


def test_it_is_listed() -> None:
    assert f"examples/{NAME}.spak" in (ROOT / "specs/README.md").read_text(encoding="utf-8")
