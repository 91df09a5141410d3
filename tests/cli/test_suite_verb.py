"""`spak suite`: a run kept as a case, cases added by hand, and a suite that is checked."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from cli_calls import ASK, HELLO, Cli
from spak.cli import case_files

EVERY = [word for split in ("train", "gate", "sealed") for word in ("--split", split)]

pytestmark = pytest.mark.sandbox


def test_a_run_is_kept_with_its_files_answers_and_outcome(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ask.spak").write_text(ASK)
    given = tmp_path / "given"
    given.mkdir()
    (given / "a.txt").write_text("a")
    assert cli("run", "ask.spak", "--workspace", "given", "--seed", "5").code == 4
    early = cli("suite", "keep", "latest", "--suite", "s", "--json")
    assert (early.code, early.error) == (2, "suite.not_ended")
    assert cli("step", "--resume", "--answer", "yes").code == 0
    kept = cli("suite", "keep", "latest", "--suite", "s", "--name", "one", "--tag", "small", "--json")
    assert kept.code == 0
    assert kept.json["added"]["split"] in ("train", "gate", "sealed")
    case = json.loads((tmp_path / "s/one/case.json").read_text())
    assert (case["seed"], case["right"], case["tags"]) == (5, {"state": "succeeded"}, ["small"])
    assert [path.name for path in (tmp_path / "s/one/workspace").iterdir()] == ["a.txt"]
    assert json.loads((tmp_path / "s/one/recording.jsonl").read_text())["text"] == "yes"
    assert cli("suite", "check", "s", "--json").json["problems"] == []
    again = cli("suite", "keep", "latest", "--suite", "s", "--name", "two", "--json")
    assert (again.code, again.error) == (2, "suite.duplicate")


def test_the_suite_is_a_folder_of_that_name_if_none_is_named(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", HELLO).code == 0
    assert cli("suite", "keep", "latest", "--name", "one").code == 0
    assert cli("suite", "check", "suite", "--json").json["problems"] == []
    assert (tmp_path / "suite/one/case.json").exists()


def test_a_case_holds_what_a_copy_would_and_files_that_no_run_sees_are_named(
    cli: Cli, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    (given / "gen").mkdir(parents=True)
    for name, text in {"a.txt": "a", ".gitignore": "gen/\n*.log\n", "gen/b.txt": "", "c.log": ""}.items():
        (given / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(given)], check=True)
    assert cli("suite", "add", "one", "--suite", "s", "--workspace", "given").code == 0
    frozen = tmp_path / "s/one/workspace"
    assert {path.name for path in frozen.iterdir()} == {"a.txt", ".gitignore"}
    assert cli("suite", "check", "s", "--json").json["unseen"] == {}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (frozen / "old.log").write_text("of an older version")
    assert cli("suite", "check", "s", "--enter").code == 0
    done = cli("suite", "check", "s", "--json")
    assert done.code == 0 and done.json["unseen"] == {"one": ["old.log"]}
    assert "one: ignored by git, so no run sees old.log" in cli("suite", "check", "s").err
    assert (frozen / "old.log").exists()


def test_a_check_that_passes_on_nothing_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", HELLO).code == 0
    found = cli("suite", "keep", "latest", "--suite", "s", "--check", "true", "--json")
    assert (found.code, found.error) == (2, "suite.passes_before")
    assert list((tmp_path / "s").iterdir()) == []
    kept = cli(
        "suite", "keep", "latest", "--suite", "s", "--check", "true", "--passes-before", "smoke", "--json"
    )
    assert kept.code == 0


def test_a_validator_has_to_be_there_and_to_fail_before_a_run(cli: Cli, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "test_a.py").write_text("def test_a():\n    assert True\n")
    for words, code in (
        (("--validator", "Nobody"), "suite.check"),
        (("--validator", "PyTest", "--workspace", "given"), "suite.passes_before"),
    ):
        refused = cli("suite", "add", "one", "--suite", "s", *words, "--json")
        assert (refused.code, refused.error) == (2, code)
    assert list((tmp_path / "s").iterdir()) == []
    words = ("--validator", "PyTest", "--workspace", "given")
    assert cli("suite", "add", "one", "--suite", "s", *words, "--passes-before", "smoke").code == 0
    assert cli("suite", "add", "two", "--suite", "s", "--validator", "PyTest").code == 0
    assert cli("suite", "check", "s", "--json").json["problems"] == []


def test_a_kept_case_is_given_sealed_checks_later(cli: Cli, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "check.sh").write_text("grep -q Hello hello.txt && echo fine\n")
    assert cli("run", HELLO).code == 0
    kept = cli("suite", "keep", "latest", "--suite", "s", "--name", "one", "--json")
    for words, code in (
        (("one",), "usage.arguments"),
        (("two", "--check", "false"), "suite.missing"),
        (("one", "--check", "true"), "suite.passes_before"),
        (("one", "--check", "false", "--sealed", "none"), "usage.file"),
    ):
        refused = cli("suite", "seal", *words, "--suite", "s", "--json")
        assert (refused.code, refused.error) == (2, code)
        assert cli("suite", "check", "s", "--json").json["cases"] == kept.json["cases"]
    given = ("--check", "sh check.sh", "--output", "fine", "--sealed", "hidden")
    sealed = cli("suite", "seal", "one", *given, "--suite", "s", "--json")
    assert (sealed.code, sealed.json["changed"]["split"]) == (0, kept.json["added"]["split"])
    assert sealed.json["changed"]["hash"] != kept.json["added"]["hash"]
    case = json.loads((tmp_path / "s/one/case.json").read_text())
    assert case["right"]["sealed"][0]["cmd"] == ["sh", "check.sh"] and case["origin"]["run"]
    assert cli("suite", "check", "s", "--json").json["problems"] == []
    again = cli("suite", "seal", "one", "--check", "false", "--suite", "s", "--json")
    assert (again.code, again.error) == (2, "suite.sealed")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["ledger", "one"]
    found = cli("eval", HELLO, "--suite", "s", *EVERY, "--json")
    assert [cell["outcome"] for cell in found.json["cells"]] == ["pass"]


def test_cases_come_of_folders_archives_and_commits(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    with tarfile.open(tmp_path / "files.tar.gz", "w:gz") as archive:
        archive.add(folder / "a.txt", "b.txt")
    git = ["git", "-C", str(folder), "-c", "user.name=anna", "-c", "user.email=anna@spak.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "First"]):
        subprocess.run([*git, *words], check=True)
    (folder / "a.txt").write_text("two")
    for name, source in (("c1", "files.tar.gz"), ("c2", "git:files@HEAD")):
        assert cli("suite", "add", name, "--suite", "s", "--workspace", source).code == 0
    assert (tmp_path / "s/c1/workspace/b.txt").read_text() == "one"
    assert (tmp_path / "s/c2/workspace/a.txt").read_text() == "one"
    wrong = cli("suite", "add", "c3", "--suite", "s", "--workspace", "git:files@none", "--json")
    assert (wrong.code, wrong.error) == (2, "suite.workspace")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["c1", "c2", "ledger"]


@pytest.mark.parametrize("filters", [True, False])  # Python before 3.11.4 has none
def test_an_archive_that_leaves_its_folder_is_refused(
    filters: bool, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not filters:
        monkeypatch.setattr(case_files, "_FILTER", {})
    (tmp_path / "a.txt").write_text("one")
    link = tarfile.TarInfo("link")
    link.type = tarfile.SYMTYPE
    for name, target in (("../up.txt", ""), ("link/a.txt", "."), ("b.txt", "../up.txt"), ("b.txt", "/etc")):
        link.linkname = target
        with tarfile.open(tmp_path / "bad.tar", "w") as archive:
            if target:
                archive.addfile(link)
            archive.add(tmp_path / "a.txt", name)
        wrong = cli("suite", "add", "c3", "--suite", "s", "--workspace", "bad.tar", "--json")
        assert (wrong.code, wrong.error) == (2, "suite.workspace")
    assert not (tmp_path / "up.txt").exists() and not (tmp_path / "s/c3").exists()
    link.linkname = "b.txt"
    with tarfile.open(tmp_path / "good.tar", "w") as archive:
        archive.add(tmp_path / "a.txt", "b.txt")
        archive.addfile(link)
    assert cli("suite", "add", "c3", "--suite", "s", "--workspace", "good.tar").code == 0
    assert (tmp_path / "s/c3/workspace/b.txt").read_text() == "one"


def test_a_suite_that_was_touched_says_so(cli: Cli, tmp_path: Path) -> None:
    assert cli("suite", "add", "c1", "--suite", "s", "--seed", "1").code == 0
    case = tmp_path / "s/c1/case.json"
    case.write_text(case.read_text().replace('"seed": 1', '"seed": 2'))
    found = cli("suite", "check", "s", "--json")
    assert (found.code, [item["code"] for item in found.json["problems"]]) == (2, ["suite.changed"])
    assert cli("suite", "check", "s", "--enter").code == 0
    assert cli("suite", "check", "none", "--json").error == "suite.none"


def test_the_next_command_is_one_that_has_cases(cli: Cli, tmp_path: Path) -> None:
    """What is kept first may be a sealed case, of which `spak eval` uses none unless it is told to."""
    assert cli("run", HELLO).code == 0
    seen = set()
    for number in range(40):
        said = cli("suite", "keep", "latest", "--suite", f"s{number}", "--name", f"c{number}")
        split, usual = said.err.partition("in the split ")[2].split()[0], "next: spak eval SPEC" in said.err
        assert said.code == 0 and usual == (split != "sealed") and "next: spak " in said.err
        seen.add(usual)
        if seen == {True, False}:
            return
    raise AssertionError(f"no case of another split in 40: {seen}")


LOOKS = """AGENT Looks LEVEL 2 {
    CONFIG { HISTORY 2 }
    START -> look
    TASK look {
        step log: tool.run { cmd: "git log --format=%s" }
        success: exit_code(log) == 0
    }
}
"""


def test_a_case_has_the_commits_that_were_frozen_with_it(cli: Cli, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()

    def git(*words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True)

    def committed(message: str, **files: str) -> None:
        for name, text in files.items():
            (repo / name.replace("_", ".")).write_text(text)
        git("add", "-A")
        git("commit", "-qm", message)

    git("init", "-q", "-b", "main")
    for number in range(3):
        committed(f"commit {number}", a_txt=f"{number}\n", _env="DB_PASSWORD=hunter22x9-of-old\n")
    (tmp_path / "looks.spak").write_text(LOOKS)
    assert cli("suite", "add", "plain", "--suite", "s", "--workspace", "repo").code == 0
    words = ["suite", "add", "past", "--suite", "s", "--workspace", "repo", "--history", "9"]
    assert cli(*words).code == 0
    frozen = (tmp_path / "s/past/history").read_bytes()
    assert (
        b"commit 0" in frozen and b"hunter22x9" not in frozen and not (tmp_path / "s/plain/history").exists()
    )
    committed("later", a_txt="later\n")
    assert cli("suite", "check", "s", "--json").json["problems"] == []
    assert cli("eval", "looks.spak", "--suite", "s", *EVERY, "--json").code == 0
    seen = {}
    for trace in (tmp_path / ".spak/runs").glob("*/trace.jsonl"):
        lines = [json.loads(line)["body"] for line in trace.read_text().splitlines()]
        seen[lines[0]["host"]["labels"]["case"]] = next(body["out"] for body in lines if "out" in body)
    begun = "The files that the run began with\n"
    assert seen == {"plain": begun, "past": f"{begun}commit 2\ncommit 1\n"}
    assert cli("run", "looks.spak", "--workspace", "repo").code == 0
    assert cli("suite", "keep", "latest", "--suite", "s", "--name", "kept").code == 0
    kept = (tmp_path / "s/kept/history").read_bytes()
    assert b"later" in kept and b"commit 2" in kept and b"commit 1" not in kept
    (tmp_path / "s/past/history").write_bytes(kept)
    problems = cli("suite", "check", "s", "--json").json["problems"]
    assert [item["code"] for item in problems] == ["suite.changed"]
    (tmp_path / "bare").mkdir()
    done = cli(*[*words[:2], "none", *words[3:6], "bare", "--history", "2"], "--json")
    assert (done.code, done.error) == (2, "usage.arguments")


def test_a_shallow_clone_cannot_give_the_commits_that_a_spec_asks_for(cli: Cli, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "whole"], cwd=tmp_path, check=True)
    for number in range(3):
        subprocess.run(
            [*git, "commit", "-q", "--allow-empty", "-m", str(number)], cwd=tmp_path / "whole", check=True
        )
    subprocess.run(
        [*git, "clone", "-q", "--depth=1", f"file://{tmp_path}/whole", "cut"], cwd=tmp_path, check=True
    )
    (tmp_path / "looks.spak").write_text(LOOKS)
    done = cli("run", "looks.spak", "--workspace", "cut", "--json")
    assert (done.code, done.error) == (1, "git.shallow")
    assert list((tmp_path / ".spak/runs").glob("*")) == []
    words = ["suite", "add", "cut", "--suite", "s", "--workspace", "cut", "--history", "2", "--json"]
    assert cli(*words).error == "git.shallow"
