"""`spak apply`: what a run changed comes home through the door, all or nothing, and can be taken back."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cli_kit import raw, run_dir, spak
from git_http_kit import git
from process_kit import WAIT_S
from spak.cli import apply
from spak.errors import RunError
from spak.files.disk import Disk
from spak.repository import ignoring

SPEC = """AGENT Mends LEVEL 2 {{
    START -> mend
    TASK mend {{
        GOAL "Change the files."
        TOOLS [write_file]
{steps}
    }}
}}
"""


def started(folder: Path, *steps: str, args: tuple[str, ...] = ()) -> tuple[str, int]:
    """A run of a spec whose task has these steps, in a copy of `project`."""
    body = "\n".join(f"        step s{number}: {step}" for number, step in enumerate(steps))
    (folder / "mends.spak").write_text(SPEC.format(steps=body))
    code, seen = spak(folder, "run", "mends.spak", "--workspace", "project", "--json", *args)
    return str(seen["run"]), code


def writes(path: str, content: str) -> str:
    return f"tool.write_file {{ path: {json.dumps(path)}, content: {json.dumps(content)} }}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src/app.py").write_text("one = 1\ntwo = 3\nthree = 3\n")
    return made


def held(project: Path) -> dict[str, str]:
    files = (path for path in project.rglob("*") if path.is_file())
    return {str(path.relative_to(project)): path.read_text() for path in files}


def test_an_ordinary_change_is_checked_brought_home_and_taken_back(tmp_path: Path, project: Path) -> None:
    before = held(project)
    run, code = started(tmp_path, writes("src/app.py", "one = 1\ntwo = 2\nthree = 3\n"))
    assert code == 0 and held(project) == before
    assert f"next: spak apply {run} --check" in raw(tmp_path, "show", run).stderr
    code, found = spak(tmp_path, "apply", run, "--check", "--json")
    assert (code, found["applied"]) == (0, [{"path": "src/app.py", "class": "ordinary"}])
    assert held(project) == before
    (project / "src/app.py").write_text("zero = 0\none = 1\ntwo = 3\nthree = 3\n")
    code, text = spak(tmp_path, "apply", run)
    assert code == 0 and "merged  src/app.py" in text
    assert held(project)["src/app.py"] == "zero = 0\none = 1\ntwo = 2\nthree = 3\n"
    code, found = spak(tmp_path, "apply", run, "--json")
    assert (code, found["applied"]) == (0, [])
    code, found = spak(tmp_path, "apply", run, "--undo", "--json")
    assert code == 0 and held(project)["src/app.py"] == "zero = 0\none = 1\ntwo = 3\nthree = 3\n"
    code, found = spak(tmp_path, "apply", run, "--undo", "--json")
    assert (code, found["error"]["code"]) == (1, "apply.nothing")


TURNS = """AGENT Turns LEVEL 2 {
    START -> one
    TASK one {
        step a: tool.write_file { path: "src/new.py", content: "x = 1\\n" }
        step b: tool.write_file { path: "src/app.py", content: "one = 0\\n" }
        step q: llm.query { role: "coder" prompt_template: "Say one word." output_var: word }
        step c: tool.run { cmd: ["rm", "src/new.py"] }
        step d: tool.write_file { path: "src/app.py", content: "one = 1\\ntwo = 3\\nthree = 3\\n" }
    }
}
"""


@pytest.mark.sandbox
def test_what_a_run_takes_back_later_goes_home_as_well(tmp_path: Path, project: Path) -> None:
    """Else a file that no diff of the run shows stays in the folder."""
    before = held(project)
    (tmp_path / "turns.spak").write_text(TURNS)
    code, seen = spak(tmp_path, "run", "turns.spak", "--workspace", "project", "--in-place", "--json")
    assert code == 4 and held(project)["src/new.py"] == "x = 1\n", seen
    code, seen = spak(tmp_path, "step", seen["run"], "--answer", "word", "--json")
    code, seen = spak(tmp_path, "resume", seen["run"], "--json")
    assert (code, seen["state"]) == (0, "succeeded")
    assert held(project) == before


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"a:b", b" sp "])
def test_a_folder_may_be_called_anything(tmp_path: Path, project: Path, name: bytes) -> None:
    place = project.rename(tmp_path / os.fsdecode(name))
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    (tmp_path / "mends.spak").write_text(SPEC.format(steps=f"step s: {writes('src/new.py', 'x')}"))
    for words in ((), ("--in-place",)):
        code, seen = spak(tmp_path, "run", "mends.spak", "--workspace", str(place), "--json", *words)
        assert code == 0, seen
    assert (place / "src/new.py").read_text() == "x"
    code, seen = spak(tmp_path, "apply", "--undo", "--json")
    assert code == 0 and not (place / "src/new.py").exists()


def test_a_conflict_writes_nothing(tmp_path: Path, project: Path) -> None:
    run, _ = started(tmp_path, writes("src/app.py", "one = 2\n"), writes("src/other.py", "x = 1\n"))
    (project / "src/app.py").write_text("one = 3\n")
    code, found = spak(tmp_path, "apply", run, "--json")
    assert (code, found["conflicts"], found["held"], found["applied"]) == (1, ["src/app.py"], [], [])
    assert held(project) == {"src/app.py": "one = 3\n"}
    done = raw(tmp_path, "apply", run)
    assert done.returncode == 1 and "apply.conflict" in done.stderr and "src/app.py" in done.stderr
    code, _ = spak(tmp_path, "apply", run, "--only", "src/other.py", "--json")
    assert code == 0 and held(project)["src/other.py"] == "x = 1\n"
    code, found = spak(tmp_path, "apply", run, "--only", "nothing.py", "--json")
    assert (code, found["error"]["code"]) == (2, "usage.arguments")


def test_what_was_edited_since_is_named_and_not_taken_back(tmp_path: Path, project: Path) -> None:
    run, _ = started(tmp_path, writes("src/app.py", "one = 1\ntwo = 2\nthree = 3\n"))
    assert spak(tmp_path, "apply", run, "--json")[0] == 0
    (project / "src/app.py").write_text("one = 1\ntwo = 4\nthree = 3\n")
    done = raw(tmp_path, "apply", run, "--undo")
    assert (
        done.returncode == 1
        and "conflict  src/app.py: both changed the same lines, in one place" in done.stderr
    )
    assert "--only" not in done.stderr, "--undo takes no other option"
    assert held(project)["src/app.py"] == "one = 1\ntwo = 4\nthree = 3\n"


def test_what_runs_by_itself_waits_for_a_person(tmp_path: Path, project: Path) -> None:
    steps = (writes("src/conftest.py", "x = 1\n"), writes("src/app.py", "one = 1\n"))
    run, _ = started(tmp_path, *steps)
    before = held(project)
    code, found = spak(tmp_path, "apply", run, "--json")
    assert code == 4 and held(project) == before and found["applied"] == []
    assert [(row["path"], row["class"]) for row in found["held"]] == [("src/conftest.py", "runs")]
    code, found = spak(tmp_path, "apply", run, "--check", "--json")
    assert code == 4 and [row["path"] for row in found["applied"]] == ["src/app.py"]
    shown = raw(tmp_path, "apply", run, "--check").stdout.splitlines()
    assert [line.split()[1] for line in shown] == ["src/conftest.py", "src/app.py"], "what runs comes first"
    done = raw(tmp_path, "apply", run)
    assert done.returncode == 4 and f"spak apply {run} --allow-runs src/conftest.py" in done.stderr
    code, _ = spak(tmp_path, "apply", run, "--allow-runs", "src/conftest.py", "--json")
    assert code == 0 and held(project)["src/conftest.py"] == "x = 1\n"
    (kept,) = json.loads((run_dir(tmp_path, {"run": run}) / "applied/done.json").read_bytes())
    assert kept["about"]["runs"] == ["src/conftest.py"]


@pytest.mark.parametrize(("words", "code"), [("y\n", 0), ("n\n", 4)])
def test_a_person_at_a_terminal_confirms_each_path_by_name(
    tmp_path: Path, project: Path, words: str, code: int
) -> None:
    run, _ = started(tmp_path, writes("src/conftest.py", "x = 1\n"))
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPAK_")}
    line = [sys.executable, "-c", "from spak.cli import main; main()", "apply", run]
    with subprocess.Popen(
        line, cwd=tmp_path, env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        os.write(ours, words.encode())
        _, said = process.communicate(timeout=WAIT_S)
    os.close(ours)
    assert process.returncode == code and b"src/conftest.py may run by itself" in said
    assert (project / "src/conftest.py").exists() == (code == 0)


def test_a_secret_never_comes_home(tmp_path: Path, project: Path) -> None:
    text = 'PASSWORD = "hunter22x9kQ"\n'
    run, _ = started(tmp_path, writes("src/app.py", "one = 1\n"), writes("src/url.py", text))
    for allowed in ((), ("--allow-runs", "src/url.py")):
        code, found = spak(tmp_path, "apply", run, "--json", *allowed)
        assert code == 4 and [row["class"] for row in found["held"]] == ["secret"]
    assert "url.py" not in str(held(project))
    assert spak(tmp_path, "apply", run, "--only", "src/app.py", "--json")[0] == 0
    assert held(project)["src/app.py"] == "one = 1\n"


def test_of_a_run_whose_check_failed_nothing_leaves_by_a_script(tmp_path: Path, project: Path) -> None:
    (tmp_path / "mends.spak").write_text(
        SPEC.format(steps="        step s: " + writes("src/app.py", "one = 2\n")).replace(
            "TOOLS [write_file]", 'TOOLS [write_file]\n VALIDATOR Command { cmd: "false" }'
        )
    )
    _, seen = spak(tmp_path, "run", "mends.spak", "--workspace", "project", "--json")
    assert seen["state"] in ("failed", "refused")
    code, found = spak(tmp_path, "apply", str(seen["run"]), "--json")
    assert (code, found["blocked"]) == (4, ["Check Failed"])
    assert held(project)["src/app.py"] != "one = 2\n"


def test_where_keys_are_named_the_yes_is_signed(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    run, _ = started(tmp_path, writes("src/conftest.py", "x = 1\n"))
    made = raw(tmp_path, "keys", "make", "me")
    (tmp_path / "spak.toml").write_text(made.stdout)
    code, _ = spak(tmp_path, "apply", run, "--allow-runs", "src/conftest.py", "--json")
    assert code == 0
    (kept,) = json.loads((run_dir(tmp_path, {"run": run}) / "applied/done.json").read_bytes())
    assert kept["about"]["approval"]["signature"]
    (tmp_path / "config/spak/keys").rename(tmp_path / "elsewhere")
    assert spak(tmp_path, "apply", run, "--undo", "--json")[0] == 0
    code, found = spak(tmp_path, "apply", run, "--allow-runs", "src/conftest.py", "--json")
    assert (code, found["error"]["code"]) == (2, "keys.missing")


def test_what_was_applied_by_name_is_there_the_second_time(tmp_path: Path, project: Path) -> None:
    run, _ = started(tmp_path, writes("src/app.py", "one = 1\n"), writes("src/other.py", "x = 1\n"))
    for written in (1, 0):
        code, found = spak(tmp_path, "apply", run, "--only", "src/app.py", "--json")
        assert (code, len(found["applied"])) == (0, written)
    assert spak(tmp_path, "apply", run, "--json")[1]["applied"][0]["path"] == "src/other.py"


def test_a_name_is_one_line_of_what_a_person_reads(tmp_path: Path, project: Path) -> None:
    code = "open('src/a.md\\n  new  b.md', 'w').write('x'); open(b'src/\\xff.md', 'w').write('x')"
    run, _ = started(tmp_path, f"tool.python_repl {{ code: {json.dumps(code)} }}")
    done = raw(tmp_path, "apply", run)
    assert done.returncode == 4 and "src/a.md\\x0a  new  b.md: odd" in done.stderr
    assert "src/\\udcff.md: odd" in done.stderr and "\n  new" not in done.stdout
    assert "src/a.md\\x0a" in raw(tmp_path, "apply", run, "--check").stdout


def test_a_folder_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = started(tmp_path, writes("src/app.py", "one = 1\n"))
    before = held(project)

    def refused(*given: object) -> int:
        raise OSError(30, "Read-only file system")

    for place, name, doing in (
        (Disk, "create", "opening the journal"),
        (Disk, "rename", "applying the changes"),
        (ignoring, "new_and_ignored", "looking for what git ignores"),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(place, name, refused)
            with pytest.raises(RunError) as caught:
                apply.bring_home(run_dir(tmp_path, {"run": run}).parent, run)
        assert caught.value.code == "workspace.readonly" and doing in caught.value.message
        assert "spak apply" in caught.value.hint and held(project) == before


@pytest.mark.parametrize("name", ["project", "007"])
def test_a_folder_that_does_not_tell_cases_apart_is_known(tmp_path: Path, name: str) -> None:
    """By what is in it, whatever it is called; a second name of one file stands for such a folder here."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "1.txt").write_text("x")
    assert apply._tells_cases(folder)
    (folder / "1.TXT").hardlink_to(folder / "1.txt")
    assert not apply._tells_cases(folder)
    (folder / "1.TXT").unlink()
    (folder / "1.TXT").symlink_to("1.txt")
    assert apply._tells_cases(folder)


def test_a_run_that_came_from_no_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "mends.spak").write_text(SPEC.format(steps="        step s: " + writes("a.txt", "x")))
    _, seen = spak(tmp_path, "run", "mends.spak", "--json")
    code, found = spak(tmp_path, "apply", str(seen["run"]), "--json")
    assert (code, found["error"]["code"]) == (1, "apply.no_folder")


def test_a_folder_that_is_gone_is_named(tmp_path: Path, project: Path) -> None:
    run, _ = started(tmp_path, writes("src/app.py", "one = 1\n"))
    project.rename(tmp_path / "elsewhere")
    code, found = spak(tmp_path, "apply", run, "--json")
    assert (code, found["error"]["code"]) == (1, "apply.folder")
