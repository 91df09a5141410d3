"""`spak completion`: the scripts, and what they get when they ask."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cli_calls import Cli
from spak.cli import VERBS
from spak.cli.completion import SHELLS, VARIABLE

ROOT = Path(__file__).resolve().parents[2]


def ask(cli: Cli, folder: Path, *words: str) -> list[str]:
    """What bash would be offered for the last word."""
    env = {VARIABLE: "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = cli(env=env, folder=folder)
    assert (done.code, done.err) == (0, "")
    return [line.partition(",")[2] for line in done.out.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_asks_spak_itself(cli: Cli, shell: str) -> None:
    done = cli("completion", shell)
    assert done.code == 0
    assert f"{VARIABLE}={shell}_complete" in done.out
    assert "next: " in done.err
    assert cli("completion", shell, "--json").json == {"shell": shell, "script": done.out[:-1]}


def test_another_shell_is_wrong_usage(cli: Cli) -> None:
    assert cli("completion", "csh", "--json").error == "usage.arguments"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_takes_its_script(cli: Cli) -> None:
    script = cli("completion", "bash").out + "\ncomplete -p spak\n"
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_spak_completion" in done.stdout


def test_verbs_options_and_choices_are_offered(cli: Cli, tmp_path: Path) -> None:
    assert ask(cli, tmp_path, "spak", "") == list(VERBS)
    assert ask(cli, tmp_path, "spak", "exp") == ["export", "explain"]
    assert "--strict" in ask(cli, tmp_path, "spak", "check", "--")
    assert ask(cli, tmp_path, "spak", "completion", "") == list(SHELLS)
    assert ask(cli, tmp_path, "spak", "ledger", "") == ["checkpoint", "prove", "verify"]
    assert ask(cli, tmp_path, "spak", "no-such-verb", "") == list(VERBS)


def test_runs_are_offered_where_a_run_is_wanted(cli: Cli, finished: Path, tmp_path: Path) -> None:
    assert ask(cli, tmp_path, "spak", "show", "") == []
    (run,) = [path.name for path in finished.iterdir() if (path / "trace.jsonl").exists()]
    shutil.copytree(finished, tmp_path / ".spak/runs")
    assert ask(cli, tmp_path, "spak", "show", "") == ["latest", run]
    assert ask(cli, tmp_path, "spak", "ledger", "verify", run[:4]) == [run]
    assert ask(cli, tmp_path, "spak", "show", "--runs-dir", "nowhere", "") == []


@pytest.mark.parametrize("name", ["$(touch x)", "a;touch x", "a b", "--help", "a,b", "*", "\x1b[31m", "a\nb"])
def test_a_run_whose_name_a_shell_would_obey_is_not_offered(cli: Cli, tmp_path: Path, name: str) -> None:
    for run in (name, "20260101-000000-1"):
        (tmp_path / ".spak/runs" / run).mkdir(parents=True)
        (tmp_path / ".spak/runs" / run / "trace.jsonl").touch()
    assert ask(cli, tmp_path, "spak", "show", "") == ["latest", "20260101-000000-1"]
