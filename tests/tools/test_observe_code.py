"""Answers of external predicates about a workspace: right, and bounded on hostile trees."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.datalog.externals import Request
from spak.errors import UsageError
from spak.ports import Look
from spak.tools.observe import code, predicates

LINKS = Request("dependency_link", (None, None, None))


def answers(requests: list[Request], root: Path) -> list[list[predicates.Row]]:
    return predicates.answers(requests, Look(root))


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def links(root: Path) -> set[tuple[str, str]]:
    return {(row[0], row[1]) for row in answers([LINKS], root)[0]}


def covered(root: Path, *names: str) -> list[str]:
    found = answers([Request("test_coverage", (name,)) for name in names], root)
    return [rows[0][0] for rows in found if rows]


REPORT = {
    "./ran.py": {"executed_lines": [1]},
    "skipped.py": {"executed_lines": []},
    "no.py": {"executed_lines": [1]},
}
PYTHON = {
    "agents/pkg/__init__.py": "",
    "agents/pkg/core.py": "import os, json\nfrom pkg import util\n",
    "agents/pkg/util.py": "X = 1\n",
    "agents/pkg/sub/__init__.py": "from . import deep\n",
    "agents/pkg/sub/deep.py": "from ..core import X\nfrom ... import nothing\n",
    "src/lib/__init__.py": "",
    "src/lib/a.py": "def f():\n    import lib.b as b\n    return b\n",
    "src/lib/b.py": "try:\n    from .c import *\nexcept ImportError:\n    pass\n",
    "src/lib/c.py": "",
    "main.py": "import lib.a\nimport beside\n",
    "beside.py": "import main\n",
    "stub.pyi": "import beside\n",
}


def test_imports_of_python_lead_to_files(tmp_path: Path) -> None:
    assert links(put(tmp_path, PYTHON)) == {
        ("agents/pkg/core.py", "agents/pkg/__init__.py"),
        ("agents/pkg/core.py", "agents/pkg/util.py"),
        ("agents/pkg/sub/__init__.py", "agents/pkg/sub/deep.py"),
        ("agents/pkg/sub/deep.py", "agents/pkg/core.py"),
        ("src/lib/a.py", "src/lib/__init__.py"),
        ("src/lib/a.py", "src/lib/b.py"),
        ("src/lib/b.py", "src/lib/c.py"),
        ("main.py", "src/lib/__init__.py"),
        ("main.py", "src/lib/a.py"),
        ("main.py", "beside.py"),
        ("beside.py", "main.py"),
        ("stub.pyi", "beside.py"),
    }


def test_the_words_of_an_import_are_told(tmp_path: Path) -> None:
    rows = answers([LINKS], put(tmp_path, PYTHON))[0]
    assert ("agents/pkg/sub/deep.py", "agents/pkg/core.py", "..core") in rows
    assert rows == sorted(rows)


def test_includes_of_c_lead_to_files(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "src/a.c": '#include "a.h"\n  # include <lib/b.h>\n#include <stdio.h>\n// #include "c.h"\n',
            "src/a.h": '#include "../include/lib/b.h"\n',
            "include/lib/b.h": "",
            "src/c.h": "",
            "k/kernel.cu": '#include "../../../../etc/passwd"\n#include "src/c.h"\n',
        },
    )
    assert links(tmp_path) == {
        ("src/a.c", "src/a.h"),
        ("src/a.c", "include/lib/b.h"),
        ("src/a.h", "include/lib/b.h"),
        ("k/kernel.cu", "src/c.h"),
    }


def test_a_question_with_inputs_gets_the_rows_that_fit(tmp_path: Path) -> None:
    put(tmp_path, PYTHON)
    rows = answers([Request("dependency_link", (None, "beside.py", None))], tmp_path)[0]
    assert [row[0] for row in rows] == ["main.py", "stub.pyi"]


@pytest.mark.parametrize(
    "text",
    [
        "import beside\nthis is no python",
        "\0\nimport beside\n",
        "x = " + "(" * 5000 + "\nfrom beside import y\n",
        "x = " + "-" * 20_000 + "1\nimport json, beside\n",
        "x" + ".a" * 50_000 + "\nimport beside\n",
        "if x:\n\timport beside\n        y\n",
        "# -*- coding: no-such-codec -*-\nimport beside\n",
        "'\\d'\nimport beside\n",
        "\ufeffimport beside\n",
    ],
)
def test_text_that_no_parser_likes_still_tells_its_imports(tmp_path: Path, text: str) -> None:
    put(tmp_path, {"beside.py": "", "odd.py": text})
    assert ("odd.py", "beside.py") in links(tmp_path)


def test_what_tests_reach_is_covered(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.py": "import b\n",
            "b.py": "",
            "c.py": "",
            "ran.py": "",
            "skipped.py": "",
            "tests/deep/check.py": "import a\n",
            "test_c.py": "import c\n",
            "conftest.py": "",
            "x_test.py": "",
            "latest.py": "",
            "k.c": "",
            "k.h": "",
            "l.c": "",
            "l.h": "",
            "tests/k_check.c": '#include "k.h"\n',
            "coverage.json": json.dumps({"files": REPORT}),
        },
    )
    names = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.*"))]
    assert sorted(set(names) - set(covered(tmp_path, *names))) == [
        "b.py", "coverage.json", "l.c", "l.h", "latest.py", "skipped.py"
    ]  # fmt: skip
    assert covered(tmp_path, "no.py", "nowhere.py", "../a.py") == []


@pytest.mark.parametrize("report", ["", "[]", "{", '{"files": 3}', '{"files": {"a.py": 3}}', "[" * 100_000])
def test_a_report_that_is_none_covers_nothing(tmp_path: Path, report: str) -> None:
    put(tmp_path, {"a.py": "", "coverage.json": report})
    assert covered(tmp_path, "a.py") == []


def test_links_and_odd_files_are_no_files_here(tmp_path: Path) -> None:
    root = put(tmp_path / "ws", {"a.py": "import b\n", ".hidden/b.py": "", "node_modules/b.py": ""})
    put(tmp_path / "outside", {"b.py": "", "c.py": "import a\n"})
    (root / "b.py").symlink_to("../outside/b.py")
    (root / "linked").symlink_to("../outside")
    os.mkfifo(root / "c.py")
    (root / "d.py").mkdir()
    assert links(root) == set()


def test_a_tree_beyond_a_bound_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a.py": "import b\nimport c\n", "b.py": "", "c.py": ""})
    for name in ("MAX_FILES", "MAX_BYTES", "MAX_FILE_BYTES", "MAX_LINKS"):
        with monkeypatch.context() as patch:
            patch.setattr(code, name, 1)
            with pytest.raises(UsageError) as caught:
                links(tmp_path)
            assert caught.value.code == "world.too_large", name


def test_a_tree_that_is_very_deep_is_an_error(tmp_path: Path) -> None:
    at = tmp_path
    for _ in range(code.MAX_DEPTH + 5):
        at = at / "d"
        at.mkdir()
    with pytest.raises(UsageError) as caught:
        links(tmp_path)
    assert caught.value.code == "world.too_large"


def test_nobody_answers_what_is_not_in_the_table(tmp_path: Path) -> None:
    for request in (Request("weather", (None,)), Request("entropy", (None, None)), Request("entropy", (1,))):
        with pytest.raises(UsageError) as caught:
            answers([request], tmp_path)
        assert caught.value.code == "world.unknown"


def test_the_tree_is_read_once_for_all_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, PYTHON)
    made = []
    whole = code.Tree.of
    monkeypatch.setattr(code.Tree, "of", lambda root, cancel: made.append(root) or whole(root, cancel))
    covered(tmp_path, *PYTHON)
    assert len(made) == 1
    answers([Request("entropy", ("a", None))], tmp_path)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("text", "score"),
    [("", 0.0), ("aaaa", 0.0), ("ab", 1.0), ("abcd", 2.0), ("aab", 0.918), ("aGVsbG8gd29ybGQ", 3.457)],
)
def test_entropy_is_shannons(text: str, score: float) -> None:
    assert code.bits(text) == score


@given(st.text(min_size=1, max_size=200))
@settings(max_examples=200)
def test_entropy_lies_between_its_bounds_and_knows_no_order(text: str) -> None:
    found = code.bits(text)
    assert 0 <= found <= round(math.log2(len(set(text))), 3) + 0.001
    letters = list(text)
    random.Random(1).shuffle(letters)
    assert code.bits("".join(letters)) == found
    assert code.bits(text * 3) == pytest.approx(found, abs=0.001)


def test_entropy_of_much_text_is_bounded() -> None:
    assert code.bits("ab" * code.MAX_TEXT + "z") == 1.0
