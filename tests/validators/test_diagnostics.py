"""What tools print, read as findings. The texts are what the tools themselves printed on small programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spak.diagnostics import FORMS, MAX_DIAGNOSTICS, SEVERITIES, read
from spak.diagnostics.shape import LEVELS, severity
from spak.validators.command import Command
from validator_calls import call, codes, write

GO_PANIC = """--- FAIL: TestA (0.00s)
    m_test.go:3: bad 3
--- FAIL: TestB (0.00s)
panic: assignment to entry in nil map [recovered]
\tpanic: assignment to entry in nil map

goroutine 7 [running]:
testing.tRunner.func1.2({0x508ec0, 0x551ca0})
\t/usr/lib/go-1.19/src/testing/testing.go:1396 +0x24e
panic({0x508ec0, 0x551ca0})
\t/usr/lib/go-1.19/src/runtime/panic.go:884 +0x212
m.TestB(0x0?)
\t/ws/m_test.go:4 +0x2e
testing.tRunner(0xc000007ba0, 0x52f3b8)
\t/usr/lib/go-1.19/src/testing/testing.go:1446 +0x10b
FAIL\tm\t0.004s
"""
RUST = """error[E0308]: mismatched types
 --> src/lib.rs:1:26
  |
1 | fn main() { let x: i32 = "a"; }
error: internal compiler error: no type for node
  --> src/deep/a b.rs:12:1
error: aborting due to 2 previous errors

thread 't' (11829) panicked at src/lib.rs:2:18:
assertion `left == right` failed
  left: 1
"""
RUST_JSON = [
    {"reason": "compiler-artifact", "target": {}},
    {
        "reason": "compiler-message",
        "message": {
            "level": "warning",
            "message": "unused variable: `u`",
            "code": {"code": "unused_variables"},
            "spans": [
                {"file_name": "a.rs", "line_start": 9, "is_primary": False},
                {"file_name": "b.rs", "line_start": 2, "is_primary": True},
            ],
        },
    },
    {"level": "error", "message": "linking with `cc` failed", "code": None, "spans": []},
    {"level": "error", "message": "aborting due to 1 previous error", "code": None, "spans": []},
    {"level": "failure-note", "message": "For more information ...", "code": None, "spans": []},
]
ESLINT = [
    {
        "filePath": "/ws/x.js",
        "messages": [
            {"ruleId": "no-unused-vars", "severity": 1, "message": "never used", "line": 1},
            {"ruleId": None, "fatal": True, "severity": 2, "message": "Parsing error", "line": 3},
            {"ruleId": "new", "severity": 3, "message": "of a level to come"},
        ],
    }
]
PYRIGHT = {
    "generalDiagnostics": [
        {
            "file": "/ws/t.py",
            "severity": "error",
            "message": "no",
            "rule": "reportX",
            "range": {"start": {"line": 0, "character": 9}},
        },
        {"file": "/ws/t.py", "severity": "information", "message": "told"},
    ]
}
SARIF = {
    "version": "2.1.0",
    "runs": [
        {
            "tool": {
                "driver": {
                    "name": "x",
                    "rules": [
                        {
                            "id": "S1",
                            "defaultConfiguration": {"level": "error"},
                            "shortDescription": {"text": "short"},
                        }
                    ],
                }
            },
            "invocations": [
                {"toolExecutionNotifications": [{"level": "error", "message": {"text": "broke"}}]}
            ],
            "results": [
                {
                    "ruleId": "S1",
                    "message": {"text": "by the rule's level"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "file:///ws/src/a.py"},
                                "region": {"startLine": 4},
                            }
                        }
                    ],
                },
                {"ruleIndex": 0, "level": "note", "message": {"id": "m"}},
                {"ruleId": "none", "message": {"text": "usual level"}},
                {"ruleId": "ok", "kind": "pass", "message": {"text": "passed"}},
                {"ruleId": "S1", "suppressions": [{"kind": "inSource"}], "message": {"text": "accepted"}},
            ],
        }
    ],
}
PYTEST_SHORT = """t.py:5: in test_zero
    assert div(1, 0) == 0
t.py:2: in div
    return a / b
E   ZeroDivisionError: division by zero
E    +  where 1
___ test_no ___
t.py:8: in test_no
    assert 1 == 2
E   assert 1 == 2
=== short test summary info ===
FAILED t.py::test_zero - ZeroDivisionError: division by zero
"""
PYTEST_LONG = """    def test_zero():
>       assert div(1, 0) == 0

t.py:5:
_ _ _ _ _ _
>       return a / b
E       ZeroDivisionError: division by zero

t.py:2: ZeroDivisionError
"""
TRACEBACK = """Traceback (most recent call last):
  File "/ws/a.py", line 3, in <module>
    f()
  File "/ws/b.py", line 7, in f
    raise own.Odd("why")
own.Odd: why
"""
GCC_TEXT = """bad.c: In function 'main':
bad.c:1:26: warning: makes integer from pointer without a cast [-Wint-conversion]
\x1b[01m/ws/bad.c:2:38:\x1b[0m fatal error: x.h: No such file
bad.c:1:38: note: each undeclared identifier is reported once
during RTL pass: expand
bad.c:3: internal compiler error: in f, at g.c:1
gcc: error: unrecognized command-line option '--nope'
/usr/bin/ld: /tmp/x.o: in function `main': undefined reference to `g'
"""
GCC_JSON = [
    {"kind": "warning", "option": "-Wx", "message": "w", "locations": [{"caret": {"file": "a.c", "line": 2}}]}
]

PRINTED: dict[str, tuple[str, str, list[tuple[str, str, int, str]]]] = {
    "go": ("go", GO_PANIC, [("error", "m_test.go", 3, "go"), ("panic", "m_test.go", 4, "panic")]),
    "go build": (
        "go",
        "# m\n./m.go:3:8: imported and not used\nvet: ./v.go:5:2: undeclared\n",
        [("error", "m.go", 3, "go"), ("error", "v.go", 5, "go")],
    ),
    "rust": (
        "rustc",
        RUST,
        [
            ("error", "src/lib.rs", 1, "E0308"),
            ("panic", "src/deep/a b.rs", 12, "error: internal compiler error"),
            ("panic", "src/lib.rs", 2, "panic"),
        ],
    ),
    "rust json": (
        "rustc",
        "\n".join(map(json.dumps, RUST_JSON)),
        [("warning", "b.rs", 2, "unused_variables"), ("error", "", 0, "error")],
    ),
    "eslint": (
        "eslint",
        json.dumps(ESLINT),
        [
            ("warning", "x.js", 1, "no-unused-vars"),
            ("error", "x.js", 3, "parsing"),
            ("error", "x.js", 0, "new"),
        ],
    ),
    "pyright": ("pyright", json.dumps(PYRIGHT), [("error", "t.py", 1, "reportX"), ("info", "t.py", 0, "")]),
    "sarif": (
        "sarif",
        json.dumps(SARIF),
        [
            ("error", "src/a.py", 4, "S1"),
            ("info", "", 0, "S1"),
            ("warning", "", 0, "none"),
            ("info", "", 0, "ok"),
            ("error", "", 0, ""),
        ],
    ),
    "tsc": (
        "tsc",
        "src/a.ts(1,7): error TS2322: Type\r\nerror TS18003: No inputs\r\n",
        [("error", "src/a.ts", 1, "TS2322"), ("error", "", 0, "TS18003")],
    ),
    "tsc pretty": (
        "tsc",
        "\x1b[96msrc/a.ts\x1b[0m:\x1b[93m2\x1b[0m:\x1b[93m39\x1b[0m - "
        "\x1b[91merror\x1b[0m\x1b[90m TS2304: \x1b[0mCannot find name 'y'.\n",
        [("error", "src/a.ts", 2, "TS2304")],
    ),
    "short": (
        "pytest",
        PYTEST_SHORT,
        [("error", "t.py", 2, "ZeroDivisionError"), ("error", "t.py", 8, "AssertionError")],
    ),
    "long": ("pytest", PYTEST_LONG, [("error", "t.py", 2, "ZeroDivisionError")]),
    "line": (
        "pytest",
        "FAILED t.py::test_no - AssertionError\nERROR u.py\n",
        [("error", "t.py", 0, "failed"), ("error", "u.py", 0, "failed")],
    ),
    "traceback": ("pytest", TRACEBACK, [("error", "b.py", 7, "own.Odd")]),
    "gcc": (
        "gcc",
        GCC_TEXT,
        [
            ("warning", "bad.c", 1, "-Wint-conversion"),
            ("error", "bad.c", 2, "error"),
            ("info", "bad.c", 1, "note"),
            ("panic", "bad.c", 3, "error"),
            ("error", "", 0, "option"),
            ("error", "", 0, "link"),
        ],
    ),
    "mypy": (
        "mypy",
        'a.py:1: error: Name "x" is not defined  [name-defined]\na.py:2:3: note: told\nFound 1 error\n',
        [("error", "a.py", 1, "name-defined"), ("info", "a.py", 2, "")],
    ),
    "gcc json": ("gcc", json.dumps(GCC_JSON), [("warning", "a.c", 2, "-Wx")]),
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_tool_printed(name: str) -> None:
    form, text, wanted = PRINTED[name]
    for streams in ((text.encode(), b""), (b"", text.encode())):
        found = read(form, *streams)
        if found is None:
            assert form in ("eslint", "pyright", "sarif") and streams[0] == b""
            continue
        assert [(item["severity"], item["file"], item["line"], item["code"]) for item in found] == wanted


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "{",
        "[" * 9000,
        "[1]",
        '{"runs": [3]}',
        '[{"messages": 7}]',
        '{"spans": 1}',
        "\0\xff:1: error: \0",
    ],
)
def test_odd_texts_give_findings_or_none_and_no_error(form: str, text: str) -> None:
    found = read(form, text.encode("latin-1"), text.encode("latin-1"))
    for item in found or ():
        assert item["severity"] in SEVERITIES and type(item["line"]) is int
        assert all(isinstance(item[name], str) for name in ("file", "code", "message"))


def test_each_level_is_one_of_the_law_and_an_unknown_one_an_error() -> None:
    assert {word for table in LEVELS.values() for word in table.values()} == set(SEVERITIES)
    assert {severity(tool, odd) for tool in LEVELS for odd in ("blocker", 99, None, [])} == {"error"}


def test_a_flood_is_cut_and_a_finding_stands_once() -> None:
    rows = "".join(f"a.c:{line}:1: error: no\n" * 2 for line in range(1, MAX_DIAGNOSTICS + 9))
    assert [item["line"] for item in read("gcc", b"", rows.encode()) or ()] == list(
        range(1, MAX_DIAGNOSTICS + 1)
    )


C = 'int main(void) { int x = "a"; return y; }\n'
RUFF = [sys.executable, "-m", "ruff", "check", "--isolated", "a.py"]
PY = 'x: int = "a"\ny = undefined\n'
REAL: dict[str, tuple[str, list[str], str, str, int]] = {
    "gcc": ("gcc", ["gcc", "-fsyntax-only", "a.c"], "a.c", C, 1),
    "gcc json": ("gcc", ["gcc", "-fsyntax-only", "-fdiagnostics-format=json", "a.c"], "a.c", C, 1),
    "clang": ("gcc", ["clang", "-fsyntax-only", "a.c"], "a.c", C, 1),
    "ruff": ("ruff", [*RUFF, "--output-format=json"], "a.py", PY, 2),
    "ruff sarif": ("sarif", [*RUFF, "--output-format=sarif"], "a.py", PY, 2),
    "mypy json": ("mypy", [sys.executable, "-m", "mypy", "--output=json", "a.py"], "a.py", PY, 1),
    "pytest": (
        "pytest",
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "a.py"],
        "a.py",
        "def test_a():\n    assert 1 == 2\n",
        2,
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_what_the_tool_itself_prints_here(name: str, tmp_path: Path) -> None:
    form, argv, file, text, line = REAL[name]
    (tmp_path / file).write_text(text)
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, check=False)
    found = read(form, done.stdout, done.stderr)
    assert found, (done.stdout, done.stderr)
    worst = [item for item in found if item["severity"] == "error"]
    assert worst and (Path(worst[0]["file"]).name, worst[0]["line"]) == (file, line)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("form", "text", "wanted", "counts"),
    [
        ("tsc", "src/a.ts(1,7): error TS2322: Type\n", {"diagnostics": "found_error"}, (1, 0)),
        ("gcc", "a.c:1:1: warning: odd [-Wodd]\n", {}, (0, 1)),
        ("sarif", "no document\n", {"diagnostics": "unreadable"}, (0, 0)),
        ("go", GO_PANIC, {"diagnostics": "found_error"}, (2, 0)),
    ],
)
def test_a_command_says_what_its_output_holds(
    tmp_path: Path, form: str, text: str, wanted: dict[str, str], counts: tuple[int, int]
) -> None:
    write(tmp_path, out=text)
    seen = Command().measure(call(tmp_path, {"cmd": "cat out", "diagnostics": form}))
    assert codes(seen) == wanted
    assert (seen.metrics["errors"], seen.metrics["warnings"]) == counts
    assert len(seen.diagnostics) == sum(counts)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("gcc", f"a.c:{'9' * 5000}: error: x"),
        ("pytest", f"a.py:{'9' * 5000}: ValueError"),
        ("gcc", '[{"kind": "error", "message": "x", "locations": [{"caret": null}]}]'),
        ("eslint", '[{"filePath": "a", "messages": [{"severity": 2, "message": [], "ruleId": {"a": 1}}]}]'),
        ("mypy", '{"file": "\\ud800", "line": 1e99, "severity": "error", "message": "\\ud800"}'),
    ],
)
def test_a_hostile_text_or_number_is_still_a_finding_that_a_record_can_hold(form: str, text: str) -> None:
    found = read(form, text.encode(), b"")
    assert found is not None
    (item,) = found
    assert (item["severity"], item["line"]) == ("error", 0)
    for name in ("file", "code", "message"):
        item[name].encode()


def test_a_flood_of_warnings_hides_no_error() -> None:
    flood = "".join(f"a.c:{row}: warning: w{row}\n" for row in range(1, 600)) + "a.c:1: error: bad\n"
    found = read("gcc", flood.encode(), b"")
    assert found is not None
    assert found[0]["severity"] == "error"
