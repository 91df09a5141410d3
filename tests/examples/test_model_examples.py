"""Examples that ask a model, with every kind of backend: a person, servers, a recording, a tiny model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli_calls import EXAMPLES, held_to, warm
from cli_kit import ROOT, run_dir
from llm_model import needed
from llm_stub import MODEL, WIRES, Stub
from spak.config import catalog
from spak.lang import parse
from spak.program import compile as compile_program

ARTIFACT = {
    "knowledge_chef": "digest.md",
    "coder": "intervals.py",
    "data_cleaner": "clean.py",
    "module_docs": "textkit.md",
    "python_speed": "fast.py",
    "researcher": "answer.md",
}
ANSWERS = {
    name: [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob(f"answers/{name}-*.json"))]
    for name in ARTIFACT
}
NAMES = ["coder", "knowledge_chef"]
"""Those that every backend and every bad answer is tried with."""
ALL = sorted(ARTIFACT)


def spak(folder: Path, *args: str) -> tuple[int, Any]:
    done = held_to(warm(folder, args), args)
    return done.code, done.json


def spec(name: str) -> str:
    return str(EXAMPLES / f"{name}.spak")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as made:
        yield made


def configured(folder: Path, mode: str, url: str, more: str = "") -> None:
    model = f'mode = "{mode}"\nmodel = "{MODEL}"\nbase_url = "{url}"\nretries = 1\nconnect_s = 60\n'
    (folder / "spak.toml").write_text(f"[llm]\n{model}{more}", encoding="utf-8")


def complies(folder: Path, name: str, document: Any) -> None:
    artifact = run_dir(folder, document) / "workspace" / ARTIFACT[name]
    code, report = spak(folder, "verify", "--artifact", str(artifact), "--spec", spec(name), "--json")
    assert code == 0, report
    assert {axiom["kind"] for axiom in report["axioms"]} == {"checked", "rule"}


def by_hand(folder: Path, name: str, answers: Sequence[str]) -> Any:
    code, seen = spak(folder, "run", spec(name), "--backend", "manual", "--seed", "3", "--json")
    for answer in answers:
        assert (code, seen["state"]) == (4, "waiting"), json.dumps(seen)
        (folder / "answer.json").write_text(answer, encoding="utf-8")
        code, seen = spak(folder, "step", "--resume", "--answer-file", "answer.json", "--json")
    assert (code, seen["state"]) == (0, "succeeded"), json.dumps(seen)
    return seen


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ALL)
def test_a_person_answers_and_a_recording_repeats_it(tmp_path: Path, name: str) -> None:
    seen = by_hand(tmp_path, name, ANSWERS[name])
    complies(tmp_path, name, seen)
    arguments = ("run", spec(name), "--backend", "recorded", "--from", seen["run"], "--seed", "3", "--json")
    code, again = spak(tmp_path, *arguments)
    assert (code, again["state"]) == (0, "succeeded"), again
    complies(tmp_path, name, again)
    code, equal = spak(tmp_path, "replay", again["run"], "--json")
    assert code == 0 and equal["equal"] is True


SERVED = [(name, mode) for name in NAMES for mode in sorted(WIRES)]
SERVED += [(name, "ollama") for name in ALL if name not in (*NAMES, "python_speed")]


@pytest.mark.sandbox
@pytest.mark.parametrize(("name", "mode"), SERVED)
def test_a_server_answers(tmp_path: Path, stub: Stub, name: str, mode: str) -> None:
    configured(tmp_path, mode, stub.url)
    stub.script = [f"say {text}" for text in ANSWERS[name]]
    code, seen = spak(tmp_path, "run", spec(name), "--json")
    assert (code, seen.get("state")) == (0, "succeeded"), seen
    complies(tmp_path, name, seen)
    asked = stub.bodies()
    assert len(asked) == len(ANSWERS[name])
    for body in asked:
        told = json.dumps(body)
        assert (
            "write_file" in told and "tool_calls" in told and "maxLength" in told
        )  # the schema, in the text
        assert "format" in body or "response_format" in body or "messages" in body


def gemini(folder: Path, answers: Sequence[str]) -> None:
    """A command in the place of `gemini` that gives one answer a call, configured as the backend."""
    for number, text in enumerate(answers, 1):
        said = {"type": "message", "role": "assistant", "content": text}
        events = [{"type": "init", "model": "gemini-x"}, said, {"type": "result", "status": "success"}]
        (folder / f"said-{number}").write_text("".join(json.dumps(event) + "\n" for event in events))
    script = f"cd {folder}; cat > asked-$$; set -- asked-*; cat said-$#"
    (folder / "gemini").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "gemini").chmod(0o755)
    (folder / "spak.toml").write_text('[llm]\nmode = "gemini_cli"\ncommand = "./gemini"\nretries = 0\n')


@pytest.mark.sandbox
@pytest.mark.parametrize("name", [*NAMES, "build_feature"])
def test_the_gemini_command_answers(tmp_path: Path, name: str) -> None:
    gemini(tmp_path, ANSWERS.get(name) or [(EXAMPLES / "fix.patch").read_text(encoding="utf-8")])
    code, seen = spak(tmp_path, "run", spec(name), "--json")
    assert (code, seen.get("state")) == (0, "succeeded"), seen
    asked = [path.read_text(encoding="utf-8") for path in tmp_path.glob("asked-*")]
    assert len(asked) == seen["metrics"]["calls"] == (2 if name in NAMES else 1)
    assert all(("control_packet" in text) == (name in NAMES) for text in asked)
    if name in NAMES:
        complies(tmp_path, name, seen)


@pytest.mark.sandbox
def test_the_first_try_of_the_coder_fails_and_a_heuristic_is_told(tmp_path: Path, stub: Stub) -> None:
    configured(tmp_path, "ollama", stub.url)
    stub.script = [f"say {text}" for text in ANSWERS["coder"]]
    spak(tmp_path, "run", spec("coder"), "--json")
    first, second = (json.dumps(body) for body in stub.bodies())
    hint = "Read the first line that begins with E"
    assert hint not in first and hint in second
    assert "test_touching_become_one" in second and "[(1, 2), (2, 3)]" in second


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("knowledge_chef", "- Bees are immortal.\n"),
        ("knowledge_chef", '- A. [bees.md: "Bees never die at all."]\n- B. [x.md: "y"]\n- C.\n'),
        ("coder", "def merge(x):\n    return x\n"),
    ],
)
def test_a_wrong_answer_ends_in_a_refusal(tmp_path: Path, stub: Stub, name: str, content: str) -> None:
    configured(tmp_path, "ollama", stub.url)
    path = "claims.md" if name == "knowledge_chef" else "intervals.py"
    texts = [content + "\n" * n for n in range(9)]  # never the same twice: no loop for the watchdog
    calls = [{"tool": "write_file", "args": {"path": path, "content": text}} for text in texts]
    stub.script = ["say " + json.dumps(call) for call in calls]
    code, seen = spak(tmp_path, "run", spec(name), "--json")
    assert code in (1, 5) and seen["state"] in ("failed", "refused"), seen
    assert seen["refusal"]["codes"] and (seen["refusal"]["knob"] or seen["refusal"]["cause"])


def _files(folder: Path) -> dict[Path, bytes]:
    """The files below a folder, without what pytest leaves behind."""
    made = {"__pycache__", ".pytest_cache"}
    found = [path for path in folder.rglob("*") if path.is_file() and not made & set(path.parts)]
    return {path.relative_to(folder): path.read_bytes() for path in found}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "said",
    [
        "I would write the file.",
        '{"tool": "python_repl", "args": {"code": "1"}}',
        '{"tool": "write_file", "args": {"path": "tests/test_intervals.py", "content": ""}}',
        '{"tool": "write_file", "args": {"path": "documents/bees.md", "content": "Bees never die."}}',
        '{"tool": "write_file", "args": {"path": "../out.md", "content": "x"}}',
    ],
)
def test_three_bad_answers_end_the_run_and_change_nothing(
    tmp_path: Path, stub: Stub, name: str, said: str
) -> None:
    configured(tmp_path, "openai_compatible", stub.url)
    stub.script = [f"say {said}"]
    code, seen = spak(tmp_path, "run", spec(name), "--json")
    assert (code, seen["refusal"]["codes"]) == (1, ["run.rollbacks"]), seen
    assert len(stub.bodies()) == 3
    workspace, source = run_dir(tmp_path, seen) / "workspace", EXAMPLES / name
    assert _files(workspace) == _files(source)
    assert not (run_dir(tmp_path, seen) / "out.md").exists()


@pytest.mark.sandbox
@pytest.mark.model
@pytest.mark.parametrize("name", [*ALL, "build_feature", "evolve_python"])
def test_a_tiny_model_ends_honestly(tmp_path: Path, name: str) -> None:
    """Its answers are short, so that they are cut and asked for again: three of them, or as RETRIES says."""
    needed()
    (tmp_path / "spak.toml").write_text(
        '[llm]\nmode = "local"\nmax_tokens = 24\nseed = 1\n', encoding="utf-8"
    )
    code, seen = spak(tmp_path, "run", spec(name), "--backend", "local", "--timeout", "90", "--json")
    assert code in (0, 1, 4, 5, 6), seen
    assert seen["state"] in ("succeeded", "failed", "refused", "paused", "waiting"), seen
    if seen["state"] == "succeeded":
        complies(tmp_path, name, seen)
    assert seen["metrics"].get("calls", 0) >= 1 or seen["state"] == "paused", "the model was asked"
    code, equal = spak(tmp_path, "replay", seen["run"], "--json")
    assert code == 0 and equal["equal"] is True


def test_the_examples_are_listed() -> None:
    listed = (ROOT / "specs/README.md").read_text(encoding="utf-8")
    assert all(f"examples/{name}.spak" in listed for name in ALL)


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("compressor_tuner", "tune"),
        ("evolve_python", "evolve"),
        ("evolve_softmax", "evolve"),
        ("gemm_tuner", "tune"),
        ("python_speed", "improve"),
    ],
)
def test_a_candidate_that_takes_too_long_does_not_end_the_search(name: str, task: str) -> None:
    found = compile_program(parse(Path(spec(name)).read_text(encoding="utf-8")), catalog(), {}).tasks[task]
    assert found.edges["timeout"] == found.edges["fail"] == task
