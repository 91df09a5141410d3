from __future__ import annotations

import os
from pathlib import Path

import pytest

from spak.ports import MeasureCall
from spak.validators.compliance import Compliance, comply
from spak.validators.static_checks import CHECKS, c_functions, judge

CODE = b"""import os.path as p
from subprocess import run as go
import importlib

def work(x):
    go(["ls"])
    return eval("x")

TABLE = 3
importlib.import_module("socket")
__import__(name())
"""

C = """
// int hidden1(void) { }
#define BODY(x) int x(void) { }
static int helper(int a) { return a; }
static const char *text = "int hidden2(void) {";
struct pair { int a; };
int table[2] = {1, 2};
extern "C" {
  __attribute__((noinline)) float *attention(const float *q, int n) { if (n) { } return 0; }
}
extern "C" __global__ void __launch_bounds__(128) device_entry(float *o) { }
int declared(void);
int main(void) { return 0; }
"""


def found(
    check: str, args: dict[str, object], data: bytes = CODE, name: str = "a.py"
) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in judge(check, args, data, name)]


def test_texts() -> None:
    assert found("contains", {"text": "def work"}) == []
    assert found("contains", {"text": ["def work", "absent"]}) == [("missing_text", 0)]
    assert found("not_contains", {"text": "TABLE"}) == [("forbidden_text", 9)]
    assert found("not_contains", {"text": "absent"}) == []


def test_sizes() -> None:
    assert found("max_lines", {"lines": 11}) == []
    assert found("max_lines", {"lines": 10}) == [("too_many_lines", 11)]
    assert found("max_bytes", {"bytes": len(CODE)}) == []
    assert found("max_bytes", {"bytes": len(CODE) - 1}) == [("too_many_bytes", 0)]


def test_imports_by_name_alias_and_call() -> None:
    assert found("no_import", {"modules": "math"}) == [("dynamic_import", 11)]
    assert found("no_import", {"modules": ["os", "subprocess", "socket"]}) == [
        ("forbidden_import", 1),
        ("forbidden_import", 2),
        ("forbidden_import", 2),
        ("forbidden_import", 10),
        ("dynamic_import", 11),
    ]
    assert found("no_import", {"modules": "o"}, b"import os") == []


def test_calls_through_aliases() -> None:
    assert found("no_call", {"names": ["subprocess.run", "eval"]}) == [
        ("forbidden_call", 6),
        ("forbidden_call", 7),
    ]
    assert found("no_call", {"names": "eval"}, b"import builtins\nbuiltins.eval('1')") == [
        ("forbidden_call", 2)
    ]
    assert found("no_call", {"names": "os.system"}, b"from os import path\npath.system()") == []


def test_python_that_does_not_parse_holds_nothing() -> None:
    for data in (b"def (", b"\x00", b"(" * 5000, b"\xff = 1"):
        assert [code for code, _ in found("no_import", {"modules": "os"}, data)] == ["invalid_python"]
    assert found("no_call", {"names": "eval"}, b"#" * (1 << 20) + b"\n") == [("too_large", 0)]


def test_symbols_of_python_and_c() -> None:
    assert found("exports_symbol", {"symbol": ["work", "TABLE", "go"]}) == []
    assert found("exports_symbol", {"symbol": "missing"}) == [("missing_symbol", 0)]
    assert c_functions(C) == ["attention", "device_entry", "main"]
    assert found("exports_symbol", {"symbol": "attention"}, C.encode(), "k.cu") == []
    assert found("exports_symbol", {"symbol": "helper"}, C.encode(), "k.c") == [("missing_symbol", 0)]


def test_json() -> None:
    assert found("json_valid", {}, b'{"a": [1, 2.5, null]}') == []
    for data in (b"", b"{", b"NaN", b'{"a": Infinity}', b"\xff", b"[" * 100_000, b"9" * 5000):
        assert [code for code, _ in found("json_valid", {}, data)] == ["invalid_json"], data[:20]


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_wrong_arguments_are_findings(check: str) -> None:
    assert [code for code, _ in found(check, {"surprise": 1})] == ["bad_argument"]
    for name in CHECKS[check].entry.schema["properties"]:
        for value in (None, "", [], [1], -1, True, {}):
            assert [code for code, _ in found(check, {name: value})] == ["bad_argument"], (name, value)


def test_unknown_check_is_a_violation() -> None:
    report = comply(b"x", "a.txt", [{"text": "A", "check": "looks_nice"}])
    assert not report.passed
    assert [violation.code for violation in report.violations] == ["unknown_check"]


def test_unchecked_axioms_never_pass() -> None:
    report = comply(b"x", "a.txt", [{"text": "Banks have 32-bit width."}])
    assert (report.passed, report.unchecked, report.held) == (False, ("Banks have 32-bit width.",), ())
    report = comply(
        b"x", "a.txt", [{"text": "U"}, {"text": "Short.", "check": "max_bytes", "args": {"bytes": 1}}]
    )
    assert (report.passed, report.unchecked, report.held) == (True, ("U",), ("Short.",))


def measure(
    workspace: Path, artifact: str, *axioms: dict[str, object]
) -> tuple[dict[str, str], dict[str, float]]:
    result = Compliance().measure(
        MeasureCall("m1", "Compliance", {"artifact": artifact, "axioms": list(axioms)}, workspace, None)
    )
    assert result.status == "checked"
    return {check["name"]: check["code"] for check in result.checks}, dict(result.metrics)


def test_measurement_has_a_check_per_checked_axiom(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(CODE)
    checks, metrics = measure(
        tmp_path,
        "a.py",
        {"text": "No eval.", "check": "no_call", "args": {"names": "eval"}},
        {"text": "Fast."},
        {"text": "Has work.", "check": "exports_symbol", "args": {"symbol": "work"}},
    )
    assert checks == {"axiom.1": "forbidden_call", "axiom.3": ""}
    assert metrics == {"violations": 1, "held": 1, "unchecked": 1}


def test_measurement_without_a_checked_axiom_fails(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(CODE)
    assert measure(tmp_path, "a.py", {"text": "Fast."})[0] == {"checked": "nothing_checked"}


def test_only_regular_files_of_the_workspace_are_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "link").symlink_to(outside / "secret")
    (workspace / "folder").symlink_to(outside)
    os.mkfifo(workspace / "pipe")
    axiom = {"text": "A", "check": "max_bytes", "args": {"bytes": 9}}
    for name in ("link", "folder/secret", "../outside/secret", "pipe", "absent", "."):
        assert measure(workspace, name, axiom)[0] == {"artifact": "unreadable"}, name
