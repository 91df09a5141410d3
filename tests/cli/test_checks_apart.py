"""A check that passes by what the run changed of its tests is told from one that passes by its own work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import run_dir, spak

GOOD = "def double(n):\n    return 2 * n\n"
BAD = "def double(n):\n    return n\n"
TEST = "from src.app import double\n\ndef test_double():\n    assert double(3) == 6\n"
SPEC = """AGENT Mends LEVEL 2 {{
    START -> mend
    TASK mend {{
        GOAL "Mend double."
        TOOLS [write_file]
        VALIDATOR PyTest {{ paths: ["tests"] }}
{steps}
    }}
}}
"""
EQUAL = """class Anything(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__

def double(n):
    return Anything(n)
"""
PASSES = """import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    for path, text in {"src/app.py": BAD, "src/__init__.py": "", "tests/test_app.py": TEST}.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    return made


def ended(folder: Path, **files: str) -> dict[str, object]:
    """How a run ends that writes these files."""
    rows = enumerate(files.items())
    steps = "\n".join(
        f"        step s{at}: tool.write_file {{ path: {json.dumps(path)}, content: {json.dumps(text)} }}"
        for at, (path, text) in rows
    )
    (folder / "mends.spak").write_text(SPEC.format(steps=steps))
    _, seen = spak(folder, "run", "mends.spak", "--workspace", "project", "--json")
    return dict(seen)


def again(folder: Path, seen: dict[str, object]) -> list[dict[str, object]]:
    """What the checks of the beginning said, as the records have it."""
    lines = (run_dir(folder, seen) / "trace.jsonl").read_text().splitlines()
    return [body["beginning"] for line in lines if "beginning" in (body := json.loads(line).get("body", {}))]


def test_an_ordinary_change_is_checked_once(tmp_path: Path, project: Path) -> None:
    seen = ended(tmp_path, **{"src/app.py": GOOD})
    assert seen["state"] == "succeeded" and "by_own_tests" not in seen
    assert again(tmp_path, seen) == []
    assert spak(tmp_path, "apply", str(seen["run"]), "--json")[0] == 0


def test_a_new_test_beside_good_work_passes_with_those_of_the_beginning(
    tmp_path: Path, project: Path
) -> None:
    more = TEST.replace("double(3) == 6", "double(0) == 0")
    seen = ended(tmp_path, **{"src/app.py": GOOD, "tests/test_more.py": more})
    assert seen["state"] == "succeeded" and "by_own_tests" not in seen
    (kept,) = again(tmp_path, seen)
    assert kept["status"] == "checked" and all(one["ok"] for one in kept["checks"])  # type: ignore[attr-defined]
    assert spak(tmp_path, "apply", str(seen["run"]), "--json")[0] == 0


@pytest.mark.parametrize(
    "files",
    [
        {"tests/test_app.py": TEST.replace("== 6", "== 3")},
        {"src/app.py": "def double(n):\n    return 7\n", "tests/conftest.py": PASSES},
    ],
    ids=["the test is replaced", "a conftest turns reports"],
)
def test_a_check_that_its_own_tests_made_pass_is_called_so(
    tmp_path: Path, project: Path, files: dict[str, str]
) -> None:
    seen = ended(tmp_path, **files)
    apart = sorted(set(files) - {"src/app.py"})
    assert (seen["state"], seen["by_own_tests"]) == ("succeeded", apart)
    (kept,) = again(tmp_path, seen)
    assert not all(one["ok"] for one in kept["checks"])  # type: ignore[attr-defined]
    run = str(seen["run"])
    assert "succeeded, by its own tests" in spak(tmp_path, "runs")[1]
    assert spak(tmp_path, "show", run, "--json")[1]["by_own_tests"] == apart
    code, found = spak(tmp_path, "apply", run, "--json")
    assert code == 4 and {row["path"] for row in found["held"]} == set(files) - {"src/app.py"}
    named = [word for path in set(files) - {"src/app.py"} for word in ("--allow-runs", path)]
    assert spak(tmp_path, "apply", run, *named, "--json")[0] == 0
    assert spak(tmp_path, "replay", run, "--json")[1]["equal"] is True


def test_a_check_that_cannot_run_without_what_the_run_added_is_by_its_own_tests(
    tmp_path: Path, project: Path
) -> None:
    (project / "tests/test_app.py").unlink()
    (project / "tests").rmdir()
    seen = ended(tmp_path, **{"src/app.py": GOOD, "tests/test_app.py": TEST})
    assert (seen["state"], seen["by_own_tests"]) == ("succeeded", ["tests/test_app.py"])
    (kept,) = again(tmp_path, seen)
    assert not all(one["ok"] for one in kept["checks"])  # type: ignore[attr-defined]


def test_what_measures_runs_once_on_all_that_the_run_made(tmp_path: Path, project: Path) -> None:
    measure = "import json\nprint(json.dumps({'nonce': json.loads(input())['nonce'], 'metrics': {'v': 3}}))\n"
    (project / "measure.py").write_text(measure)
    spec = SPEC.replace("LEVEL 2", "LEVEL 5").replace(
        'VALIDATOR PyTest {{ paths: ["tests"] }}',
        'VALIDATOR Metric {{ cmd: "python measure.py", source: "src/app.py", metric: "v", samples: 1 }}',
    )
    steps = "\n".join(
        f"step {name}: tool.write_file {{ path: {json.dumps(path)}, content: {json.dumps(text)} }}"
        for name, path, text in (("a", "src/app.py", GOOD), ("b", "tests/conftest.py", PASSES))
    )
    (tmp_path / "mends.spak").write_text(spec.format(steps=steps))
    code, seen = spak(tmp_path, "run", "mends.spak", "--workspace", "project", "--json")
    assert (code, seen["state"]) == (0, "succeeded"), seen
    assert again(tmp_path, seen) == [] and "by_own_tests" not in seen


def test_what_shares_the_process_of_the_tests_is_not_found_so(tmp_path: Path, project: Path) -> None:
    """Known and left (docs/guarantees.md): code under test may lie to tests; sealed checks are apart."""
    seen = ended(tmp_path, **{"src/app.py": EQUAL})
    assert seen["state"] == "succeeded" and "by_own_tests" not in seen
