"""Bad input: every file, value and folder that cannot be used is told in a sentence, before a run begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_calls import ASK, HELLO, Cli
from process_kit import WAIT_S

INPUTS = """
AGENT Inputs LEVEL 2 {
  INPUTS { n: int = 3, x: float = 0.5, kind: enum("a", "b") = "a", word: string = "w" }
  START -> go
  TASK go { step a: tool.run { cmd: "echo {{input.n}} {{input.word}}" } }
}
"""


def no_run_is_left(cli: Cli) -> bool:
    return cli("runs", "--json").json == {"runs": []} and not Path(".spak/runs").exists()


# ---- files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code", "diagnostic"),
    [
        (b"\x7fELF\x00\x01\xff", 3, "lang.encoding"),
        (b"task T {\x00}", 3, "lang.character"),
        (b'task T { step a: tool.run { cmd: "\xff" } }', 3, "lang.encoding"),
        (b"a" * 300_000, 3, "lang.too_large"),
        (b"", 3, "lang.empty"),
        (b"task T { step a: tool.run { cmd: ", 3, "lang.unclosed_string"),
        (b"{" * 10_000, 3, "lang.too_deep"),
        (b'task T { step a: tool.nothing { x: "y" } }', 3, "lang.unknown_tool"),
        (b'task T { GOAL "g" TOOLS [run] VALIDATOR Nobody {} }', 3, "lang.unknown_validator"),
        (
            b'AGENT A LEVEL 2 { START -> a TASK a { step s: tool.run { cmd: "x" } NEXT { success -> b } } }',
            3,
            "lang.unknown_task",
        ),
        (
            b'AGENT A LEVEL 2 { START -> b TASK a { step s: tool.run { cmd: "true" } } }',
            3,
            "lang.unknown_task",
        ),
        (b'task T { step s: tool.run { cmd: "a | b" } }', 3, "lang.shell_syntax"),
    ],
)
def test_a_spec_with_errors(cli: Cli, tmp_path: Path, content: bytes, code: int, diagnostic: str) -> None:
    if diagnostic == "lang.unclosed_string":
        content += b'"open'
    (tmp_path / "odd.spak").write_bytes(content)
    checked = cli("check", "odd.spak", "--json")
    assert checked.code == code
    assert set(checked.json) == {"files"} and checked.json["files"][0]["ok"] is False
    found = checked.json["files"][0]["diagnostics"]
    assert diagnostic in [item["code"] for item in found]
    started = cli("run", "odd.spak", "--json")
    assert (started.code, started.error) == (code, "lang.invalid")
    assert started.json["diagnostics"] == [item for item in found if item["code"] != "lang.denied"]
    assert f"[{diagnostic}]" in started.err and "odd.spak:" in started.err
    assert not (tmp_path / ".spak").exists()


@pytest.mark.parametrize(
    "path", ["missing.spak", "folder", "vast.spak", "a" * 300, "missing/deeper.spak", "\udcff"]
)
def test_a_spec_that_cannot_be_read(cli: Cli, tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    with (tmp_path / "vast.spak").open("wb") as file:
        file.truncate(20 << 20)
    for verb in (
        ("check",),
        ("run",),
        ("verify", "--artifact", HELLO, "--spec"),
        ("verify", "--spec", HELLO, "--artifact"),
    ):
        done = cli(*verb, path, "--json")
        assert (done.code, done.error) == (2, "usage.file"), verb
    assert not (tmp_path / ".spak").exists()


def test_a_file_name_that_is_not_utf8(cli: Cli, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.spak")
    (tmp_path / name).write_bytes(Path(HELLO).read_bytes())
    assert cli("check", name, "--json").json["files"][0]["file"] == name
    assert cli("check", name).code == 0
    done = cli("run", name, "--json")
    assert done.json["state"] == "succeeded", done.out


# ---- flags and values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "code", "error"),
    [
        (["--input", "m=3"], 3, "lang.input"),
        (["--input", "n=three"], 3, "lang.input"),
        (["--input", "kind=c"], 3, "lang.input"),
        (["--input", "n"], 2, "usage.arguments"),
        (["--input", "=3"], 2, "usage.arguments"),
        (["--input", "n=99999999999999999999999"], 3, "lang.input"),
        (["--input", "x=nan"], 3, "lang.input"),
        (["--input", "word=\udcff"], 2, "usage.input"),
        (["--mode", "wild"], 2, "usage.arguments"),
        (["--timeout", "nan"], 2, "usage.arguments"),
        (["--timeout", "inf"], 2, "usage.arguments"),
        (["--timeout=-1"], 2, "usage.arguments"),
        (["--timeout", "soon"], 2, "usage.arguments"),
        (["--seed", "-1"], 2, "usage.arguments"),
        (["--seed", "9007199254740993"], 2, "usage.arguments"),
        (["--backend", "nobody"], 7, "unavailable.backend"),
        (["--proposer", "nobody"], 7, "unavailable.proposer"),
        (["--workspace", "missing"], 2, "usage.workspace"),
        (["--workspace", "inputs.spak"], 2, "usage.workspace"),
        (["--in-place"], 2, "usage.arguments"),
        (["--files", "."], 2, "usage.arguments"),
        (["--wait"], 2, "usage.arguments"),
        (["--server", "https://spak.invalid", "--seed", "1"], 2, "usage.arguments"),
        (["--server", "https://spak.invalid", "--junit", "x.xml"], 2, "usage.arguments"),
        (["--server", "https://spak.invalid"], 2, "usage.arguments"),
        (["--runs-dir", "inputs.spak"], 2, "usage.arguments"),
        (["--unknown"], 2, "usage.arguments"),
        (["another.spak"], 2, "usage.arguments"),
    ],
)
def test_flags_of_run_are_judged_before_the_first_record(
    cli: Cli, tmp_path: Path, flags: list[str], code: int, error: str
) -> None:
    (tmp_path / "inputs.spak").write_text(INPUTS)
    done = cli("run", "inputs.spak", *flags, "--json")
    assert (done.code, done.error) == (code, error)
    assert done.json["error"]["message"] and f"[{error}]" in done.err
    assert not list((tmp_path / ".spak/runs").glob("*"))


def test_inputs_that_fit(cli: Cli, tmp_path: Path, runs: Path) -> None:
    (tmp_path / "inputs.spak").write_text(INPUTS)
    done = cli("run", "inputs.spak", "--input", "n=-4", "--input", "word=a=b c", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert '"out":"-4 a=b c\\n"' in (runs / done.json["run"] / "trace.jsonl").read_text()


@pytest.mark.parametrize("launcher", ["nobody", "podman"])
def test_a_launcher_that_is_not_there(cli: Cli, tmp_path: Path, launcher: str) -> None:
    done = cli("run", HELLO, "--json", env={"SPAK_SANDBOX_LAUNCHER": launcher})
    assert (done.code, done.error) == (7, "unavailable.sandbox")
    probe = cli("sandbox", "probe", "--launcher", launcher, "--json", "--", "true")
    assert (probe.code, probe.error) == (7, "unavailable.sandbox")
    assert not (tmp_path / ".spak").exists()


@pytest.mark.parametrize(
    "argv",
    [["bogus"], ["ledger", "bogus"], ["run"], ["fork"], ["fork", "--at", "0"], ["sandbox"], ["ledger"]],
)
def test_wrong_calls_of_any_verb(cli: Cli, argv: list[str]) -> None:
    done = cli(*argv, "--json")
    assert (done.code, done.error) == (2, "usage.arguments")
    assert cli(*argv).code == 2


def test_no_command_at_all_shows_the_commands(cli: Cli) -> None:
    done = cli()
    assert done.code == 2 and "Commands:" in done.err and done.out == ""
    assert cli("--help").code == 0


# ---- folders -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["/sys/spak-runs", "/dev/null/runs", "/proc/nowhere/runs"])
def test_a_runs_folder_that_cannot_be_written(cli: Cli, folder: str) -> None:
    done = cli("run", HELLO, "--runs-dir", folder, "--json")
    assert done.code == 1 and done.error in ("ledger.readonly", "ledger.io")
    assert folder in done.json["error"]["message"]
    assert cli("runs", "--runs-dir", folder, "--json").json == {"runs": []}
    assert cli("doctor", "--runs-dir", folder, "--json").json["checks"][-1]["ok"] is False


def test_run_folders_without_a_genesis(cli: Cli, runs: Path) -> None:
    (runs / "empty").mkdir(parents=True)
    (runs / "blank").mkdir()
    (runs / "blank/trace.jsonl").touch()
    (runs / "torn").mkdir()
    (runs / "torn/trace.jsonl").write_text('{"#":"abc')
    (runs / "folder/trace.jsonl").mkdir(parents=True)
    assert cli("show", "empty", "--json").error == "usage.run"
    assert cli("show", str(runs / "empty"), "--json").error == "usage.run"
    assert cli("show", str(runs / "folder"), "--json").code in (1, 2)
    for name in ("blank", "torn"):
        for verb in ("show", "resume", "replay", "step", "cancel", "export", "report"):
            done = cli(verb, name, "--json", *(("-o", "x") if verb == "export" else ()))
            assert (done.code, done.error) == (1, "ledger.tampered"), (verb, name)
        verified = cli("ledger", "verify", name, "--json")
        assert (verified.code, verified.json["ok"]) == (1, False)


@pytest.mark.parametrize(
    "rubbish", [b"\x00\xff\xfe" * 100, b"not json\n" * 3, b"[]\n", b'{"#":"x"}\n', b"\n\n"]
)
def test_a_trace_of_rubbish(cli: Cli, ended: str, runs: Path, rubbish: bytes) -> None:
    (runs / ended / "trace.jsonl").write_bytes(rubbish)
    for verb in ("show", "resume", "replay", "fork"):
        done = cli(verb, ended, "--json", *(("--at", "2") if verb == "fork" else ()))
        assert (done.code, done.error) == (1, "ledger.tampered"), verb
    assert cli("ledger", "verify", ended, "--json").json["ok"] is False


def test_a_workspace_that_holds_the_runs_folder_is_copied_without_it(
    cli: Cli, tmp_path: Path, runs: Path
) -> None:
    (tmp_path / "note.txt").write_text("mine")
    first = cli("run", HELLO, "--workspace", ".", "--json")
    second = cli("run", HELLO, "--workspace", ".", "--runs-dir", "inner", "--json")
    assert (first.code, second.code) == (0, 0)
    workspace = runs / first.json["run"] / "workspace"
    assert sorted(path.name for path in workspace.iterdir()) == ["hello.txt", "note.txt"]
    assert not (tmp_path / "hello.txt").exists()
    copy = tmp_path / "inner" / second.json["run"] / "workspace"
    assert not list((copy / "inner" / second.json["run"]).iterdir()), "the copy does not hold itself"


# ---- answers -------------------------------------------------------------------------------------------


def test_answers_that_nobody_waits_for(cli: Cli, ended: str) -> None:
    done = cli("step", ended, "--answer", "hello", "--json")
    assert (done.code, done.error) == (1, "run.not_waiting")
    approved = cli("approve", ended, "--json")
    assert (approved.code, approved.error) == (1, "run.no_approval")


@pytest.mark.parametrize(
    ("flags", "stdin", "error"),
    [
        (["--answer-file", "missing"], b"", "usage.file"),
        (["--answer-file", "."], b"", "usage.file"),
        (["--answer-file", "latin"], b"", "usage.file"),
        (["--answer-file", "-"], b"\xff", "usage.file"),
        (["--answer", "a", "--answer-file", "latin"], b"", "usage.arguments"),
    ],
)
def test_answers_that_cannot_be_read(
    cli: Cli, tmp_path: Path, waiting: str, flags: list[str], stdin: bytes, error: str
) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    done = cli("step", *flags, "--json", stdin=stdin)
    assert (done.code, done.error) == (2, error)
    assert cli("show", "--json").json["state"] == "waiting"


# ---- standard output -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["runs"],
        ["runs", "--json"],
        ["show", "--json"],
        ["export"],
        ["--help"],
        ["check", "--help"],
        ["doctor"],
    ],
)
def test_a_reader_that_has_gone(tmp_path: Path, ended: str, argv: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", "from spak.cli import main; main()", *argv],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=WAIT_S,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    "argv", [["runs"], ["runs", "--json"], ["show", "gone", "--json"], ["export"], ["--help"]]
)
@pytest.mark.parametrize("how", [">/dev/full", ">&-", "2>&-"])
def test_an_output_that_is_full_or_closed(tmp_path: Path, ended: str, argv: list[str], how: str) -> None:
    program = "from spak.cli import main; main()"
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-c", program, *argv],
        cwd=tmp_path,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode in (0, 1, 2), done.stderr
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr
    assert b"bug." not in done.stderr


def test_the_question_may_be_asked_in_any_script(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ask.spak").write_text(ASK.replace("Say one word.", "言葉 ☃"), encoding="utf-8")
    assert "言葉 ☃" in cli("run", "ask.spak", "--json").out
    plain = cli("run", "ask.spak", env={"PYTHONIOENCODING": "ascii"})
    assert plain.code == 4


def test_what_python_says_of_a_source_that_is_judged_is_not_printed() -> None:
    """Python 3.12 and later warn of `'\\d'` in `python3 -c "re.split('\\d', x)"` while the line is judged."""
    program = (
        "import spak.cli, warnings\n"
        "for source in '<unknown>', 'of_the_user.py':\n"
        "    warnings.warn_explicit(f'in {source}', SyntaxWarning, source, 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert done.stderr.splitlines() == ["of_the_user.py:1: SyntaxWarning: in of_the_user.py"]
