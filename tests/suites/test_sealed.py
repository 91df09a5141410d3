"""Sealed checks: on a copy, after the end, whatever the run left in their way."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sealed_kit import CHECK
from spak.evolve.suites import Case, Check, Right, judge
from spak.evolve.suites.folder import passes_before
from spak.evolve.suites.sealed import Bench, check, copy_plain, files, put_over
from spak.ports import MeasureCall, Measurement

pytestmark = pytest.mark.sandbox

TESTS = "from thing import double\n\ndef test_double():\n    assert double(2) == 4\n"
STEERED = (
    "import os, thing\n"
    "assert not os.path.exists('sub/conftest.py')\n"
    "print('held', open('pytest.ini').read())\n"
)


def test_a_right_run_passes_and_its_files_stay_as_they_are(case: Case, left: Path, bench: Bench) -> None:
    assert judge(case, "succeeded", (), left, bench).outcome == "pass"
    assert [path.name for path in left.iterdir()] == ["thing.py"]
    found = judge(case, "refused", ("run.watchdog",), left, bench)
    assert (found.outcome, found.why) == ("fail", "it was refused (run.watchdog), expected succeeded")
    assert judge(case, "waiting", (), left, bench).outcome == "void"


def test_a_wrong_run_fails_with_what_the_check_printed(case: Case, bench: Bench) -> None:
    assert case.workspace is not None
    found = judge(case, "succeeded", (), case.workspace, bench)
    assert found.outcome == "fail"
    assert "AssertionError" in found.why


def test_output_has_to_be_there_too(case: Case, left: Path, bench: Bench) -> None:
    (left / "thing.py").write_text("import os\nos._exit(0)\n")
    found = check(case, left, bench)
    assert [(item.ok, item.void) for item in found] == [(False, False)]
    assert "without 'held'" in found[0].why


def test_what_a_run_put_in_the_way_of_sealed_files_is_replaced(
    case: Case, left: Path, bench: Bench, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "check.py").write_text("print('held')")
    (left / "check.py").symlink_to(outside / "check.py")
    assert check(case, left, bench)[0].ok
    assert (outside / "check.py").read_text() == "print('held')"
    (left / "check.py").unlink()
    (left / "check.py").mkdir()
    assert check(case, left, bench)[0].ok


def test_sealed_files_go_through_no_link(tmp_path: Path) -> None:
    source, target, outside = tmp_path / "s", tmp_path / "t", tmp_path / "o"
    (source / "sub").mkdir(parents=True)
    (source / "sub/a").write_text("new")
    target.mkdir()
    outside.mkdir()
    (target / "sub").symlink_to(outside)
    put_over(source, target)
    assert list(outside.iterdir()) == []
    assert (target / "sub/a").read_text() == "new"


@pytest.mark.findings("A4")
@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("out.txt", "expected.txt"),  # dangling until the sealed files are there
        ("out.txt", "/ws/expected.txt"),
        ("out.txt", "/usr/../ws/expected.txt"),
        ("out.txt", "../proc/self/cwd/expected.txt"),
        ("out.txt", "/proc/self/cwd/expected.txt"),
        ("out.txt", "hop"),  # a link to the answers
        ("out.txt", "all/expected.txt"),  # `all` is a link to the workspace
        ("out.txt", "deep/answers"),  # `deep` is a link that a sealed folder replaces
    ],
)
def test_a_link_of_a_run_to_what_is_sealed_does_not_count(
    case: Case, left: Path, bench: Bench, name: str, goal: str
) -> None:
    assert case.sealed is not None
    (case.sealed / "expected.txt").write_text("7")
    (case.sealed / "deep").mkdir()
    (case.sealed / "deep/answers").write_text("7")
    (case.sealed / "check.py").write_text("assert open('out.txt').read() == '7'\nprint('held')\n")
    (left / "hop").symlink_to("expected.txt")
    (left / "all").symlink_to(".")
    (left / "deep").symlink_to("elsewhere")
    (left / "elsewhere").mkdir()
    (left / name).symlink_to(goal)
    (found,) = check(case, left, bench)
    assert not found.ok
    assert found.why.startswith("taken out, since these links lead to what is not the work: ")
    assert name in found.why.partition(";")[0]
    (left / name).unlink()
    (left / name).write_text("7")
    assert check(case, left, bench)[0].ok


READER = """
import ast, glob, os, sys
for folder in ("/ws", "/tmp", "/proc/%d/cwd" % os.getppid()):
    for path in glob.glob(f"{folder}/**/check.py", recursive=True):
        tree = ast.parse(open(path).read())
        table = next(ast.literal_eval(n.value) for n in ast.walk(tree) if isinstance(n, ast.Assign))
        print(table[sys.argv[1]])
"""
TABLE = """
import os, subprocess
CASES = {"2": "sealed-4", "3": "sealed-9"}
for given, want in CASES.items():
    command = [os.environ["SPAK_WORK"], "python3", "solution.py", given]
    done = subprocess.run(command, input="n", capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (want, "", 0), done
print("held")
"""
ENDS = """
import os, subprocess
def work(*words):
    done = subprocess.run([os.environ["SPAK_WORK"], *words], input=b"\\xff", capture_output=True)
    return done.returncode, done.stdout, done.stderr
assert work("sh", "-c", "cat; echo no >&2; exit 3") == (3, b"\\xff", b"no\\n")
assert work()[0] == 125
subprocess.Popen([os.environ["SPAK_WORK"], "sleep", "600"], stdin=subprocess.DEVNULL)
print("held", flush=True)
"""


@pytest.mark.findings("A4")
def test_work_that_a_check_runs_apart_sees_no_sealed_file(case: Case, left: Path, bench: Bench) -> None:
    assert case.sealed is not None
    (case.sealed / "check.py").write_text(TABLE)
    (left / "solution.py").write_text(READER)
    (found,) = check(case, left, bench)
    assert not found.ok
    assert "stdout=''" in found.why, "it found no check.py"
    (left / "solution.py").write_text("import sys\nprint(f'sealed-{int(sys.argv[1]) ** 2}')\n")
    assert [item.why for item in check(case, left, bench)] == [""]


@pytest.mark.findings("A4")
def test_work_apart_ends_as_it_does_and_with_its_check(case: Case, left: Path, bench: Bench) -> None:
    assert case.sealed is not None
    (case.sealed / "check.py").write_text(ENDS)
    assert [item.why for item in check(case, left, bench)] == [""]


@pytest.mark.findings("A4")
def test_links_within_the_work_to_the_system_and_of_the_case_stay(
    case: Case, left: Path, bench: Bench
) -> None:
    assert case.sealed is not None
    assert case.workspace is not None
    (case.sealed / "expected.txt").write_text("7")
    (case.sealed / "check.py").write_text(
        "import os\nassert open('one').read() == open('theirs').read() == '7'\n"
        "assert os.path.exists('alias')\nprint('held')\n"
    )
    (left / "data").write_text("7")
    (left / "one").symlink_to("data")
    (left / "alias").symlink_to("tool")
    (left / "tool").symlink_to("/usr/bin/env")
    for folder in (case.workspace, left):
        (folder / "theirs").symlink_to("expected.txt")
    assert [item.why for item in check(case, left, bench)] == [""]


@pytest.mark.findings("A4")
def test_settings_of_a_run_are_found_neither_at_home_nor_in_its_folders(
    case: Case, left: Path, bench: Bench
) -> None:
    assert case.sealed is not None
    (case.sealed / "check.py").write_text(
        "import os\nassert os.listdir(os.path.expanduser('~')) == []\n"
        "assert sorted(os.listdir()) == ['.cargo', '.toolrc', 'check.py', 'thing.py'], os.listdir()\n"
        "assert os.listdir('.cargo') == []\nprint('held')\n"
    )
    for name in (".npmrc", ".rspec", "ruff.toml", ".ruff.toml", ".toolrc"):
        (left / name).write_text("")
    (left / ".cargo").mkdir()
    (left / ".cargo/config.toml").write_text("")
    assert [item.why for item in check(case, left, bench)] == [""]


def test_a_file_that_steers_tests_counts_only_as_the_case_has_it(
    case: Case, left: Path, bench: Bench
) -> None:
    assert case.sealed is not None
    (case.sealed / "check.py").write_text(STEERED)
    assert case.workspace is not None
    (case.workspace / "pytest.ini").write_text("given")
    wanted = replace(case, right=Right(sealed=(replace(CHECK, output="held given"),)))
    (left / "sub").mkdir()
    (left / "sub/conftest.py").write_text("")
    (left / "pytest.ini").write_text("changed")
    assert [item.why for item in check(wanted, left, bench)] == [""]


def test_a_check_that_passes_before_a_run_is_named(case: Case, bench: Bench) -> None:
    assert passes_before(case, bench) is None
    easy = replace(case, right=Right(sealed=(Check(("true",)),)))
    found = passes_before(easy, bench)
    assert found is not None
    assert (found.code, "empty" in found.message) == ("suite.passes_before", True)
    assert (
        passes_before(replace(easy, right=replace(easy.right, passes_before="a smoke test")), bench) is None
    )
    assert case.workspace is not None
    (case.workspace / "thing.py").write_text("def double(n):\n    return n + n\n")
    found = passes_before(case, bench)
    assert found is not None
    assert "begins with" in found.message


def test_files_are_compared_by_content_and_links_are_none(case: Case, left: Path) -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    (left / "a").write_bytes(b"x")
    (left / "link").symlink_to("a")
    wanted = replace(case, right=Right(files={"a": digest, "link": digest, "gone": None, "thing.py": None}))
    assert {item.name: item.ok for item in files(wanted, left)} == {
        "file a": True, "file link": False, "file gone": True, "file thing.py": False,
    }  # fmt: skip


def test_a_validator_judges_a_copy_and_one_that_is_not_there_is_void(
    case: Case, left: Path, bench: Bench
) -> None:
    (left / "test_thing.py").write_text(TESTS)
    wanted = replace(case, right=Right(validator={"name": "PyTest", "options": {"paths": ["test_thing.py"]}}))
    from spak.validators import VALIDATORS

    full = replace(bench, validators={"PyTest": VALIDATORS["PyTest"]()})
    assert judge(wanted, "succeeded", (), left, full).outcome == "pass"
    (left / "thing.py").write_text("def double(n):\n    return n\n")
    assert judge(wanted, "succeeded", (), left, full).outcome == "fail"
    assert judge(wanted, "succeeded", (), left, bench).outcome == "void"


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("problems/own.py", {"problems/own.py": "x = 1\n"}),
        ("problems/other.py", {}),
        ("../case.json.py", {}),
        ("softmax", {}),
    ],
)
def test_a_validator_gets_its_problem_from_the_sealed_files(
    case: Case, left: Path, bench: Bench, name: str, seen: dict[str, str]
) -> None:
    """An agent that knew the problem's file could write to it: it lies where no run has it."""
    assert case.sealed is not None
    (case.sealed / "problems").mkdir()
    (case.sealed / "problems/own.py").write_text("x = 1\n")
    (case.sealed.parent / "case.json.py").write_text("x = 2\n")
    calls: list[MeasureCall] = []

    class Noting:
        def measure(self, call: MeasureCall) -> Measurement:
            calls.append(call)
            return Measurement("checked", checks=({"name": "a", "ok": True, "code": "", "detail": ""},))

    wanted = replace(case, right=Right(validator={"name": "CpuProfiler", "options": {"problem": name}}))
    full = replace(bench, validators={"CpuProfiler": Noting()})  # type: ignore[dict-item]
    assert judge(wanted, "succeeded", (), left, full).outcome == "pass"
    assert calls[0].problems == seen


def test_pipes_are_not_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    source.mkdir()
    target.mkdir()
    os.mkfifo(source / "pipe")
    (source / "a").write_text("a")
    copy_plain(source, target)
    assert [path.name for path in target.iterdir()] == ["a"]
