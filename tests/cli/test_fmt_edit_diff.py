"""`spak fmt`, `spak edit` and `spak diff` as a person calls them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, ROOT, raw, spak
from process_kit import WAIT_S, start
from spak.cli.rewrite import rewrite
from spak.errors import UsageError
from spak.lang.edit import OPS
from spak.lang.edit.syntax import SPECIAL, VERBS, usage

MESSY = 'agent A level 2{start a// one\r\n task a{goal"é"\ttools[run,]}}\n'
NEAT = 'agent A level 2 {\n  start -> a // one\n  task a { goal "é" tools [run] }\n}\n'
BROKEN = "task a {\n"


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    path = tmp_path / "a.spak"
    path.write_bytes(MESSY.encode())
    return path


# ---- fmt -----------------------------------------------------------------------------------------------


def test_fmt_writes_in_place_and_then_has_nothing_to_do(tmp_path: Path, messy: Path) -> None:
    messy.chmod(0o640)
    code, found = spak(tmp_path, "fmt", "a.spak", "--json")
    assert (code, found["files"][0]["changed"], found["files"][0]["ok"]) == (0, True, True)
    assert messy.read_text() == NEAT
    assert messy.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [messy]
    code, found = spak(tmp_path, "fmt", "a.spak", "--json")
    assert (code, found["files"][0]["changed"]) == (0, False)


def test_fmt_follows_a_link_and_leaves_it_one(tmp_path: Path, messy: Path) -> None:
    link = tmp_path / "link.spak"
    link.symlink_to(messy)
    assert spak(tmp_path, "fmt", "link.spak")[0] == 0
    assert link.is_symlink()
    assert messy.read_text() == NEAT


@pytest.mark.parametrize("verb", [("fmt", "a.spak"), ("edit", "a.spak", "add-task", "b", "--in-place")])
def test_a_file_with_another_name_is_not_parted_from_it(
    tmp_path: Path, messy: Path, verb: tuple[str, ...]
) -> None:
    (tmp_path / "b.spak").hardlink_to(messy)
    code, found = spak(tmp_path, *verb, "--json")
    assert (code, found["error"]["code"]) == (2, "usage.file")
    assert messy.read_bytes() == MESSY.encode()
    assert messy.stat().st_nlink == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_rewriting_keeps_what_the_file_is(tmp_path: Path) -> None:
    file = tmp_path / f"{'n' * 250}.spak"
    file.write_bytes(b"old")
    file.chmod(0o604)
    os.utime(file, (1, 1))
    before = file.stat()
    rewrite(file, b"old", b"new")
    after = file.stat()
    assert file.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_mtime > 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_change_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "a.spak"
    for now in (b"older", b"ol", b"other"):
        file.write_bytes(now)
        with pytest.raises(UsageError) as told:
            rewrite(file, b"old", b"new")
        assert told.value.code == "usage.changed"
        assert file.read_bytes() == now
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_being_written_is_left_to_the_other(tmp_path: Path) -> None:
    file = tmp_path / "a.spak"
    file.write_bytes(b"old")
    with file.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError) as told:
            rewrite(file, b"old", b"new")
    assert told.value.code == "usage.changed"
    rewrite(file, b"old", b"new")
    assert file.read_bytes() == b"new"


def test_a_read_only_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.spak"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everything
    with pytest.raises(UsageError) as told:
        rewrite(file, b"old", b"new")
    assert told.value.code == "usage.file"
    assert file.read_bytes() == b"old"


def test_of_edits_at_once_none_is_lost(tmp_path: Path) -> None:
    """Each edit is in the file at the end, or its command said that it is not."""
    file = tmp_path / "a.spak"
    file.write_text('task a { GOAL "x" }\n')
    line = [
        sys.executable,
        "-c",
        "from spak.cli import main; main()",
        "edit",
        "a.spak",
        "--in-place",
        "add-task",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    names = [f"t{number}" for number in range(6)]
    running = [(name, start([*line, name], cwd=tmp_path, **quiet)) for name in names]
    written = {name for name, process in running if process.wait(timeout=WAIT_S) == 0}
    assert written
    assert {name for name in names if f"task {name} " in file.read_text()} == written


def test_fmt_check_and_diff_write_nothing(tmp_path: Path, messy: Path) -> None:
    before = messy.read_bytes()
    assert spak(tmp_path, "fmt", "--check", "a.spak")[0] == 1
    code, shown = spak(tmp_path, "fmt", "--diff", "a.spak")
    assert code == 0
    assert "+  start -> a // one\n" in shown
    code, found = spak(tmp_path, "fmt", "--diff", "--check", "a.spak", "--json")
    assert code == 1
    assert "+  start -> a // one\n" in found["files"][0]["diff"]
    assert messy.read_bytes() == before


def test_fmt_of_a_folder_finds_every_spec_below_it(tmp_path: Path, messy: Path) -> None:
    inner = tmp_path / "x" / "y"
    inner.mkdir(parents=True)
    (inner / "b.spak").write_text(NEAT)
    (inner / "c.txt").write_text(MESSY)
    code, found = spak(tmp_path, "fmt", ".", "--check", "--json")
    assert code == 1
    assert [(Path(item["file"]).name, item["changed"]) for item in found["files"]] == [
        ("a.spak", True),
        ("b.spak", False),
    ]


def test_the_specs_that_come_along_are_formatted() -> None:
    assert spak(ROOT, "fmt", "--check", "specs")[0] == 0


def test_fmt_reads_standard_input(tmp_path: Path) -> None:
    assert spak(tmp_path, "fmt", "-", stdin=MESSY) == (0, NEAT)
    assert spak(tmp_path, "fmt", "-", "--check", stdin=MESSY) == (1, "")
    assert spak(tmp_path, "fmt", "-", stdin=BROKEN) == (3, "")


def test_fmt_does_not_touch_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "b.spak"
    path.write_text(BROKEN)
    done = raw(tmp_path, "fmt", "b.spak")
    assert done.returncode == 3
    assert "b.spak:1:" in done.stderr
    assert path.read_text() == BROKEN
    code, found = spak(tmp_path, "fmt", "b.spak", "--json")
    assert (code, found["files"][0]["ok"]) == (3, False)
    assert found["files"][0]["diagnostics"]


@pytest.mark.parametrize("arguments", [("none.spak",), ("empty",), (), ("-", "--json")])
def test_fmt_says_what_can_not_be_read(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    assert spak(tmp_path, "fmt", *arguments)[0] == 2


# ---- edit ----------------------------------------------------------------------------------------------


def test_edit_prints_the_new_text_and_keeps_the_file(tmp_path: Path, messy: Path) -> None:
    done = raw(tmp_path, "edit", "a.spak", "rename-task", "a", "b")
    assert done.returncode == 0
    assert messy.read_bytes() == MESSY.encode()
    assert MESSY.replace("start a", "start b").replace("task a", "task b") == done.stdout.replace(
        "// one\n", "// one\r\n"
    )


def test_edit_in_place_and_back_by_its_inverse(tmp_path: Path, messy: Path) -> None:
    words = ["add-task", "b", ",", "add-edge a success b", "set-goal", "b", "two words"]
    code, found = spak(tmp_path, "edit", "a.spak", *words, "--in-place", "--json")
    assert code == 0
    assert found["changed"]
    assert [op["op"] for op in found["ops"]] == ["add_task", "add_edge", "set"]
    assert messy.read_bytes().decode() == found["text"]
    assert "two words" in found["text"]
    (tmp_path / "back.json").write_text(json.dumps(found["inverse"]))
    code, _ = spak(tmp_path, "edit", "a.spak", "--ops", "back.json", "--in-place", "--json")
    assert code == 0
    assert messy.read_bytes() == MESSY.encode()


def test_edit_takes_operations_as_json_and_from_standard_input(tmp_path: Path, messy: Path) -> None:
    many = [{"op": "add_task", "name": "b", "goal": "x"}, {"op": "set_start", "task": "b"}]
    code, found = spak(tmp_path, "edit", "a.spak", "--ops", "-", "--json", stdin=json.dumps(many))
    assert code == 0
    assert "start b//" in found["text"]
    code, shown = spak(tmp_path, "edit", "-", "set-level 3", stdin=NEAT)
    assert (code, shown) == (0, NEAT.replace("level 2", "level 3"))


def test_edit_shows_a_diff(tmp_path: Path) -> None:
    code, shown = spak(tmp_path, "edit", str(EXAMPLES / "hello.spak"), "rename-step Hello look see", "--diff")
    assert code == 0
    assert "-  step look: tool.run {\n+  step see: tool.run {\n" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("a.spak", "rename-task", "x", "y"), 1, "edit.unknown"),
        (("a.spak", "fly"), 1, "edit.unknown_op"),
        (("a.spak", "add-task"), 1, "edit.arguments"),
        (("a.spak",), 2, "usage.arguments"),
        (("none.spak", "add-task b"), 2, "usage.file"),
        (("a.spak", "--ops", "none.json"), 2, "usage.file"),
        (("a.spak", "--ops", "a.spak"), 2, "usage.file"),
        (("-", "--in-place", "add-task b"), 2, "usage.arguments"),
        (("b.spak", "add-task b"), 3, "lang.invalid"),
    ],
)
def test_edit_refuses_with_a_code(
    tmp_path: Path, messy: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "b.spak").write_text(BROKEN)
    found = spak(tmp_path, "edit", *arguments, "--json")
    assert (found[0], found[1]["error"]["code"]) == (code, said)
    assert messy.read_bytes() == MESSY.encode()


# ---- diff ----------------------------------------------------------------------------------------------


def test_diff_of_equal_specs(tmp_path: Path, messy: Path) -> None:
    (tmp_path / "b.spak").write_text(NEAT)
    code, found = spak(tmp_path, "diff", "a.spak", "b.spak", "--json")
    assert (code, found["equal"], found["formatting_only"], found["changes"]) == (0, True, True, [])
    assert spak(tmp_path, "diff", "a.spak", "a.spak") == (0, "equal: the same text\n")


def test_diff_after_an_edit_tells_it(tmp_path: Path) -> None:
    path = str(EXAMPLES / "cuda_optimizer.spak")
    _, new = spak(tmp_path, "edit", path, "set-tools finalize read_ast,write_file")
    (tmp_path / "new.spak").write_text(new)
    code, found = spak(tmp_path, "diff", path, "new.spak", "--json")
    assert code == 1
    assert found["changes"] == [
        {"op": "add", "path": "tasks/finalize/TOOLS", "before": None, "after": ["read_ast", "write_file"]}
    ]
    assert ("tool", "gained", "write_file", True) in {
        (item["kind"], item["change"], item["name"], item["widens"]) for item in found["capabilities"]
    }
    assert ("tool", "changed", "read_ast", True) in {
        (item["kind"], item["change"], item["name"], item["widens"]) for item in found["capabilities"]
    }, "what only a step used, a plan may choose"
    assert [item["flag"] for item in found["flags"]] == ["widens", "widens"]
    code, shown = spak(tmp_path, "diff", path, "-", stdin=new)
    assert code == 1
    assert "! tool write_file in tasks/finalize gained" in shown


def test_diff_looks_into_what_is_imported(tmp_path: Path) -> None:
    (tmp_path / "lib.spak").write_text('TASK b { step s: tool.run { cmd: "ls" } }\n')
    text = 'AGENT A LEVEL 2 { IMPORT "lib.spak" START -> a TASK a { GOAL "x" NEXT { success -> b } } }'
    (tmp_path / "a.spak").write_text(text)
    (tmp_path / "c.spak").write_text(text.replace("lib", "other"))
    (tmp_path / "other.spak").write_text('TASK b { step s: tool.run { cmd: "pwd" } }\n')
    code, found = spak(tmp_path, "diff", "a.spak", "c.spak", "--json")
    assert code == 1
    assert [item["path"] for item in found["changes"]] == ["tasks/b/steps/s/cmd"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("a.spak", "none.spak"), 2), (("-", "-"), 2), (("a.spak",), 2), (("a.spak", "b.spak"), 3)],
)
def test_diff_says_what_can_not_be_compared(
    tmp_path: Path, messy: Path, arguments: tuple[str, ...], code: int
) -> None:
    (tmp_path / "b.spak").write_text(BROKEN)
    assert spak(tmp_path, "diff", *arguments, "--json")[0] == code


# ---- the page ------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs/typed-edits.md").read_text()


@pytest.mark.parametrize("name", OPS)
def test_every_operation_is_on_the_page(name: str) -> None:
    assert re.search(rf"\| .*`{name}`", PAGE)


@pytest.mark.parametrize("verb", [*VERBS, *SPECIAL])
def test_every_word_is_on_the_page_and_says_how_it_is_used(verb: str) -> None:
    assert re.search(rf"`{verb}[` ]", PAGE)
    assert usage(verb).startswith(verb)


def test_no_word_is_on_the_page_that_is_gone() -> None:
    for verb in re.findall(r"`([a-z]+-[a-z]+(?:-[a-z]+)?) [A-Z]", PAGE):
        assert verb in VERBS or verb in SPECIAL, verb


def test_the_example_of_the_page_works() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    checked = re.sub(r"^(.*==.*?) # always$", r"assert \1", block, flags=re.MULTILINE)
    assert "assert " in checked
    exec(checked, {"text": (EXAMPLES / "attention_tuner.spak").read_text()})
