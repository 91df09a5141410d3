"""Which changes of files that say what is run a call may not have made (spak.policy.control_files)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from law_kit import under
from spak.kernel.gate import compiled
from spak.policy import control_files


def found(
    line: str,
    *touched: str,
    new: tuple[str, ...] = (),
    tool: str = "run",
    in_other: bool = False,
    before: Mapping[str, bytes] = MappingProxyType({}),
    after: Mapping[str, bytes] = MappingProxyType({}),
    of_emptied: bool = False,
) -> str:
    change = control_files.Change(
        lambda path: path not in new,
        lambda path: False,
        lambda path: before.get(path, b"before"),
        lambda path: after.get(path, b"after"),
        lambda path: len(after.get(path, b"after")),
        lambda path: in_other,
    )
    held = control_files.emptied if of_emptied else control_files.unpermitted
    return held(tool, {"cmd": ["bash", "-c", line]} if line else {}, touched, change)


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


@pytest.mark.parametrize(
    ("line", "path", "wrong"),
    [
        ("pytest", ".venv/x/new.txt", False),
        ("pytest", ".venv/lib/new.pth", True),
        ("pytest", "web/node_modules/.bin/tsc", True),
        ("pytest", ".venv/bin/new", True),
        ("pytest", ".venv/lib/a.dist-info/entry_points.txt", True),
        ("pytest", "build/bin/new", False),
        ("pip install -e .", ".venv/lib/new.pth", False),
        ("npm ci", "node_modules/.bin/tsc", False),
    ],
)
def test_what_is_new_in_an_environment(line: str, path: str, wrong: bool) -> None:
    assert (found(line, path, new=(path,)) == path) is wrong
    top = next(
        name for name in ("web/node_modules", "node_modules", ".venv", "build") if path.startswith(name)
    )
    assert found(line, path, new=(path, top)) == (path if "node_modules" in top and wrong else "")


@pytest.mark.parametrize(
    ("line", "path", "new", "wrong"),
    [
        (
            "python -m venv env && make deps",
            "env/bin/activate",
            ("env/pyvenv.cfg", "env/bin/activate"),
            False,
        ),
        ("python3 -m venv tools/env; ls", "tools/env/bin/activate", ("tools/env",), False),
        ("python -m venv env && make", "env/bin/activate", ("env/bin/activate",), True),
        ("python -m venv env && make", "env/bin/activate", ("env/pyvenv.cfg",), True),
        ("python -m venv env && make", "env/Makefile", ("env",), True),
        ("python -m venv env && make", "other/bin/activate", ("env", "other"), True),
        ("mkdir env && make", "env/bin/activate", ("env",), True),
    ],
)
def test_an_environment_that_a_line_makes(line: str, path: str, new: tuple[str, ...], wrong: bool) -> None:
    below = tuple(f"{top}/{name}" for top in new for name in ("pyvenv.cfg", "bin/activate", "Makefile"))
    assert (found(line, path, new=(*new, *below)) == path) is wrong


@pytest.mark.parametrize(
    ("path", "lines", "wrong"),
    [
        (
            "requirements.txt",
            b"a==2\nb[c]>=1; python_version < '3.9'\n  # https://x\n--no-binary a\n--pre\n",
            False,
        ),
        ("requirements.txt", b"a==1 --hash=sha256:00 \\\n    --hash=sha256:11  # -i x\n", False),
        ("requirements.txt", b" " * 100_000 + b"x\n", False),
        ("requirements.txt", b"-r other/evil.list\n", True),
        ("requirements.txt", b"-c limits.txt\n", True),
        ("requirements.txt", b"-e .\n", True),
        ("requirements.txt", b"--find-l=./wheels\n", True),
        ("requirements.txt", b"--pre --f wheels\n", True),
        ("requirements.txt", b'--"find-links" wheels\n', True),
        ("requirements.txt", b"--extra-index-u ht\\\ntps://e.vil\n", True),
        ("requirements.txt", b"# a \\\n-\\\n-index-url x\n", True),
        ("requirements.txt", b"x @ file:///ws/y\n", True),
        ("requirements.txt", b"./evil.whl\n", True),
        ("requirements.txt", b"/ws/evil\n", True),
        ("requirements.txt", b"evil-1-py3-none-any.whl\n", True),
        ("requirements.txt", b"${X}\n", True),
        ("requirements.txt", b"--index-url https://x.example\n", True),
        ("requirements-dev.txt", b"-i x\n", True),
        ("requirements/dev.in", b" --find-links ./wheels\n", True),
        ("constraints.txt", b"a @ git+https://x.example/a\n", True),
        ("build/requirements.txt", b"-i x\n", False),
        ("docs/notes.txt", b"-i x\n", False),
        (".gitignore", b"*.log\n!keep.log\n", False),
        (".gitignore", b"!.env\n", True),
        ("sub/.gitignore", b"!/conf/id_rsa \n", True),
        (".gitignore", b"!.e*\n", True),
        (".gitignore", b"!*\n", True),
        (".gitignore", b"*\n!*/\n!*.py\n", False),
        (".gitignore", b".env*\n!.env.example\n", False),
    ],
)
def test_lines_that_no_line_may_write_into_files_that_it_names(path: str, lines: bytes, wrong: bool) -> None:
    line = f"echo x >> {path}"
    assert (found(line, path, before={path: b"a==1\n"}, after={path: b"a==1\n" + lines}) == path) is wrong
    assert found(line, path, before={path: b"a==1\n" + lines}, after={path: lines + b"c\n"}) == "", "not new"
    git = found("git checkout main", path, before={path: b""}, after={path: lines})
    assert git == "", "what was committed"


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        (b"*.log\n.env\n", b"*.log\n", True),
        (b"*.log\n.env\n", b"", True),
        (b"*.log\n", b"", False),
        (b"/conf/id_rsa\n", b"/conf/id_ed25519\n", True),
        (b"secrets/\n", b"docs/\n", True),
        (b"*.pem\n", b"*.log\n", True),
        (b"*\n", b"*.log\n", True),
        (b".env\n", b"# all\n.env*\n", False),
        (b"*.log\n.env\n", b".env\n*.log\n", False),
        (b"!.env\n.env\n", b".env\n!.env\n", True),
        (b"!.env\n", b"!.env\n*.log\n", False),
        (b"", b"a*\n" * control_files.MAX_MATCHES, True),
    ],
)
def test_files_of_secrets_stay_ignored(before: bytes, after: bytes, wrong: bool) -> None:
    path, then, now = ".gitignore", {".gitignore": before}, {".gitignore": after}
    assert (found("python3 tool.py", path, before=then, after=now) == path) is wrong
    assert found("git checkout main", path, before=then, after=now) == ""


@pytest.mark.parametrize(
    ("line", "path", "wrong"),
    [
        ("sed -i d src/a.py", "src/a.py", True),
        ("python3 gen.py > src/a.py", "src/a.py", True),
        ("rm src/a.py; touch src/a.py", "src/a.py", False),
        ("git checkout main", "src/a.py", False),
        ("python3 gen.py", "src/__init__.py", False),
        ("python3 gen.py", "build/a.py", False),
        ("python3 gen.py", "data.csv", False),
        ("python3 gen.py", "README.md", True),
    ],
)
def test_code_is_not_emptied(line: str, path: str, wrong: bool) -> None:
    assert (found(line, path, after={path: b" \n"}, of_emptied=True) == path) is wrong
    assert found(line, path, of_emptied=True) == ""
    assert found(line, path, before={path: b"\n"}, after={path: b""}, of_emptied=True) == ""
    kept = found(
        line, path, "new.py", new=("new.py",), after={path: b"", "new.py": b"before"}, of_emptied=True
    )
    assert kept == "", "it was moved"


def test_only_new_files_of_the_size_of_an_emptied_one_are_read() -> None:
    read = []

    def after(path: str) -> bytes:
        read.append(path)
        return {"src/a.py": b"", "same.py": b"before"}.get(path, b"other")

    change = control_files.Change(
        lambda path: path == "src/a.py",
        lambda path: False,
        lambda path: b"before",
        after,
        lambda path: 6 if path == "same.py" else 5,
        lambda path: False,
    )
    touched = ["src/a.py", *(f"{n}.bin" for n in range(9)), "same.py"]
    assert control_files.emptied("run", {"cmd": ["python3", "a.py"]}, touched, change) == ""
    assert read == ["src/a.py", "same.py"]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (b"a = [1,2]", b"a = [\n    1,\n    2,\n]\n", True),
        (b"import b\nimport a\n", b"import a\nimport b\n", False),
        (b"all:\n\techo all\n", b"echo:\n\tall all\n", False),
        (b"on: push\n", b"push: on\n", False),
        (b"# a check:\n- run: lint\n", b"# a check:  - run: lint\n", False),
        (b"a(b) // c()\nd\n", b"a( b )\n// c()\nd", True),
        (b"a(b) // c()\nd\n", b"a(b)\n// c() d\n", False),
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
