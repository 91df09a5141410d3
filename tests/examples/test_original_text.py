"""The GPU tuner as it was first written, without a task `finalize`: one error, with a fix, and no other."""

from __future__ import annotations

from pathlib import Path

from cli_kit import spak

TEXT = """\
AGENT Cuda_Optimizer LEVEL 5 {

  CONFIG { MEMORY FLUSH_ON_TRANSITION, SANDBOX RESTRICTED }

  SYSTEM_MODEL GPU_Physics {

    AXIOM "Shared memory banks have 32-bit width."

    HEURISTIC "If memory bound, try fusing Softmax."

  }

  START -> baseline_profile

  TASK baseline_profile {

    GOAL "Compile and measure naive implementation."

    TOOLS [nvcc, nsight]

    VALIDATOR CudaProfiler

    NEXT { success -> optimize_loop }

  }

  TASK optimize_loop {

    GOAL "Refactor kernel for online-softmax."

    TOOLS [read_ast, write_cuda]

    VALIDATOR CudaProfiler

    NEXT {\u0020

       metric_improved -> optimize_loop,

       plateau -> finalize,

       fail -> optimize_loop // Triggers Heuristic automatically

    }

  }

}
"""


LINE = TEXT[: TEXT.index("finalize")].count("\n") + 1


def test_finalize_is_the_one_thing_wrong(tmp_path: Path) -> None:
    (tmp_path / "original.spak").write_text(TEXT)
    code, checked = spak(tmp_path, "check", "original.spak", "--json")
    found = checked["files"][0]["diagnostics"]
    errors = [item for item in found if item["severity"] == "error"]
    assert code == 3
    assert [(item["code"], item["line"]) for item in errors] == [("lang.unknown_task", LINE)]
    assert "finalize" in errors[0]["message"] and errors[0]["fix"]
    code, refused = spak(tmp_path, "run", "original.spak", "--json")
    assert (code, refused["error"]["code"]) == (3, "lang.invalid")
    assert not (tmp_path / ".spak").exists()


def test_with_the_task_it_is_the_example(tmp_path: Path) -> None:
    end = TEXT.rstrip().removesuffix("}")
    mended = end + 'TASK finalize { step report: tool.read_ast { path: "kernel.cu" } }\n}\n'
    (tmp_path / "mended.spak").write_text(mended)
    code, checked = spak(tmp_path, "check", "mended.spak", "--json")
    assert code == 0, checked
