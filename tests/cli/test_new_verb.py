"""`spak new`: each template runs as it is written; and `spak explain`, for what an error code means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_calls import EXAMPLES, Cli
from spak.templates import TEMPLATES

PATCH = """\
--- a/prices.py
+++ b/prices.py
@@ -4,4 +4,4 @@
 def total(items: list[tuple[int, int]], discount: int = 0) -> int:
     \"\"\"What a basket of (price, pieces) costs, less a discount in percent, rounded to whole cents.\"\"\"
     whole = sum(price * pieces for price, pieces in items)
-    return whole - whole * discount
+    return round(whole * (100 - discount) / 100)
"""


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_what_it_writes_has_no_finding(cli: Cli, tmp_path: Path, template: str) -> None:
    done = cli("new", "my-job", "--template", template, "--json")
    assert done.code == 0
    files = done.json["files"]
    assert files[0] == "my-job.spak" and len(files) > 1
    assert all((tmp_path / file).is_file() for file in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-job", "my-job.spak"]
    text = (tmp_path / "my-job.spak").read_text()
    assert "AGENT My_Job " in text and TEMPLATES[template][0] not in text.partition("AGENT")[0]
    assert cli("check", "my-job.spak", "--strict").code == 0


def r4(cli: Cli) -> str:
    """The code of the last error of the newest run."""
    return str(cli("show", "--json").json["registers"]["R4"]["code"])


def test_its_tests_are_mended_by_a_diff_and_brought_home(cli: Cli, tmp_path: Path) -> None:
    """The whole way of the page *Your first spec*, with a person's answers, of which two are none."""
    cli("new", "shop")
    assert cli("run", "shop.spak", "--json").json["state"] == "waiting"
    assert cli("step", "--answer", "Divide by a hundred.").code == 4
    assert r4(cli) == "answer.not_json"
    assert cli("step", "--answer", PATCH.replace("    whole = sum", "    all = sum")).code == 4
    assert r4(cli) == "patch.mismatch"
    (tmp_path / "fix.patch").write_text(PATCH)
    done = cli("step", "--answer-file", "fix.patch", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert "whole * discount" in (tmp_path / "shop/prices.py").read_text()
    applied = cli("apply", "latest", "--json")
    assert [item["path"] for item in applied.json["applied"]] == ["prices.py"]
    assert "round(whole" in (tmp_path / "shop/prices.py").read_text()


def test_what_it_mends_becomes_a_branch_of_ones_own_repository(cli: Cli, tmp_path: Path) -> None:
    def git(*args: str) -> str:
        named = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        return subprocess.check_output(["git", *named, *args], cwd=tmp_path, text=True)

    (tmp_path / "one.py").write_text("ONE = 2\n")
    (tmp_path / "test_one.py").write_text("import one\n\n\ndef test_one():\n    assert one.ONE == 1\n")
    cli("new", "mend")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "Begin")
    assert cli("run", "mend.spak", "--workspace", ".").code == 4
    mend = "--- a/one.py\n+++ b/one.py\n@@ -1 +1 @@\n-ONE = 2\n+ONE = 1\n"
    assert cli("step", "--answer", mend).code == 0
    assert cli("apply", "latest", "--branch", "mended").code == 0
    assert git("diff", "--name-only", "HEAD", "mended") == "one.py\n" and git("status", "-s") == "?? .spak/\n"
    git("checkout", "-q", "mended")
    again = cli("run", "mend.spak", "--workspace", ".", "--json")
    assert (again.code, again.json["state"]) == (0, "succeeded"), "nothing fails, so nothing is committed"


def test_in_a_folder_with_tests_these_are_what_is_mended(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test/test_one.py").write_text("def test_one():\n    assert 1 == 2\n")
    done = cli("new", "mine", "--json")
    assert done.json["files"] == ["mine.spak"]
    text = (tmp_path / "mine.spak").read_text()
    assert 'starts_with(P, \\"test/\\")' in text and "VALIDATOR PyTest" in text
    assert "--workspace ." in cli("new", "other").err
    done = cli("run", "mine.spak", "--workspace", ".", "--json")
    assert (done.code, done.json["state"]) == (4, "waiting")
    name = "test/test_one.py"
    mend = f"--- a/{name}\n+++ b/{name}\n@@ -2 +2 @@\n-    assert 1 == 2\n+    assert 1 == 1\n"
    assert cli("step", "--answer", mend).code == 4
    assert r4(cli) == "policy.forbidden", "a test may not be changed"


def test_the_python_of_the_folder_runs_its_tests(cli: Cli, tmp_path: Path) -> None:
    """With what is installed there: a virtual environment is shown read-only."""
    (tmp_path / "test_one.py").write_text(
        "import only_here\n\ndef test_one():\n    assert only_here.ONE == 1\n"
    )
    environment = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "only_here.py").write_text("ONE = 1\n")
    (packages / "seen.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )
    (environment / "bin/pytest").write_text("")
    cli("new", "mine")
    text = (tmp_path / "mine.spak").read_text()
    assert text.count(".venv/bin/python -m pytest -q") == 2 and ':string:contains(P, \\"test_\\")' in text
    (tmp_path / "spak.toml").write_text(f'[sandbox]\nbinds = ["{sys.prefix}"]\n')
    done = cli("run", "mine.spak", "--workspace", ".", "--json")
    assert done.json["state"] == "succeeded", "nothing fails, so there is nothing to mend"


def test_it_writes_over_nothing_and_all_or_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    done = cli("new", "shop")
    assert (done.code, "usage.exists" in done.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]
    (tmp_path / "other.spak").symlink_to("nowhere")
    assert "usage.exists" in cli("new", "other").err


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "1st", "a b", "ü", "x" * 65])
def test_names_that_are_none(cli: Cli, tmp_path: Path, name: str) -> None:
    done = cli("new", name)
    assert (done.code, "usage.arguments" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_explaining_a_code(cli: Cli) -> None:
    done = cli("explain", "workspace.busy")
    assert done.code == 0 and done.out.startswith("workspace.busy (") and "](" not in done.out
    listed = cli("explain", "workspace", "--json").json["codes"]
    assert len(listed) > 5 and all(item["code"].startswith("workspace.") for item in listed)
    of_the_platform = cli("explain", "web.disk")
    assert of_the_platform.code == 0 and of_the_platform.out.startswith("web.disk (")
    several_lines = cli("explain", "web.locked", "--json").json["codes"][0]["text"]
    assert several_lines.rstrip().endswith(".") and "\n" not in several_lines
    done = cli("explain", "no.such_code")
    assert (done.code, "usage.arguments" in done.err) == (2, True)


def test_the_example_behind_tests_ships_with_what_fails() -> None:
    assert (EXAMPLES / "fix_tests/tests/test_prices.py").is_file()
