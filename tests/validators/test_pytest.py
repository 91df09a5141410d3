from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spak.ports import Measurement, Toolchain
from spak.validators.pytest_ import MAX_CHECKS, PyTest, _before, _report
from validator_calls import call, codes, toolchain, write

pytestmark = pytest.mark.sandbox

GOOD = "def test_a():\n    assert True\n\ndef test_b():\n    assert 1 + 1 == 2\n"


def measure(workspace: Path, **options: Any) -> Measurement:
    return PyTest().measure(call(workspace, {"timeout_s": 60, **options}))


def test_all_pass(tmp_path: Path) -> None:
    result = measure(write(tmp_path, test_good__py=GOOD))
    assert (result.status, codes(result)) == ("checked", {})
    assert result.metrics == {
        "passed": 2, "failed": 0, "errors": 0, "skipped": 0, "collected": 2, "deselected": 0,
    }  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test_good.py"]


def test_every_kind_of_outcome(tmp_path: Path) -> None:
    text = """
import pytest
import helper

@pytest.fixture
def broken():
    raise ValueError("no fixture")

def test_ok(): pass
def test_bad(): assert helper.two() == 3
def test_error(broken): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
"""
    result = measure(write(tmp_path, test_mix__py=text, helper__py="def two(): return 2\n"))
    assert codes(result) == {"test:test_mix.py::test_bad": "failed", "test:test_mix.py::test_error": "error"}
    counts = {name: result.metrics[name] for name in ("passed", "failed", "errors", "skipped", "collected")}
    assert counts == {"passed": 1, "failed": 1, "errors": 1, "skipped": 2, "collected": 5}
    first = result.diagnostics[0]
    assert (first["file"], first["line"], first["code"]) == ("test_mix.py", 10, "failed")
    assert first["message"].startswith("assert 2 == 3")


def test_nothing_collected(tmp_path: Path) -> None:
    assert codes(measure(tmp_path)) == {"collected": "none_collected"}
    write(tmp_path, test_good__py=GOOD)
    assert codes(measure(tmp_path, keyword="absent")) == {"collected": "none_collected"}
    assert codes(measure(tmp_path, paths=["missing.py"])) == {"collected": "none_collected"}


def test_fewer_tests_than_there_must_be(tmp_path: Path) -> None:
    result = measure(write(tmp_path, test_good__py=GOOD), min_tests=3)
    assert codes(result) == {"passed": "too_few"}


def test_skipped_tests_have_not_passed(tmp_path: Path) -> None:
    text = "import pytest\npytestmark = pytest.mark.skip\n" + GOOD
    result = measure(write(tmp_path, test_skipped__py=text))
    assert (codes(result), result.metrics["skipped"]) == ({"passed": "too_few"}, 2)
    write(tmp_path, test_skipped__py="import pytest\npytest.skip('no', allow_module_level=True)\n")
    assert codes(measure(tmp_path)) == {"collected": "none_collected"}


def test_a_module_that_does_not_import(tmp_path: Path) -> None:
    write(tmp_path, test_good__py=GOOD, test_broken__py="import nothing_of_the_kind\n")
    result = measure(tmp_path)
    assert codes(result) == {"collect:test_broken.py": "collect_error"}
    assert result.metrics["errors"] == 1


def test_more_failures_than_checks(tmp_path: Path) -> None:
    text = f"import pytest\n@pytest.mark.parametrize('n', range({MAX_CHECKS + 7}))\ndef test_n(n): assert 0\n"
    result = measure(write(tmp_path, test_many__py=text))
    failed = codes(result)
    assert failed.pop("more_failures") == "more_failures"
    assert list(failed) == sorted(failed)
    assert len(failed) == MAX_CHECKS
    assert result.metrics["failed"] == MAX_CHECKS + 7


FORGERIES = {
    "exits at import": "import os; os._exit(0)\n",
    "exits in a test": "import os\ndef test_a(): os._exit(0)\n",
    "exits when pytest ends": "import atexit, os\natexit.register(os._exit, 0)\ndef test_a(): assert 0\n",
    "system exit at import": "import sys; sys.exit(0)\n",
    "ends the session": "import pytest\npytest.exit('all well', returncode=0)\n",
    "prints a report early": (
        "import os\n"
        'line = b\'\\n\' + b\'0\' * 64 + b\' {"exit": 0, "collected": 9, "counts": {"passed": 9}}\\n\'\n'
        "for fd in range(1, 9):\n"
        "    try: os.write(fd, line)\n"
        "    except OSError: pass\n"
        "os._exit(0)\n"
    ),
    "forks a second reporter": "import os\ndef test_a():\n    os.fork()\n    assert 0\n",
    "dies by a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n",
    "closes every descriptor": "import os\nos.closerange(0, 64)\nos._exit(0)\n",
}


@pytest.mark.parametrize("name", sorted(FORGERIES))
def test_a_process_that_ends_itself_has_not_passed(tmp_path: Path, name: str) -> None:
    write(tmp_path, test_forged__py=FORGERIES[name])
    result = measure(tmp_path)
    assert any(not item["ok"] for item in result.checks), result.checks


def test_an_early_exit_is_called_incomplete(tmp_path: Path) -> None:
    result = measure(write(tmp_path, test_forged__py=FORGERIES["exits at import"]))
    assert codes(result) == {"finished": "incomplete"}


def test_modules_of_the_workspace_do_not_shadow_pytest(tmp_path: Path) -> None:
    shadow = "import os\nos._exit(0)\n"
    write(tmp_path, pytest__py=shadow, json__py=shadow, sitecustomize__py=shadow, test_good__py=GOOD)
    assert codes(measure(tmp_path)) == {}


def test_options_of_the_project_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, pytest__ini="[pytest]\naddopts = -k nothing -p absent_plugin\n", test_good__py=GOOD)
    result = measure(tmp_path)
    assert (codes(result), result.metrics["collected"]) == ({}, 2)


def test_conftest_can_be_left_out(tmp_path: Path) -> None:
    conftest = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
    write(tmp_path, conftest__py=conftest, test_bad__py="def test_bad(): assert 0\n")
    assert codes(measure(tmp_path)) == {}  # the forgery that docs/validators.md warns of
    assert codes(measure(tmp_path, conftest=False)) == {"test:test_bad.py::test_bad": "failed"}


def test_deselected_tests_are_counted(tmp_path: Path) -> None:
    result = measure(write(tmp_path, test_good__py=GOOD), keyword="test_a")
    assert (codes(result), result.metrics["deselected"], result.metrics["collected"]) == ({}, 1, 1)


def test_stop_at_the_first_failure(tmp_path: Path) -> None:
    text = "def test_a(): assert 0\ndef test_b(): pass\n"
    assert codes(measure(write(tmp_path, test_x__py=text), args=["-x"])) == {
        "test:test_x.py::test_a": "failed"
    }


def test_time_limit(tmp_path: Path) -> None:
    write(tmp_path, test_slow__py="import time\ndef test_slow(): time.sleep(60)\n")
    result = measure(tmp_path, timeout_s=3)
    assert (result.status, codes(result)) == ("timeout", {"ran": "timeout"})


def test_no_python_in_the_toolchain(tmp_path: Path) -> None:
    result = PyTest().measure(call(tmp_path, {}, toolchain=Toolchain()))
    assert (result.status, codes(result)) == ("unavailable", {"toolchain": "toolchain"})


def test_a_python_without_pytest_is_incomplete(tmp_path: Path) -> None:
    bare = Toolchain(programs={"python": "/usr/bin/true"}, binds=toolchain().binds)
    result = PyTest().measure(call(tmp_path, {}, toolchain=bare))
    assert codes(result) == {"finished": "incomplete"}


def test_a_report_needs_its_nonce_once() -> None:
    nonce = "a" * 64
    line = f"\n{nonce} {{}}\n".encode()
    assert _report(b"dots" + line, nonce) == {}
    assert _report(line + line, nonce) is None
    assert _report(line.replace(b"a", b"b"), nonce) is None
    assert _report(f"\n{nonce} [1]\n".encode(), nonce) is None
    assert _report(f"\n{nonce} {{".encode(), nonce) is None


def test_what_pytest_says_is_heard_and_our_report_is_not(tmp_path: Path) -> None:
    pieces: list[bytes] = []
    write(tmp_path, test_good__py=GOOD)
    seen = PyTest().measure(call(tmp_path, {}, heard=lambda number, chunk: pieces.append(chunk)))
    assert seen.status == "checked" and not codes(seen)
    assert b"2 passed" in b"".join(pieces) and b"collected" not in b"".join(pieces)


def test_our_report_is_not_heard_wherever_the_chunks_are_cut() -> None:
    nonce, said = b"5f" * 32, b"2 passed 5 5f\n"
    whole = said + nonce + b"{}" + nonce
    for one in range(len(whole)):
        for two in (one, one + 1, one + 40):
            pieces: list[bytes] = []
            hear = _before(nonce, lambda number, chunk, pieces=pieces: pieces.append(chunk))
            assert hear is not None
            for chunk in (whole[:one], whole[one:two], whole[two:]):
                hear(1, chunk)
            assert b"".join(pieces) == said
