"""`spak policy diff`: recorded actions judged under two laws or two specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_kit import raw, spak

pytestmark = pytest.mark.sandbox

SPEC = """\
AGENT Notes LEVEL 2 {
  %s
  START -> note
  TASK note {
    step write: tool.write_file { path: "note.txt" content: "one line" }
    step count: tool.run { cmd: "wc -l note.txt" }
    success: exit_code(count) == 0
  }
}
"""
NARROW = 'POLICY """forbidden(A) :- runs_program(A, _, "wc")."""'


def written(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


def diff(folder: Path, *args: str) -> tuple[int, Any]:
    return spak(folder, "policy", "diff", *args, "--json")


def actions(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(change["name"], change["code"]) for change in found]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that succeeded under the shipped law, and one that its own POLICY refused."""
    tmp_path = tmp_path_factory.mktemp("ran")
    written(tmp_path, open__spak=SPEC % "", shut__spak=SPEC % NARROW, same__mg="# nothing\n")
    assert spak(tmp_path, "run", "open.spak", "--json")[1]["state"] == "succeeded"
    assert spak(tmp_path, "run", "shut.spak", "--json")[1]["state"] == "refused"
    return tmp_path


def test_the_same_law_changes_nothing(ran: Path) -> None:
    code, found = diff(ran, "same.mg", "same.mg")
    assert (code, found["runs"], found["newly_permitted"], found["newly_denied"]) == (0, 2, [], [])
    assert found["judged"] == 5  # write, count and the condition; write and count
    assert found["unknown"] == []


def test_a_law_that_forbids_more(ran: Path) -> None:
    written(ran, new__mg="forbidden(A) :- tool(A, /write_file).\n")
    code, found = diff(ran, "same.mg", "new.mg")
    assert (code, found["newly_permitted"]) == (0, [])
    assert actions(found["newly_denied"]) == [("write_file", "policy.forbidden")] * 2
    assert "operator/new.mg:1" in found["newly_denied"][0]["proof"]


def test_the_change_back_permits_with_a_proof_and_exit_1(ran: Path) -> None:
    written(ran, old__mg="forbidden(A) :- tool(A, /write_file).\n")
    code, found = diff(ran, "old.mg", "same.mg")
    assert code == 1
    assert actions(found["newly_permitted"]) == [("write_file", "policy.forbidden")] * 2
    assert found["newly_permitted"][0]["proof"].startswith("permitted(/action)")
    assert found["newly_denied"] == []


def test_a_rule_that_reads_what_the_runs_own_law_did_not(ran: Path) -> None:
    """The facts of a run are those that its policy reads; another policy gets those that it reads."""
    written(ran, new__mg="forbidden(A) :- tool(A, /write_file), at_level(2), spent(/steps, N), N < 100.\n")
    assert (
        actions(diff(ran, "same.mg", "new.mg")[1]["newly_denied"]) == [("write_file", "policy.forbidden")] * 2
    )


def test_two_specs(ran: Path) -> None:
    code, found = diff(ran, "shut.spak", "open.spak")
    assert code == 1
    assert [change["args"]["cmd"] for change in found["newly_permitted"]] == [["wc", "-l", "note.txt"]] * 2
    code, found = diff(ran, "open.spak", "shut.spak")
    assert (code, len(found["newly_denied"])) == (0, 2)


def test_what_cannot_be_judged_is_named(ran: Path) -> None:
    other = 'AGENT Notes LEVEL 2 { START -> look TASK look { step see: tool.list_files { path: "." } } }'
    written(ran, other__spak=other)
    code, found = diff(ran, "open.spak", "other.spak")
    assert (code, found["newly_permitted"], found["newly_denied"]) == (0, [], [])
    assert {item["why"] for item in found["unknown"]} == {"the spec has no TASK note"}


def test_a_task_that_was_renamed_out_of_reach_of_a_rule(ran: Path) -> None:
    """Its actions are judged under the new name."""
    only_note = 'POLICY """forbidden(A) :- in_task("note"), runs_program(A, _, "wc")."""'
    renamed = (SPEC % only_note).replace("note {", "notes {").replace("-> note", "-> notes")
    written(ran, named__spak=SPEC % only_note, renamed__spak=renamed)
    code, found = diff(ran, "named.spak", "renamed.spak")
    assert code == 1 and found["unknown"] == []
    assert [change["args"]["cmd"] for change in found["newly_permitted"]] == [["wc", "-l", "note.txt"]] * 2


def test_a_question_that_the_run_did_not_ask(ran: Path) -> None:
    written(ran, new__mg="forbidden(A) :- uses_path(A, /edits, _, F), test_coverage(F).\n")
    found = diff(ran, "same.mg", "new.mg")[1]
    assert [item["name"] for item in found["unknown"]] == ["write_file"] * 2
    assert "did not look at" in found["unknown"][0]["why"]


THRICE = """\
AGENT Thrice LEVEL 2 {
  START -> look
  TASK look {
    step first: tool.read_file { path: "a.txt" }
    step again: tool.read_file { path: "a.txt" }
    step third: tool.read_file { path: "a.txt" }
  }
}
"""
ONCE = """
Decl looked(Path, N) bound [/string, /number] descr [fold("count"), counts("%s")].
feed_looked(P) :- event(E), uses_path(E, /reads, _, P)%s.
forbidden(A) :- uses_path(A, /reads, _, P), looked(P, N), %d <= N.
"""


@pytest.mark.parametrize("fed", [("held", ""), ("done", ', result(E, "exit", 0)')], ids=["held", "done"])
def test_a_law_about_the_past_is_folded_anew_over_the_run(tmp_path: Path, fed: tuple[str, str]) -> None:
    """Exact until the first action that would have been decided otherwise; then nothing is claimed."""
    counts, more = fed
    written(tmp_path, thrice__spak=THRICE, none__mg="# nothing\n")
    written(tmp_path, twice__mg=ONCE % (counts, more, 2), once__mg=ONCE % (counts, more, 1))
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("a\n")
    ran = spak(tmp_path, "run", "thrice.spak", "--workspace", "work", "--json")
    assert ran[1]["state"] == "succeeded", ran
    code, found = diff(tmp_path, "none.mg", "twice.mg")
    assert (code, found["newly_permitted"]) == (0, [])
    (change,) = found["newly_denied"]
    assert (change["name"], change["code"]) == ("read_file", "policy.forbidden")
    assert 'looked("a.txt", 2)' in change["proof"]
    reads = [item for item in found["unknown"] if item["name"] == "read_file"]
    assert reads == []
    code, found = diff(tmp_path, "none.mg", "once.mg")
    assert len(found["newly_denied"]) == 1
    whys = {item["why"] for item in found["unknown"] if item["name"] == "read_file"}
    assert whys == {"an action before it would have been decided otherwise, and folds rest on it"}


def test_an_exported_file_and_words_for_people(ran: Path) -> None:
    spak(ran, "export", "latest", "--output", "run.jsonl")
    written(ran, new__mg="forbidden(A) :- tool(A, /write_file).\n")
    done = raw(ran, "policy", "diff", "same.mg", "new.mg", "--run", "run.jsonl")
    text = done.stdout + done.stderr
    assert done.returncode == 0
    assert "newly denied: 1" in text and "Actions that no run took are not among these." in text


def test_a_question_to_a_solver_is_answered_as_not_applicable_and_never_as_nothing_new(ran: Path) -> None:
    code, found = diff(ran, "same.mg", "same.mg", "--solve", "3")
    assert (code, found["solver"]) == (1, "not_applicable")
    assert (found["newly_permitted"], found["newly_denied"]) == ([], [])
    assert diff(ran, "same.mg", "same.mg")[0] == 0
    done = raw(ran, "policy", "diff", "same.mg", "same.mg", "--solve", "3")
    assert "solver: not applicable" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("same.mg", "open.spak"), "usage.arguments"),
        (("none.mg", "same.mg"), "usage.file"),
        (("broken.mg", "same.mg"), "policy.invalid"),
        (("same.mg", "same.mg", "--run", "damaged.jsonl"), "ledger.tampered"),
        (("same.mg", "same.mg", "--runs-dir", "nowhere"), "usage.run"),
    ],
)
def test_bad_input_is_refused_in_words(ran: Path, args: tuple[str, ...], code: str) -> None:
    written(ran, broken__mg="forbidden(A) :- ", damaged__jsonl=json.dumps({"v": 1}) + "\n")
    status, found = diff(ran, *args)
    assert status != 0
    assert found["error"]["code"] == code
