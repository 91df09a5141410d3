"""Sealed checks: on a copy, after the end, whatever the run left in their way."""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spak import config
from spak.ports import Job, Limits, MeasureCall, Measurement, Outcome
from spak.ports.sandbox import Stream
from spak.sandbox import LAUNCHERS
from spak.suites import Case, Check, Right, judge
from spak.suites.folder import passes_before
from spak.suites.installed import _LOOK, installed
from spak.suites.sealed import Bench, check, copy_plain, files, put_over

pytestmark = pytest.mark.sandbox

TESTS = "from thing import double\n\ndef test_double():\n    assert double(2) == 4\n"
CHECK = Check(("python", "check.py"), output="held")
STEERED = (
    "import os, thing\n"
    "assert not os.path.exists('sub/conftest.py')\n"
    "print('held', open('pytest.ini').read())\n"
)
READS = "import thing\nassert thing.double(4) == 8\nprint('held')\n"


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(LAUNCHERS["restricted"](), toolchain=config.toolchain())


@pytest.fixture
def case(tmp_path: Path) -> Case:
    folder = tmp_path / "case"
    (folder / "workspace").mkdir(parents=True)
    (folder / "sealed").mkdir()
    (folder / "workspace/thing.py").write_text("def double(n):\n    return n\n")
    (folder / "sealed/check.py").write_text(READS)
    return Case("case", folder, right=Right(sealed=(CHECK,)))


@pytest.fixture
def left(tmp_path: Path) -> Path:
    place = tmp_path / "left"
    place.mkdir()
    (place / "thing.py").write_text("def double(n):\n    return 2 * n\n")
    return place


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


APART = (
    "import helper, subprocess, sys\n"
    "done = subprocess.run([sys.executable, 'work.py'], capture_output=True, text=True)\n"
    "assert helper.right(done.stdout), done.stdout\n"
    "print('held', 'fast')\n"
)
LIES = "import os\nprint('held fast', '1 passed', flush=True)\nos._exit(0)\n"


@pytest.mark.parametrize("way", ["module", "package", "compiled", "link", "cache", "runner"])
def test_no_file_of_a_run_is_imported_for_a_module_of_the_check(
    case: Case, left: Path, bench: Bench, tmp_path: Path, way: str
) -> None:
    """A check that starts the work as a process runs none of the work's code in its own."""
    assert case.sealed is not None
    (case.sealed / "tests").mkdir()
    (case.sealed / "tests/test_it.py").write_text("def test_it():\n    assert open('work.py').read() == ''\n")
    (case.sealed / "check.py").write_text(APART)
    (case.sealed / "helper.py").write_text("def right(text):\n    return text == '42\\n'\n")
    (left / "work.py").write_text("print(41)\n")
    lies = tmp_path / "lies.py"
    lies.write_text(LIES)
    if way in ("package", "link"):
        folder = left / ("subprocess" if way == "package" else "aside")
        folder.mkdir()
        (folder / "__init__.py").write_text(LIES)
    match way:
        case "module":
            (left / "subprocess.py").write_text(LIES)
        case "compiled":
            py_compile.compile(str(lies), str(left / "subprocess.pyc"))
        case "link":
            (left / "subprocess").symlink_to("aside")
        case "cache":
            (left / "__pycache__").mkdir()
            cached = left / "__pycache__" / f"helper.{sys.implementation.cache_tag}.pyc"
            unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(lies), str(cached), invalidation_mode=unchecked)
        case "runner":
            (left / "pytest.py").write_text(LIES)
            (left / "tests").mkdir()
            (left / "tests/json.py").write_text(LIES)
    commands = (
        Check(("python", "check.py"), output="held fast"),
        Check(("python", "-m", "pytest", "-q", "tests"), output="1 passed"),
    )
    found = check(replace(case, right=Right(sealed=commands)), left, bench)
    assert [(item.ok, item.void) for item in found] == [(False, False)] * 2
    assert "AssertionError: 41" in found[0].why
    (left / "work.py").write_text("print(42)\n")
    assert check(replace(case, right=Right(sealed=commands[:1])), left, bench)[0].ok


def test_a_file_with_such_a_name_that_the_case_brought_is_the_work_of_the_run(
    case: Case, left: Path, bench: Bench
) -> None:
    assert case.workspace is not None and case.sealed is not None
    (case.workspace / "queue.py").write_text("def double(n):\n    return n\n")
    (left / "queue.py").write_text("def double(n):\n    return 2 * n\n")
    (case.sealed / "check.py").write_text(READS.replace("thing", "queue"))
    assert check(case, left, bench)[0].ok


USER = f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
PLUGIN = "[pytest11]\nlies = lies\n"
APART_ALONE = (
    "import subprocess, sys\n"
    "command = [sys.executable, '-c', 'raise SystemExit(1)']\n"
    "subprocess.run(command, env={'PYTHONPATH': '.'}, check=True)\n"
)


@pytest.mark.parametrize(
    ("files", "cmd"),
    [
        (
            {f"{USER}/a.pth": "import os; os.write(1, b'held 1 passed'); os._exit(0)\n"},
            ("python", "check.py"),
        ),
        ({"sitecustomize/__init__.py": LIES}, ("python", "sub/apart.py")),
        ({"sub/helper/__init__.py": LIES}, ("python", "sub/check.py")),
        ({"lies-1.dist-info/entry_points.txt": PLUGIN, "lies.py": LIES}, ("python", "-m", "pytest", "tests")),
        ({"tests/__init__.py": LIES}, ("python", "-m", "pytest", "tests")),
        ({"xdist.py": LIES}, ("python", "-m", "pytest", "tests")),
        ({"execnet/__init__.py": LIES}, ("python", "-m", "pytest", "-n", "1", "tests")),
        ({"ruff.py": LIES}, ("python", "-m", "ruff", "check", "tests")),
        ({"sub/orjson.py": LIES}, ("python", "sub/reads.py")),
    ],
    ids=[
        *("user_site", "sitecustomize", "helper", "plug_in", "package_of_tests", "installed_plug_in"),
        *("library_of_a_plug_in", "module_that_runs", "library_of_the_check"),
    ],
)
def test_nothing_of_a_run_is_imported_before_the_check(
    case: Case, left: Path, bench: Bench, files: dict[str, str], cmd: tuple[str, ...]
) -> None:
    assert case.sealed is not None
    held = {
        "check.py": "raise SystemExit(1)\n",
        "sub/helper.py": "",
        "sub/check.py": "import helper\nraise SystemExit(1)\n",
        "sub/apart.py": APART_ALONE,
        "sub/reads.py": "from orjson import loads\nraise SystemExit(loads('1'))\n",
        "tests/test_it.py": "def test_it():\n    assert undefined\n",
    }
    for folder, texts in ((left, files), (case.sealed, held)):
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    (left / f"{USER}").mkdir(parents=True, exist_ok=True)
    base = replace(
        bench.toolchain, programs={"python": str(getattr(sys, "_base_executable", sys.executable))}
    )
    used = replace(bench, toolchain=base) if cmd == ("python", "check.py") else bench
    found = check(replace(case, right=Right(sealed=(Check(cmd),))), left, used)
    assert [(item.ok, item.void) for item in found] == [(False, False)]
    assert "expected exit 0" in found[0].why


def test_a_module_with_the_name_of_what_no_check_uses_is_the_work_of_the_run(
    case: Case, left: Path, bench: Bench
) -> None:
    """Of what is installed beside the check's own tools nothing is known: `redis.py` may be the task."""
    assert case.sealed is not None
    for number in range(1000):  # names of 250 signs, one of them in no encoding
        (left / f"{number:04}{'x' * 243}.py").touch()
    (left / os.fsdecode(b"\xff.py")).touch()
    (left / "redis.py").write_text("print('the work')\n")
    (left / "xdist.py").write_text("raise SystemExit(1)\n")
    reads = (
        "import subprocess, sys\nmade = subprocess.run([sys.executable, 'redis.py'], capture_output=True)\n"
    )
    gone = "import os\nassert not os.path.exists('xdist.py')\n"
    (case.sealed / "check.py").write_text(gone + reads + "assert b'the work' in made.stdout\nprint('held')\n")
    assert [item.why for item in check(case, left, bench)] == [""]


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("timeout"),
        Outcome("crash", 139),
        Outcome("exited", 1),
        Outcome("exited", 0),
        Outcome("exited", 0, Stream(b'["red')),
    ],
)
def test_no_module_is_taken_for_the_work_where_python_did_not_get_to_say(outcome: Outcome) -> None:
    class Busy:
        def run(self, job: Job) -> Outcome:
            return outcome

    toolchain, names = config.toolchain(), {"redis", "thing"}
    assert installed(names, (CHECK,), None, Busy(), Limits(), toolchain) == names
    assert installed(set(), (CHECK,), None, Busy(), Limits(), toolchain) == frozenset()


def test_a_package_that_cannot_be_read_may_give_any_module(tmp_path: Path) -> None:
    broken = tmp_path / "broken-1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Name: broken\n")
    (broken / "RECORD").write_bytes(b"\n\xff\n,,\n")
    asked = subprocess.run(
        [sys.executable, "-c", _LOOK],
        input=json.dumps([["json", "no_such_module"], []]),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(asked.stdout) == ["json"]


@pytest.mark.parametrize(
    ("cmd", "expected"),
    [
        (("sh", "-c", "python3 -m pytest && python -m ruff check"), {"python3", sys.executable}),
        (("/opt/bin/python3.12", "check.py"), {"/opt/bin/python3.12"}),
        (("pytest", "-q"), {sys.executable}),
    ],
)
def test_every_python_that_a_check_names_is_asked(cmd: tuple[str, ...], expected: set[str]) -> None:
    asked = set()

    class Noting:
        def run(self, job: Job) -> Outcome:
            asked.add(job.argv[0])
            return Outcome("exited", 127)

    assert installed({"a"}, (Check(cmd),), None, Noting(), Limits(), config.toolchain()) == frozenset()
    assert asked == expected


def test_data_of_a_run_may_have_the_name_of_a_module(case: Case, left: Path, bench: Bench) -> None:
    assert case.sealed is not None
    names = ("statistics.json", "calendar.csv", "token", "check.txt")
    for name in names:
        (left / name).write_text("work")
    (left / "html").mkdir()
    (left / "html/index.html").write_text("work")
    reads = f"assert {{open(name).read() for name in {(*names, 'html/index.html')}}} == {{'work'}}\n"
    (case.sealed / "check.py").write_text(reads + "print('held')\n")
    assert [item.why for item in check(case, left, bench)] == [""]


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
