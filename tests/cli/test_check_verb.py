"""`spak check`: exit codes and the document of diagnostics."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import EXAMPLES, HELLO, Cli

MEMBERS = {
    "line", "column", "end_line", "end_column", "severity", "code", "message", "hint", "fix",
}  # fmt: skip
WARNED = 'AGENT Warned { START -> a TASK a { step s: tool.run { cmd: "true" } } }'


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.spak")), ids=lambda path: path.stem)
def test_every_example_is_without_error_or_warning(cli: Cli, path: Path) -> None:
    done = cli("check", str(path), "--strict", "--json")
    assert (done.code, done.json) == (0, {"files": [{"file": str(path), "ok": True, "diagnostics": []}]})


def test_one_row_per_file_and_one_bad_file_decides(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.spak").write_text('task T {\n  step a: tool.rum { cmd: "true" }\n}\n')
    done = cli("check", HELLO, "bad.spak", "--json")
    assert done.code == 3
    assert [(row["file"], row["ok"]) for row in done.json["files"]] == [(HELLO, True), ("bad.spak", False)]
    (found,) = done.json["files"][1]["diagnostics"]
    assert set(found) == MEMBERS
    assert (found["severity"], found["code"], found["line"]) == ("error", "lang.unknown_tool", 2)
    assert found["column"] < found["end_column"] and "run" in found["hint"]
    people = cli("check", HELLO, "bad.spak")
    assert people.code == 3 and people.out == ""
    assert "bad.spak:2:" in people.err and "^^^" in people.err and f"{HELLO}: ok" in people.err


def test_a_folder_is_every_spec_below_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "specs" / "shared").mkdir(parents=True)
    (tmp_path / "specs" / "z.spak").write_text(Path(HELLO).read_text())
    (tmp_path / "specs" / "shared" / "house.spak").write_text('SYSTEM_MODEL House { AXIOM "a" }\n')
    done = cli("check", "specs", "--strict", "--json")
    assert done.code == 0
    assert [row["file"] for row in done.json["files"]] == ["specs/shared/house.spak", "specs/z.spak"]
    (found,) = done.json["files"][0]["diagnostics"]
    assert (found["severity"], found["code"]) == ("info", "lang.empty")
    assert cli("check", "specs").err.endswith("next: spak run specs/z.spak\n")
    assert cli("check", "specs", "nowhere").code == 2


def test_a_file_to_import_is_fine_and_can_not_be_run(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "house.spak").write_text('SYSTEM_MODEL House { AXIOM "a" }\n')
    done = cli("check", "house.spak", "--strict")
    assert done.code == 0 and "next:" not in done.err
    assert (cli("run", "house.spak", "--json").code, cli("run", "house.spak", "--json").error) == (
        3,
        "lang.invalid",
    )


def test_standard_input_is_a_dash(cli: Cli) -> None:
    done = cli("check", "-", "--json", stdin=b"task T {")
    assert (done.code, done.json["files"][0]["file"]) == (3, "-")
    assert cli("check", "-", stdin=Path(HELLO).read_bytes()).code == 0


def test_a_warning_counts_only_when_strict(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "warned.spak").write_text(WARNED)
    done = cli("check", "warned.spak", "--json")
    assert (done.code, done.json["files"][0]["ok"]) == (0, True)
    assert {item["severity"] for item in done.json["files"][0]["diagnostics"]} == {"warning"}
    strict = cli("check", "warned.spak", "--strict", "--json")
    assert (strict.code, strict.json["files"][0]["ok"]) == (3, False)
    assert cli("run", "warned.spak", "--json").code == 0


def test_a_fix_is_a_list_of_edits_that_mends_the_spec(cli: Cli, tmp_path: Path) -> None:
    text = (
        "AGENT A LEVEL 2 { START -> go "
        'TASK go { step s: tool.run { cmd: "true" } NEXT { success -> gone } } '
        'TASK done { step s: tool.run { cmd: "true" } } }'
    )
    (tmp_path / "typo.spak").write_text(text.replace("gone", "dome"))
    found = cli("check", "typo.spak", "--json").json["files"][0]["diagnostics"]
    wrong = next(item for item in found if item["code"] == "lang.unknown_task")
    assert isinstance(wrong["fix"], list) and wrong["fix"]
    mended = text.replace("gone", "dome")
    for edit in wrong["fix"]:
        start, end, new = edit if isinstance(edit, list) else (edit["start"], edit["end"], edit["text"])
        mended = mended[:start] + new + mended[end:]
    (tmp_path / "typo.spak").write_text(mended)
    assert cli("check", "typo.spak", "--json").code == 0
