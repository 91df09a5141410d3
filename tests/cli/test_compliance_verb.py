"""`spak compliance`: verdicts for people and as JSON, exit codes, and what is refused."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from cli_calls import Background, warm

ROOT = Path(__file__).resolve().parents[2]
CHAT = (sys.executable, str(ROOT / "specs/compliance/chat_loop.py"))


def test_another_runtime_is_judged(tmp_path: Path) -> None:
    done = warm(tmp_path, ("compliance", "--case", "3", "--case", "11", "--json", "--runtime", *CHAT))
    assert done.code == 1
    found = json.loads(done.out)
    assert (found["passed"], found["of"]) == (1, 2)
    assert [(test["id"], test["passed"], bool(test["why"])) for test in found["tests"]] == [
        ("AEP-K3", False, True),
        ("AEP-K11", True, False),
    ]


def test_one_text_is_a_command_line_too(tmp_path: Path) -> None:
    done = warm(tmp_path, ("compliance", "--case", "11", "--runtime", f"'{CHAT[0]}' '{CHAT[1]}'"))
    assert done.code == 0
    assert "passed  11 Independent benchmark reproducibility" in done.err and "next: " in done.err


@pytest.mark.sandbox
def test_our_kernel_is_judged_without_it(tmp_path: Path) -> None:
    done = warm(tmp_path, ("compliance", "--case", "3"))
    assert (done.code, "1 of 1 tests passed" in done.err) == (0, True)


@pytest.mark.sandbox
def test_its_mutants_are_judged(tmp_path: Path) -> None:
    done = warm(tmp_path, ("compliance", "--mutants", "--case", "7", "--json"))
    found = json.loads(done.out)["mutants"]
    assert (done.code, found["caught"], found["of"], found["rows"][0]["failed"]) == (0, 1, 1, [7])


@pytest.mark.parametrize(
    "words",
    [
        ("--runtime", ""),
        ("--runtime", "no-such-program"),
        ("--runtime", "'open"),
        ("--case", "12"),
        ("--case", "3", "stray"),
        ("--mutants", "--runtime", "cat"),
    ],
    ids=str,
)
def test_wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = warm(tmp_path, ("compliance", "--json", *words))
    assert done.code == 2
    code = "usage.file" if "no-such-program" in words else "usage.arguments"
    assert json.loads(done.out)["error"]["code"] == code


def test_without_a_sandbox_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spak.toml").write_text('[sandbox]\nlauncher = "none"\n')
    done = warm(tmp_path, ("compliance", "--json"))
    assert (done.code, json.loads(done.out)["error"]["code"]) == (7, "unavailable.sandbox")


def test_ctrl_c_ends_all_that_was_started(tmp_path: Path) -> None:
    text = "import os, signal; open(f'runs-{os.getpid()}', 'w'); signal.pause()"
    begun = Background(tmp_path, "compliance", "--runtime", sys.executable, "-c", text)
    begun.until(lambda: len(list(tmp_path.glob("runs-*"))) >= 2)
    begun.kill(signal.SIGINT)
    done = begun.done()
    assert done.code == 6 and "Traceback" not in done.err
    pids = [path.name.removeprefix("runs-") for path in tmp_path.glob("runs-*")]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
