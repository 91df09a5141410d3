"""The guards in runs: what is committed was checked; what untested code rests on is not changed unasked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done

pytestmark = pytest.mark.sandbox

Spak = Callable[..., Done]

BUILD = """
AGENT Build LEVEL 4 {
  CONFIG { BUDGET { steps: 50 } APPROVALS_HERE }
  START -> edit
  TASK edit {
    step write: tool.write_file { path: "slug.py" content: "def slug(text):\\n    return text.SOME()\\n" }
    VALIDATOR_HERE
    NEXT { success -> keep, fail -> keep }
  }
  TASK keep {
    step commit: tool.git_commit { message: "Lower it" author: "Alice <alice@example.org>" time: 1700000000 }
  }
}
"""
CHECKED = "VALIDATOR PyTest { }"

REFACTOR = """
AGENT Refactor LEVEL 2 {
  CONFIG { APPROVALS_HERE }
  POLICY \"\"\"guard(/refactor).\"\"\"
  START -> t
  TASK t { step edit: tool.write_file { path: "core.py" content: "X = 2\\n" } }
}
"""


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    flags = ("-c", "safe.directory=*", "-c", "user.name=A", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *flags, *words], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def spak(cli: Cli, tmp_path: Path) -> Spak:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    (tmp_path / "spak.toml").write_text(cli("keys", "make", "alice", env=env).out)
    return lambda *args: cli(*args, "--json", env=env)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "slug.py").write_text("def slug(text):\n    return text\n")
    (folder / "test_slug.py").write_text(
        "from slug import slug\n\ndef test_slug():\n    assert slug('A') == 'a'\n"
    )
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def build(
    spak: Spak, repo: Path, *, method: str = "lower", check: str = CHECKED, approvals: str = ""
) -> Done:
    spec = repo.parent / "build.spak"
    text = BUILD.replace("SOME", method).replace("VALIDATOR_HERE", check).replace("APPROVALS_HERE", approvals)
    spec.write_text(text)
    return spak("run", "build.spak", "--workspace", str(repo))


def place(runs: Path, done: Done) -> Path:
    return runs / str(done.json["run"]) / "store/git"


def test_what_was_checked_is_committed(spak: Spak, repo: Path, runs: Path) -> None:
    done = build(spak, repo)
    assert done.code == 0, done.err
    assert git(place(runs, done), "log", "spak", "--format=%an|%s") == "Alice|Lower it\nA|first"
    assert git(repo, "log", "--format=%s") == "first", "the original is as it was"
    assert spak("replay", done.json["run"]).json["equal"]


def test_code_that_failed_its_check_is_not_committed(spak: Spak, repo: Path, runs: Path) -> None:
    for approvals in ("", "APPROVALS ask"):
        done = build(spak, repo, method="upper", approvals=approvals)
        assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])
        assert (
            ": fix it before a commit" in done.json["refusal"]["cause"] and done.json["refusal"]["knob"] == ""
        )
        assert git(place(runs, done), "log", "--all", "--format=%s") == "first"


def test_code_that_nobody_checked_is_committed_only_if_somebody_signs(
    spak: Spak, repo: Path, runs: Path
) -> None:
    done = build(spak, repo, check="")
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])
    assert "no check ran" in done.json["refusal"]["cause"] and done.json["refusal"]["knob"] == ""
    done = build(spak, repo, check="", approvals="APPROVALS ask")
    assert done.code == 4 and done.json["waiting"]["name"] == "git_commit"
    done = spak("approve", done.json["run"])
    assert done.code == 0, done.err
    assert git(place(runs, done), "log", "-1", "--format=%s", "spak") == "Lower it"


def refactor(
    spak: Spak, folder: Path, files: dict[str, str], approvals: str = "", guard: str = "/refactor"
) -> Any:
    spec = REFACTOR.replace("APPROVALS_HERE", approvals).replace("/refactor", guard)
    (folder / "refactor.spak").write_text(spec)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    for name, text in files.items():
        (work / name).write_text(text)
    return spak("run", "refactor.spak", "--workspace", str(work))


CODE = {"core.py": "X = 1\n", "between.py": "import core\n", "leaf.py": "import between\n"}
TESTS = {"test_all.py": "import leaf, between\n"}


def test_what_untested_code_rests_on_is_not_changed(spak: Spak, tmp_path: Path) -> None:
    done = refactor(spak, tmp_path, {**CODE, "test_between.py": "import between\n"})
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])
    assert "no test reaches what rests on it: leaf.py" in done.json["refusal"]["cause"]


def test_what_tests_reach_is_changed(spak: Spak, tmp_path: Path, runs: Path) -> None:
    done = refactor(spak, tmp_path, {**CODE, **TESTS})
    assert done.code == 0, done.err
    assert (runs / str(done.json["run"]) / "workspace/core.py").read_text() == "X = 2\n"
    assert spak("replay", done.json["run"]).json["equal"]


def test_the_risk_is_taken_by_whoever_signs(spak: Spak, tmp_path: Path, runs: Path) -> None:
    done = refactor(spak, tmp_path, CODE, "APPROVALS ask")
    assert done.code == 4, done.err
    done = spak("approve", done.json["run"])
    assert done.code == 0 and (runs / str(done.json["run"]) / "workspace/core.py").read_text() == "X = 2\n"
    assert spak("replay", done.json["run"]).json["equal"]


def test_a_workspace_that_the_guard_can_not_read_is_not_changed(spak: Spak, tmp_path: Path) -> None:
    done = refactor(spak, tmp_path, {**CODE, "big.py": "#" * (600 << 10)})
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["world.too_large"])


SYMBOLS = {
    "core.py": "X = 1\n\ndef rate():\n    return X\n",
    "shop.py": "from core import rate\n\ndef price():\n    return rate()\n\n"
    "def list_price():\n    return rate()\n",
    "test_shop.py": "from shop import price\n\ndef test_price():\n    assert price()\n",
}


def test_what_an_untested_function_depends_on_is_not_changed(spak: Spak, tmp_path: Path) -> None:
    done = refactor(spak, tmp_path, SYMBOLS, guard="/symbols")
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])
    assert "no test reaches what depends on it: py:shop.py#list_price" in done.json["refusal"]["cause"]


def test_nothing_is_changed_where_the_model_of_the_code_can_not_be_made(spak: Spak, tmp_path: Path) -> None:
    tmp_path.joinpath("work", *["deep"] * 70).mkdir(parents=True)
    done = refactor(spak, tmp_path, {**SYMBOLS, "test_all.py": "import shop\n"}, guard="/symbols")
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["world.too_large"])


def test_tests_are_written_first_and_the_guard_permits_the_change(
    spak: Spak, tmp_path: Path, runs: Path
) -> None:
    refused = refactor(spak, tmp_path, SYMBOLS, guard="/symbols")
    assert "write the tests first: spak ask generate_test core.py" in refused.json["refusal"]["cause"]
    done = spak("ask", "generate_test", "core.py", "--workspace", str(tmp_path / "work"))
    assert (done.code, done.json["strategy"], done.json["state"]) == (0, "first_tests", "succeeded")
    assert "assert shop.list_price() == 1" in done.json["first_tests"]["patch"]
    assert "shop.price" not in done.json["first_tests"]["patch"], "a test reaches it already"
    assert spak("replay", done.json["run"]).json["equal"]
    assert spak("apply", done.json["run"], "--allow-runs", "test_pinned_core.py").code == 0
    assert refactor(spak, tmp_path, {}, guard="/symbols").code == 0


def test_what_the_model_answered_is_in_the_record_and_a_replay_needs_no_model(
    spak: Spak, tmp_path: Path, runs: Path
) -> None:
    test = SYMBOLS["test_shop.py"].replace("price", "list_price").replace("test_list", "test")
    done = refactor(spak, tmp_path, {**SYMBOLS, "test_all.py": test}, guard="/symbols")
    assert done.code == 0, done.err
    folder = runs / str(done.json["run"])
    assert (folder / "workspace/core.py").read_text() == "X = 2\n"
    (folder / "code.sqlite").unlink()
    assert spak("replay", done.json["run"]).json["equal"]
    assert not (folder / "code.sqlite").exists()
