"""The examples that measure time: CPU that a candidate spends out of sight of its command counts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cli_kit import EXAMPLES
from spak.ports import Measurement, Subject
from spak.validators.metric import Metric
from validator_calls import call

pytestmark = [pytest.mark.sandbox, pytest.mark.findings("A5", "E3")]

RULE = {"margin_num": 95, "margin_den": 100, "evidence": 20, "max_pairs": 80, "higher": 0}
NAMES = {"python_speed": "groups", "evolve_python": "answers"}
ORPHANED = """

slow = {name}

def {name}(given):
    os, json = __import__("{module}"), __import__("json")
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.fork():
            os._exit(0)
        data = json.dumps(slow(given)).encode()
        while data:
            data = data[os.write(w, data):]
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(w)
    parts = []
    while (part := os.read(r, 1 << 16)):
        parts.append(part)
    return json.loads(b"".join(parts))
"""
FASTER = {
    "python_speed": """
def groups(words):
    found = {}
    for word in words:
        found.setdefault("".join(sorted(word)), []).append(word)
    return list(found.values())
""",
    "evolve_python": """
import bisect

def answers(lists):
    return [count(numbers) for numbers in lists]

def count(numbers):
    seen, found = [], 0
    for number in numbers:
        place = bisect.bisect_right(seen, number)
        found += len(seen) - place
        seen.insert(place, number)
    return found
""",
}
PRIES = """

import os
for name in ("mem", "environ", "fd/1"):
    try:
        open(f"/proc/{os.getppid()}/{name}", "r+b" if name == "mem" else "rb")
    except PermissionError:
        continue
    raise AssertionError(f"{name} of the command could be opened")
"""


def measured(folder: Path, example: str, text: str, **more: Any) -> Measurement:
    shutil.copytree(EXAMPLES / example, folder, dirs_exist_ok=True)
    (folder / "fast.py").write_text(text)
    options = {"source": "fast.py", "metric": "cpu_ms", "constraints": {"correct": {"at_least": 1}}}
    options |= {"cmd": "python3 measure.py", "fixed": ["measure.py"], "samples": 1, "wall_s": 250}
    return Metric().measure(call(folder, options, **more))


def decided(folder: Path, example: str, text: str) -> tuple[list[Any], dict[str, Any]]:
    """The checks that failed, and medians of the candidate and of its rival, slow.py."""
    slow = (EXAMPLES / example / "slow.py").read_text()
    base = measured(folder, example, slow)
    rivals = {"incumbent": Subject({"source": slow.encode(), "fixed": base.subject.files["fixed"]})}
    found = measured(folder, example, text, rule=RULE, rivals=rivals)
    return [item for item in found.checks if not item["ok"]], dict(found.metrics)


@pytest.mark.parametrize("example", NAMES)
@pytest.mark.parametrize("module", ["os", "posix"])
def test_the_same_algorithm_in_an_orphan_is_no_faster(tmp_path: Path, example: str, module: str) -> None:
    text = (EXAMPLES / example / "slow.py").read_text() + ORPHANED.format(name=NAMES[example], module=module)
    failed, metrics = decided(tmp_path, example, text)
    assert failed == []
    assert metrics["value"] * 100 > metrics["incumbent_value"] * 80


@pytest.mark.parametrize("example", NAMES)
def test_an_honest_faster_algorithm_is_faster(tmp_path: Path, example: str) -> None:
    failed, metrics = decided(tmp_path, example, FASTER[example])
    assert failed == []
    assert metrics["value"] * 100 < metrics["incumbent_value"] * 80


@pytest.mark.parametrize("example", NAMES)
def test_a_candidate_opens_nothing_of_its_command(tmp_path: Path, example: str) -> None:
    found = measured(tmp_path, example, (EXAMPLES / example / "slow.py").read_text() + PRIES)
    assert [item for item in found.checks if not item["ok"]] == []
