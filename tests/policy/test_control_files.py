"""Which changes of files that say what is run a call may not have made (spak.policy.control_files)."""

from __future__ import annotations

import pytest

from law_kit import under
from spak.kernel.gate import compiled
from spak.policy import control_files


def found(
    line: str, *touched: str, new: tuple[str, ...] = (), tool: str = "run", in_other: bool = False
) -> str:
    return control_files.unpermitted(
        tool,
        {"cmd": ["bash", "-c", line]} if line else {},
        touched,
        lambda path: path not in new,
        lambda path: False,
        lambda path: False,
        lambda path: in_other,
    )


@pytest.mark.parametrize(
    "line",
    [
        "git checkout main",
        "git stash pop",
        "git fetch && git rebase origin/main",
        "ruff check --fix . && ruff format .",
        "black -q .",
        "sed -i s/a/b/ Makefile",
        "cd sub && touch ../Makefile; echo x > Makefile",
    ],
)
def test_what_a_line_may_have_changed(line: str) -> None:
    assert found(line, "src/a.py", "Makefile") == ""


@pytest.mark.parametrize(
    "line",
    [
        "",
        "make all",
        "python3 tool.py && git checkout main",
        "git apply a.patch",
        "git mv src lib",
        "git checkout main > notes.txt",
        "cd sub && touch Makefile",
        "npm ci",
        "a=$(",
        "black . ; ./tool",
        "eslint --fix .",
    ],
)
def test_what_no_line_may_have_changed(line: str) -> None:
    assert found(line, "src/a.py", "Makefile", tool="run" if line else "python_repl") == "Makefile"


@pytest.mark.parametrize(
    ("line", "path", "wrong"),
    [
        ("npm install", "package-lock.json", False),
        ("cargo build", "Cargo.lock", False),
        ("uv sync", "uv.lock", False),
        ("uv sync", ".venv/bin/python", False),
        ("python3 -m venv .venv", ".venv/bin/activate", False),
        ("npm install", "package.json", True),
        ("python3 tool.py", "package-lock.json", True),
        ("python3 tool.py && npm install", "node_modules/a/index.js", True),
        ("pytest", "src/__pycache__/a.cpython-311.pyc", False),
        ("npm run build", "node_modules/.cache/a/package.json", False),
        ("pytest --cov-report=json", "coverage.json", False),
        ("make lint", ".import_linter_cache/a.json", False),
        ("npm run lint", "web/.eslintcache", False),
        ("npm run lint", "web/.eslintrc", True),
        ("make html", "docs/html/.buildinfo", False),
    ],
)
def test_lock_files_and_packages_are_those_of_package_managers(line: str, path: str, wrong: bool) -> None:
    assert (found(line, path) == path) is wrong


def test_git_restores_nothing_in_other_repositories() -> None:
    assert found("git -C n restore Makefile", "Makefile", "n/Makefile", in_other=True) == "Makefile"
    assert found("black n", "n/Makefile", in_other=True) == ""


def test_a_new_file_among_installed_ones_is_no_change_of_them() -> None:
    assert found("pytest", ".venv/x/new.pth", new=(".venv/x/new.pth",)) == ""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (b"a = [1,2]", b"a = [\n    1,\n    2,\n]\n", True),
        (b"import b\nimport a\n", b"import a\nimport b\n", True),
        (b"x = 'a', (b);", b'x = "a", b', True),
        (b"a", b"a a", False),
        (b"a", b"a [][(![]+[])[+[]]]", False),
        (b"#a", b"a", False),
        (b"a", "a \uff45\uff58()".encode(), False),
        (b"a b", b"a", False),
        (None, b"", False),
        (b"", None, False),
        (b"\xff\x00", b"\xff\x00", True),
        (b"a" * (control_files.MAX_WORDS + 1), b"a" * (control_files.MAX_WORDS + 1), True),
        (b"a " * control_files.MAX_WORDS, b" a" * control_files.MAX_WORDS, False),
    ],
)
def test_formatters_keep_all_words_and_signs(before: bytes | None, after: bytes | None, same: bool) -> None:
    assert control_files.same_words(before, after) is same


def test_the_law_can_let_lines_change_them() -> None:
    assert not control_files.may_change(compiled(under(), "", {}))
    opened = compiled(under("permitted_place(/writes, /control)."), "", {})
    assert control_files.may_change(opened)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (b"import b\nimport a\nf( 1,2 )\n", b"import a\nimport b\n\nf(1, 2)  # two\n", True),
        (b"x = 1  # import os; os.system('id')\n", b"x = 1\nimport os; os.system('id')  #\n", False),
        (b"x = (", b"x = ( ", False),
        (b"(" * 5000, b" " + b"(" * 5000, False),
    ],
)
def test_of_python_all_statements_are_kept(before: bytes, after: bytes, same: bool) -> None:
    assert control_files.same_words(before, after, "conftest.py") is same
