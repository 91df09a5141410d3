from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spak.ports import MeasureCall, Measurement, Toolchain
from spak.validators.command import Command
from validator_calls import call, codes, write

pytestmark = pytest.mark.sandbox


def measure(workspace: Path, **options: Any) -> Measurement:
    return Command().measure(call(workspace, options))


def test_exit_and_text(tmp_path: Path) -> None:
    write(tmp_path, note__txt="first\nsecond line\n")
    result = measure(tmp_path, cmd="cat 'note.txt'", contains=["first", "second line"])
    assert (result.status, codes(result), result.metrics) == ("checked", {}, {"exit_code": 0})
    result = measure(tmp_path, cmd=["cat", "note.txt"], contains="third")
    assert codes(result) == {"contains.1": "text_missing"}


def test_the_exit_code_that_was_expected(tmp_path: Path) -> None:
    assert codes(measure(tmp_path, cmd=["false"])) == {"exit": "exit_mismatch"}
    assert codes(measure(tmp_path, cmd=["false"], expect_exit=1)) == {}
    assert codes(measure(tmp_path, cmd=["true"], expect_exit=1)) == {"exit": "exit_mismatch"}


def test_error_output_counts_and_programs_come_from_the_toolchain(tmp_path: Path) -> None:
    script = "import sys; print('to stderr', file=sys.stderr); sys.exit(3)"
    result = measure(tmp_path, cmd=["python", "-c", script], expect_exit=3, contains="to stderr")
    assert codes(result) == {}


def test_the_workspace_is_read_only(tmp_path: Path) -> None:
    result = measure(tmp_path, cmd=["touch", "made"])
    assert codes(result) == {"exit": "exit_mismatch"}
    assert list(tmp_path.iterdir()) == []


def test_a_variable_is_one_argument(tmp_path: Path) -> None:
    result = measure(tmp_path, cmd=["echo", "a; touch made && $(id)"], contains="a; touch made && $(id)")
    assert codes(result) == {}


@pytest.mark.parametrize(
    ("cmd", "code"),
    [
        ("cat a | sort", "shell.not_one_command"),
        ("true && true", "shell.not_one_command"),
        ("echo x > made", None),
        ("echo $(id)", None),
        ("echo 'open", None),
        ("", None),
        (["echo", "a\0b"], "shell.syntax"),
    ],
)
def test_only_one_simple_command(tmp_path: Path, cmd: Any, code: str | None) -> None:
    result = measure(tmp_path, cmd=cmd)
    assert result.status == "checked"
    found = codes(result)["command"]
    assert found.startswith("shell.") if code is None else found == code
    assert list(tmp_path.iterdir()) == []


def test_time_limit(tmp_path: Path) -> None:
    result = measure(tmp_path, cmd=["sleep", "30"], timeout_s=0.5)
    assert (result.status, codes(result)) == ("timeout", {"ran": "timeout"})


def test_a_crash_is_told_from_an_exit(tmp_path: Path) -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert codes(measure(tmp_path, cmd=["python", "-c", script])) == {"exit": "crash"}


def test_a_program_that_is_not_there_fails(tmp_path: Path) -> None:
    result = measure(tmp_path, cmd=["no-such-program-here"])
    assert not all(item["ok"] for item in result.checks)


def test_no_launcher_no_run(tmp_path: Path) -> None:
    result = Command().measure(
        MeasureCall("m", "Command", {"cmd": ["true"]}, tmp_path, None, toolchain=Toolchain())
    )
    assert (result.status, codes(result)) == ("unavailable", {"ran": "launcher"})
