"""Sealed checks: nothing that a run left is imported in the place of what a check uses."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sealed_kit import CHECK, READS
from spak import config
from spak.evolve.suites import Case, Check, Right
from spak.evolve.suites.installed import _LOOK, installed
from spak.evolve.suites.sealed import Bench, check
from spak.ports import Job, Limits, Outcome
from spak.ports.sandbox import Stream

pytestmark = pytest.mark.sandbox

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
