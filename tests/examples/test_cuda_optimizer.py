"""specs/examples/cuda_optimizer.spak by hand: every plan is an answer, and the evidence is static.

No device is asked for here: without one CudaProfiler reports static evidence only, from which no improvement
can be derived, so the loop ends as a plateau. Without nvcc the run fails and says that nvcc is missing.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli_kit import EXAMPLES, run_dir, spak

SPEC = EXAMPLES / "cuda_optimizer.spak"
KERNEL = (EXAMPLES / "cuda_optimizer/kernel.cu").read_text()
COMPILE = json.dumps({"tool": "nvcc", "args": {"source": "kernel.cu"}})
HEURISTIC = "If memory bound, try fusing Softmax."


def write(source: str) -> str:
    return json.dumps({"tool": "write_cuda", "args": {"path": "kernel.cu", "content": source}})


def answer(folder: Path, text: str) -> tuple[int, Any]:
    return spak(folder, "step", "--answer", text, "--json")


def bodies(folder: Path, document: Any) -> list[dict[str, Any]]:
    lines = (run_dir(folder, document) / "trace.jsonl").read_text().splitlines()
    return [json.loads(line)["body"] for line in lines]


@pytest.mark.sandbox
def test_it_ends_as_a_plateau_on_static_evidence(tmp_path: Path) -> None:
    code, asked = spak(tmp_path, "run", str(SPEC), "--mode", "stepwise", "--json")
    assert (code, asked["waiting"]["kind"], asked["waiting"]["task"]) == (4, "plan", "baseline_profile")
    assert "nvcc:" in asked["waiting"]["prompt"] and "32-bit width" in asked["waiting"]["prompt"]
    code, asked = answer(tmp_path, COMPILE)
    if shutil.which("nvcc") is None:
        assert (code, asked["refusal"]["error"]["code"]) == (1, "nvcc.missing")
        return
    assert (code, asked["task"], asked["metrics"]["evaluations"]) == (4, "optimize_loop", 1)
    code, asked = answer(tmp_path, write("this is no kernel\n"))
    assert (code, asked["task"]) == (4, "optimize_loop")
    assert HEURISTIC in asked["waiting"]["prompt"], "a fail injects the heuristic"
    for number in range(1, 4):
        assert code == 4, asked
        code, asked = answer(tmp_path, write(f"// version {number}\n{KERNEL}"))
        if code == 0:
            break
    assert (code, asked["state"], asked["task"]) == (0, "succeeded", "finalize")
    assert asked["metrics"]["stopped_by"] == "patience"
    assert not {"speedup", "best_ms", "baseline_ms"} & set(asked["metrics"])
    found = bodies(tmp_path, asked)
    signals = [body["signal"] for body in found if "signal" in body]
    assert "plateau" in signals and "metric_improved" not in signals
    statuses = {body["status"] for body in found if "status" in body}
    assert statuses <= {"static", "checked"} and "static" in statuses
    evidence = [body["evidence"] for body in found if body.get("status") == "static"]
    assert all(item for item in evidence)
    assert spak(tmp_path, "replay", "latest", "--json")[1]["equal"] is True
    assert spak(tmp_path, "ledger", "verify", "latest")[0] == 0


@pytest.mark.sandbox
def test_without_nvcc_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = tmp_path / "bin"
    places.mkdir()
    (places / "gcc").symlink_to(shutil.which("gcc") or "/usr/bin/gcc")
    monkeypatch.setenv("PATH", str(places))
    assert spak(tmp_path, "run", str(SPEC), "--mode", "stepwise")[0] == 4
    code, done = answer(tmp_path, COMPILE)
    assert (code, done["state"]) == (1, "failed")
    assert done["refusal"]["error"]["code"] == "nvcc.missing"
    assert "spak doctor" in done["refusal"]["error"]["hint"]


@pytest.mark.sandbox
def test_a_plan_outside_the_tools_comes_back_with_the_reason(tmp_path: Path) -> None:
    spak(tmp_path, "run", str(SPEC), "--mode", "stepwise")
    code, asked = answer(tmp_path, json.dumps({"tool": "run", "args": {"cmd": ["true"]}}))
    assert code == 4 and "policy.not_in_tools" in asked["waiting"]["prompt"]
    code, asked = answer(tmp_path, json.dumps({"tool": "nvcc", "args": {"source": 7}}))
    assert code == 4 and "schema.type" in asked["waiting"]["prompt"]
    for code_expected in (4, 5):
        code, ended = answer(tmp_path, "let me think about that")
        assert code == code_expected
    assert ended["refusal"]["error"]["code"] == "answer.not_json", "RETRIES bounds different refusals"


def test_the_kernel_is_that_of_the_problem_attention() -> None:
    """The example is copied with its folder, so the file is there twice."""
    assert (EXAMPLES.parent / "problems/attention.cu").read_text() == KERNEL
