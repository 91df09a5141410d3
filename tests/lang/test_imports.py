"""IMPORT and POLICY: what comes in, what is refused, and where it is told."""

from __future__ import annotations

import os

import pytest

from lang_catalog import CATALOG
from spak import program
from spak.errors import SpecError
from spak.lang import check, parse, render
from spak.lang.imports import Resolved, Unreadable, resolve
from spak.lang.limits import MAX_IMPORT_DEPTH
from spak.lang.spec_files import folder_reader

MAIN = """\
AGENT A LEVEL 2 {
  IMPORT "shared/house.spak"  // the model of the house
  SYSTEM_MODEL Own { HEURISTIC "own first" }
  START -> build
  TASK build { TOOLS [run] NEXT { success -> report } }
}
// after the agent
"""
HOUSE = """\
IMPORT "deeper/tasks.spak"
SYSTEM_MODEL House { AXIOM "Tests are not edited." HEURISTIC "Read the test." WHEN fail }
TASK idle { TOOLS [run] }
"""
TASKS = 'TASK report { GOAL "Say it." TOOLS [run] NEXT { success -> last } }\nTASK last { GOAL "x" }  // end'
NEAR, DEEP = "specs/shared/house.spak", "specs/shared/deeper/tasks.spak"
FILES = {"main.spak": MAIN, "shared/house.spak": HOUSE, "shared/deeper/tasks.spak": TASKS}


def put(files: dict[str, str], name: str = "specs/main.spak") -> Resolved:
    def read(path: str) -> bytes | None:
        found = files.get(path)
        return None if found is None else found.encode()

    return resolve(parse(files["main.spak"], name), read)


def told(files: dict[str, str]) -> list[tuple[str, str, int, int]]:
    whole = put(files)
    return [
        (item.code, item.file, item.line, item.column)
        for item in check(whole.parsed, CATALOG)
        if item.severity == "error"
    ]


def changed(**files: str) -> dict[str, str]:
    names = {"main": "main.spak", "house": "shared/house.spak", "tasks": "shared/deeper/tasks.spak"}
    return FILES | {names[key]: text for key, text in files.items()}


def test_what_is_imported_is_part_of_the_program():
    whole = put(FILES)
    assert check(whole.parsed, CATALOG) == ()
    made = program.compile(whole.parsed, CATALOG)
    assert list(made.tasks) == ["build", "report", "last"]  # nothing leads to `idle`
    assert [item.text for item in made.heuristics] == ["own first", "Read the test."]
    assert made.axioms == ("Tests are not edited.",)


def test_the_text_is_self_contained_and_means_the_same():
    whole = put(FILES)
    alone = parse(whole.parsed.text)
    assert "IMPORT" not in whole.parsed.text.replace("// the", "")
    assert alone.spec.hash == whole.parsed.spec.hash
    assert program.compile(alone, CATALOG) == program.compile(whole.parsed, CATALOG)


def test_a_spec_without_imports_stays_as_it_is():
    text = '\ufefftask a {\r\n  step s: tool.run { cmd: "ls" }\r\n}'
    assert put({"main.spak": text}).parsed.text == text


def test_bare_tasks_import_too_and_the_first_of_their_own_is_run():
    files = {
        "main.spak": 'IMPORT "b.spak"\ntask a { step s: tool.run { cmd: "ls" } NEXT { success -> b } }',
        "b.spak": 'task b { step s: tool.run { cmd: "ls" } }',
    }
    made = program.compile(put(files).parsed, CATALOG)
    assert (made.start, list(made.tasks)) == ("a", ["a", "b"])


def test_a_file_that_only_imports_runs_the_first_imported_task():
    files = {"main.spak": 'IMPORT "b.spak"', "b.spak": 'task b { step s: tool.run { cmd: "ls" } }'}
    assert program.compile(put(files).parsed, CATALOG).start == "b"


def test_a_file_that_two_import_comes_once():
    files = changed(main=MAIN.replace("  SYS", '  IMPORT "shared/deeper/tasks.spak"\n  SYS', 1))
    assert told(files) == []


@pytest.mark.parametrize(
    ("files", "code", "file", "line", "column"),
    [
        (changed(main=MAIN.replace("shared/house", "shared/hosue")), "lang.import_missing", "", 2, 10),
        (changed(main=MAIN.replace("shared/house", "../house")), "lang.import_path", "", 2, 10),
        (changed(main=MAIN.replace("shared/house", "/etc/house")), "lang.import_path", "", 2, 10),
        (changed(main=MAIN.replace("shared/house", "/ws/house")), "lang.import_path", "", 2, 10),
        (changed(main=MAIN.replace('"shared/house.spak"', "house")), "lang.import_path", "", 2, 3),
        (changed(house=HOUSE.replace("deeper/", "")), "lang.import_missing", NEAR, 1, 8),
        (changed(house=HOUSE + "CONFIG { MODE stepwise }"), "lang.import_content", NEAR, 4, 1),
        (changed(house=HOUSE + MAIN), "lang.import_content", NEAR, 4, 7),
        (changed(tasks=TASKS + "\ntask build { }"), "lang.import_collision", DEEP, 3, 6),
        (changed(tasks='IMPORT "tasks.spak"'), "lang.import_cycle", DEEP, 1, 8),
        (changed(tasks="TASK report { GOAL }"), "lang.syntax", DEEP, 1, 20),
        (changed(tasks=TASKS.replace("[run]", "[rum]")), "lang.unknown_tool", DEEP, 1, 37),
        (changed(tasks=TASKS.replace("-> last", "-> lost")), "lang.unknown_task", DEEP, 1, 60),
        (changed(tasks=f"// {'x' * 262_000}"), "lang.too_large", "", 2, 3),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_its_file(files, code, file, line, column):
    assert (code, file, line, column) in told(files)
    assert len(told(files)) == 1
    for item in check(put(files).parsed, CATALOG):
        render(item, put(files).texts.get(item.file, MAIN), item.file)


def test_a_cycle_through_the_file_itself():
    files = {"main.spak": 'IMPORT "b.spak" task a { }', "b.spak": 'IMPORT "main.spak"'}
    (found,) = check(put(files).parsed, CATALOG)
    assert (found.code, found.file) == ("lang.import_cycle", "specs/b.spak")
    assert "main.spak -> b.spak -> main.spak" in found.message


def test_imports_have_a_depth():
    files = {f"{n}.spak": f'IMPORT "{n + 1}.spak"' for n in range(MAX_IMPORT_DEPTH + 3)}
    files["main.spak"] = 'IMPORT "0.spak" task a { }'
    assert [item[:2] for item in told(files)] == [("lang.import_depth", f"specs/{MAX_IMPORT_DEPTH - 1}.spak")]


def test_findings_after_the_imported_text_keep_their_place():
    files = changed(main=MAIN.replace("// after the agent", "task outside { }"))
    assert told(files) == [("lang.misplaced", "", 7, 1)]


def test_a_fix_is_one_of_the_file_that_it_mends():
    files = changed(tasks=TASKS.replace("-> last", "-> lsat"))
    (found,) = [item for item in check(put(files).parsed, CATALOG) if item.severity == "error"]
    ((start, end, text),) = found.fix
    assert files["shared/deeper/tasks.spak"][start:end] == "lsat"
    assert text == "last"


def test_a_spec_that_is_checked_without_its_files_says_so():
    (found,) = check(parse(MAIN), CATALOG)
    assert found.code == "lang.import_unresolved"
    for _ in range(2):
        with pytest.raises(SpecError):
            program.compile(parse(MAIN), CATALOG)


# ---- POLICY --------------------------------------------------------------------------------------------

POLICY = "AGENT A LEVEL 2 { POLICY %s START -> a TASK a { TOOLS [run] } }"


def test_a_policy_is_a_file_or_a_text():
    assert (
        put({"main.spak": POLICY % '"p/rules.mg"', "p/rules.mg": "permit(X) :- x(X)."}).policy
        == "permit(X) :- x(X)."
    )
    assert put({"main.spak": POLICY % '"""\n  a.\n  b.\n"""'}).policy == "  a.\n  b.\n".replace("  ", "")
    assert put({"main.spak": "task a { }"}).policy == ""


@pytest.mark.parametrize(
    ("name", "files", "code"),
    [
        ('"rules.mg"', {}, "lang.import_missing"),
        ('"../rules.mg"', {}, "lang.import_path"),
        ('"rules.mg"', {"rules.mg": "a\0"}, "lang.import_path"),
        ("5", {}, "lang.value"),
    ],
)
def test_a_policy_that_is_none(name, files, code):
    found = check(put({"main.spak": POLICY % name} | files).parsed, CATALOG)
    assert [item.code for item in found if item.severity == "error"] == [code]


# ---- on a disk -----------------------------------------------------------------------------------------


def test_files_are_read_beneath_the_folder_of_the_spec(tmp_path):
    (tmp_path / "out.spak").write_text("secret")
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.spak").write_text("task a { }")
    (folder / "near.spak").symlink_to("sub/a.spak")
    (folder / "far.spak").symlink_to("../out.spak")
    (folder / "round.spak").symlink_to("round.spak")
    os.mkfifo(folder / "pipe.spak")
    (folder / "long.spak").write_bytes(b"#" * 300_000)
    read = folder_reader(folder / "main.spak")
    assert read("sub/a.spak") == read("near.spak") == b"task a { }"
    assert read("none.spak") is None
    for name in ("far.spak", "round.spak", "pipe.spak", "long.spak", "sub", "sub/a.spak/x"):
        try:
            assert read(name) is None, name
        except Unreadable as error:
            assert str(error)
    with pytest.raises(Unreadable, match="leads out"):
        read("far.spak")


# ---- problems' files ---------------------------------------------------------------------------------------

MEASURES = """AGENT A LEVEL 5 {{
  START -> measure
  TASK measure {{ VALIDATOR CpuProfiler {{ problem: "{name}", binary: "k.so" }} }}
}}
"""


def _problems(name: str, files: dict[str, bytes]) -> Resolved:
    return resolve(parse(MEASURES.format(name=name), "main.spak"), files.get)


def test_a_problem_is_read_from_the_folder_of_the_spec() -> None:
    found = _problems("problems/own.py", {"problems/own.py": b"x = 1\n"})
    assert found.problems == {"problems/own.py": "x = 1\n"}
    assert not found.parsed.diagnostics
    assert _problems("softmax", {}).problems == {}


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("problems/own.py", None, "lang.import_missing"),
        ("../own.py", b"x", "lang.import_path"),
        ("/own.py", b"x", "lang.import_path"),
        ("own.py", b"\xff", "lang.import_path"),
        ("own.py", b"x" * 2_000_000, "lang.import_path"),
    ],
)
def test_a_problem_that_cannot_be_read(name: str, data: bytes | None, code: str) -> None:
    found = _problems(name, {} if data is None else {name: data})
    assert [item.code for item in found.parsed.diagnostics] == [code]
    assert not found.problems


def test_an_imported_task_names_its_problem_from_the_spec() -> None:
    main = 'AGENT A LEVEL 5 {\n  IMPORT "sub/tasks.spak"\n  START -> measure\n}\n'
    task = 'TASK measure { VALIDATOR CpuProfiler { problem: "problems/own.py", binary: "k.so" } }\n'
    files = {"sub/tasks.spak": task.encode(), "problems/own.py": b"x = 1\n"}
    found = resolve(parse(main, "main.spak"), files.get)
    assert found.problems == {"problems/own.py": "x = 1\n"}
