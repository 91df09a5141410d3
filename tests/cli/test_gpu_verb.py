"""`spak gpu selftest` without a device: a typed refusal, a report, and the tree to take along."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest

from cli_calls import Cli

COMPILER = "#!/bin/sh\necho stand-in\n"


def has_a_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_a_driver(), reason="this machine has the CUDA driver")
def test_it_refuses_without_a_device(cli: Cli, tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(COMPILER)
    nvcc.chmod(0o755)
    done = cli("gpu", "selftest", "--nvcc", str(nvcc), "-o", "r.json")
    assert done.code == 7 and "unavailable.device" in done.err and "libcuda.so.1" in done.err
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["ok"], report["code"]) == (False, "unavailable.device")
    assert not {"kernels", "equal", "hacks"} & set(report)
    done = cli("gpu", "selftest", "--nvcc", str(tmp_path / "absent"), "--json")
    assert done.code == 7 and done.json["error"]["code"] == "unavailable.nvcc"


def test_the_tree_and_files_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    done = cli("gpu", "selftest", "--export", "tree")
    assert done.code == 0 and "python3 tree/selftest.py" in done.err
    names = {str(file.relative_to(tmp_path / "tree")) for file in (tmp_path / "tree").rglob("*.*")}
    assert {"selftest.py", "hacks.cu", "kernels/softmax_tuned.cu", "spak/validators/pairs.py"} <= names
    for arguments in (("--export", "tree"), ("-o", "missing/r.json")):
        done = cli("gpu", "selftest", *arguments)
        assert done.code == 2 and "usage.file" in done.err
