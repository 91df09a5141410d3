"""`spak repair`: a run whose ledger verifies and replays, what it prints, and what it brings home."""

from __future__ import annotations

import py_compile
import subprocess
import zipfile
from pathlib import Path

import pytest

from aep_oracle import of_run
from cli_calls import Cli
from repair_kit import CLAMP, RIGHT, TESTS, project

pytestmark = pytest.mark.sandbox

PERSON = ("-c", "user.name=A", "-c", "user.email=a@localhost")


def test_a_patch_with_five_verdicts_is_a_run_that_replays(cli: Cli, tmp_path: Path) -> None:
    folder = project(tmp_path / "work")
    done = cli("repair", "work", "--json").json
    assert (done["state"], done["outcome"], len(done["verdicts"])) == ("succeeded", "repaired", 5)
    assert done["patch"] == done["repair"]["patch"] and done["refusal"] is None
    assert all(check["ok"] for check in done["repair"]["checks"])
    assert "+    if value > high:" in done["repair"]["patch"]
    assert (folder / "numbers_.py").read_text() == CLAMP, "it works in a copy"
    name = done["run"]
    assert cli("ledger", "verify", name).code == 0
    assert cli("replay", name).code == 0
    assert of_run(tmp_path / ".spak/runs", name) == ""
    applied = cli("apply", name)
    assert applied.code == 0, applied.err
    assert (folder / "numbers_.py").read_text().replace("  # the mistake", "") == RIGHT


def test_apply_brings_the_patch_home_and_people_see_it(cli: Cli, tmp_path: Path) -> None:
    folder = project(tmp_path / "work")
    done = cli("repair", "work", "--apply", "--test", "test_numbers.py::test_clamp")
    assert done.code == 0, done.err
    assert "+    if value > high:" in done.out
    assert "ok  agrees" in done.err + done.out
    assert (folder / "numbers_.py").read_text().replace("  # the mistake", "") == RIGHT


def test_a_refusal_ends_with_its_code_and_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    folder = project(tmp_path / "work", {"numbers_.py": RIGHT, "test_numbers.py": TESTS})
    done = cli("repair", "work", "--apply")
    assert done.code == 5
    assert "repair.not_reproduced" in done.err
    assert (folder / "numbers_.py").read_text() == RIGHT
    shown = cli("show", "latest", "--json").json
    assert shown["refusal"]["codes"] == ["repair.not_reproduced"]
    assert of_run(tmp_path / ".spak/runs", shown["run"]) == ""
    assert cli("replay", "latest").code == 0
    assert cli("apply", "latest", "--check").code == 0


def test_an_answer_becomes_a_test_and_the_repair_goes_on(cli: Cli, tmp_path: Path) -> None:
    """A question, answers that are none, one that leads to the next question, one that leads to a patch."""
    few = TESTS.replace("(11, 0, 10, 10), (3, 3, 3, 3), ", "")
    folder = project(
        tmp_path / "work", {"numbers_.py": CLAMP, "tests/test_numbers.py": few, "conftest.py": ""}
    )
    asked = cli("repair", "work", "--json")
    first = asked.json
    question = first["refusal"]["question"]
    assert (asked.code, first["outcome"], first["patch"]) == (4, "asked", "")
    assert first["refusal"]["code"] == "repair.ambiguous" and first["candidates"] > 1
    assert first["refusal"]["codes"] == ["repair.ambiguous"]
    assert (question["module"], question["tests"]) == ("numbers_", "tests/test_numbers.py")
    call, values = question["call"], [one["answer"] for one in question["answers"]]
    (tmp_path / "other").mkdir()
    for words, code in (
        (("work", "--answer", "__import__('os')"), "repair.answer"),
        (("work", "--answer", "clamp(1) == 1"), "repair.no_question"),
        (("other", "--answer", "1"), "repair.no_question"),
        (("work", "--answer", "1", "--seed", "1"), "usage.arguments"),
        (("work", "--run", first["run"]), "usage.arguments"),
    ):
        done = cli("repair", *words)
        assert (done.code, code in done.err) == (2, True), (words, done.err)
    name = "tests/test_answered_clamp.py"
    wrong = max(values, key=int)
    second = cli("repair", "work", "--answer", f"{call} == {wrong}", "--json").json
    assert (second["answer"]["of"], second["answer"]["file"]) == (first["run"], name)
    assert f"    assert {call} == {wrong}" in second["answer"]["test"]
    asks = second["repair"]["refusal"]["question"]
    assert asks["call"] != call
    assert cli("replay", second["run"]).code == 0
    third = cli("repair", "work", "--answer", asks["answers"][0]["answer"], "--json").json
    assert third["answer"]["of"] == second["run"]
    assert "def test_clamp_2" in third["answer"]["test"]
    assert not (folder / name).exists()
    done = cli("repair", "work", "--answer", min(values, key=int), "--run", first["run"], "--apply")
    assert done.code == 0, done.err
    assert f"+    assert {call} == {min(values, key=int)}" in done.out
    assert (folder / "numbers_.py").read_text().replace("  # the mistake", "") == RIGHT
    assert (folder / name).read_text().count("def test_") == 1


def test_a_folder_that_does_not_exist(cli: Cli) -> None:
    done = cli("repair", "nowhere")
    assert (done.code, "usage.workspace" in done.err) == (2, True)


PROBE = """import os
import subprocess
import zlib
from pathlib import Path

WORD = "".join(["answer", "key", "7391"])


def found(folder):
    for path in Path(folder).rglob("*"):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        if WORD.encode() in data or WORD in path.name:
            return True
        try:
            if WORD.encode() in zlib.decompress(data):
                return True
        except zlib.error:
            pass
    return False


def said(*command):
    done = subprocess.run(command, capture_output=True, check=False)
    return WORD.encode() in done.stdout


def test_probe():
    assert (
        found(".")
        or found(HOME)
        or said("git", "log", "--all", "-p", "--reflog")
        or said("git", "cat-file", "--batch", "--batch-all-objects")
    )
"""


def test_no_later_commit_and_no_byte_code_is_in_reach(cli: Cli, tmp_path: Path) -> None:
    """The mended file in a later commit, the reflog, ORIG_HEAD, a packed object, byte code and a wheel, and
    installed into the user's environment."""
    folder = tmp_path / "work"
    probe = PROBE.replace("HOME)", f"{str(folder)!r})")
    other = probe.replace('"answer", "key", "7391"', '"other", "key", "5150"')
    files = {"numbers_.py": CLAMP, "src/shop/cart.py": CLAMP, "tests/test_probe.py": probe}
    project(folder, {**files, "tests/test_other.py": other})

    def git(*args: str) -> None:
        subprocess.run(["git", "-C", str(folder), *PERSON, *args], check=True, capture_output=True)

    git("init", "-q")
    (folder / ".gitignore").write_text("dist/\n__pycache__/\n.venv/\n")
    git("add", ".")
    git("commit", "-qm", "first")
    (folder / "dist").mkdir()
    with zipfile.ZipFile(folder / "dist" / "numbers_-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("numbers_.py", RIGHT + "\n\nKEY = 'answerkey7391'\n")
    (folder / "numbers_.py").write_text(RIGHT + "\n\nKEY = 'answerkey7391'\n")
    py_compile.compile(str(folder / "numbers_.py"))
    packages = folder / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "shop").mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / ".venv" / "lib64").symlink_to("lib")
    for name in ("numbers_.py", "shop/cart.py"):
        (packages / name).write_text(RIGHT + "\n\nKEY = 'answerkey7391'\n")
    py_compile.compile(str(packages / "numbers_.py"))
    (packages / "other.py").write_text("KEY = 'otherkey5150'\n")
    git("commit", "-qam", "mended")
    git("tag", "later")
    git("reset", "-q", "--hard", "HEAD~1")
    git("repack", "-adq")
    assert "answerkey7391" in next((folder / "__pycache__").iterdir()).read_bytes().decode("latin-1")
    done = cli("repair", "work", "--test", "tests/test_probe.py::test_probe", "--json")
    assert done.json["refusal"]["codes"] == ["repair.exhausted"]
    seen = cli("repair", "work", "--test", "tests/test_other.py::test_probe", "--json")
    assert seen.json["refusal"]["codes"] == ["repair.not_reproduced"], "the environment itself is there"
