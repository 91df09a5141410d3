"""Tools that read and write files of the workspace on the host."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from spak import canon
from spak.config import catalog
from spak.errors import RunError
from spak.lang import check, parse
from spak.ports import Call
from spak.tools import TOOLS


def codes(result: Any) -> list[str]:
    return [item["code"] for item in result.diagnostics]


def test_read_file_gives_content_and_range(do: Any, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\ntwo\nthree\n")
    whole = do("read_file", path="a")
    assert (whole.status, whole.exit, whole.output) == ("exited", 0, b"one\ntwo\nthree\n")
    assert whole.key == {"exit": 0, "sha256": canon.digest(b"one\ntwo\nthree\n")}
    assert do("read_file", path="a", start_line=2).output == b"two\nthree\n"
    assert do("read_file", path="a", start_line=2, end_line=2).output == b"two"
    assert do("read_file", path="a", start_line=9).output == b""
    cut = do("read_file", path="a", max_bytes=5)
    assert (cut.output, cut.size, cut.truncated) == (b"one\nt", 14, True)
    assert codes(do("read_file", path="a", start_line=3, end_line=2)) == ["read_file.range"]


def test_read_file_never_hangs_or_raises(do: Any, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    (workspace / "loop").symlink_to("loop")
    (workspace / "dir").mkdir()
    (workspace / "binary").write_bytes(b"\0\xff\xfe")
    with (workspace / "huge").open("wb") as file:
        file.truncate(10 << 30)
    wanted = {
        "no": "path.missing",
        "fifo": "path.not_a_file",
        "dir": "path.not_a_file",
        "loop": "path.loop",
        "huge": "path.too_large",
        "../x": "path.parent",
        "/etc/passwd": "path.absolute",
        "a\0b": "path.control",
        "\ud800": "path.control",
    }
    for path, code in wanted.items():
        result = do("read_file", path=path)
        assert (result.status, result.exit, codes(result)) == ("exited", 1, [code])
        assert code.encode() in result.output and result.key == {"exit": 1, "codes": [code]}
    assert do("read_file", path="binary").output == b"\0\xff\xfe"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
def test_devices_are_no_files(do: Any, workspace: Path) -> None:
    os.mknod(workspace / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    assert codes(do("read_file", path="zero")) == ["path.not_a_file"]
    assert codes(do("write_file", path="zero", content="x")) == ["path.not_a_file"]


def test_write_file(do: Any, workspace: Path) -> None:
    result = do("write_file", path="a/b.c", content="é\n")
    assert (result.exit, result.output) == (0, b"a/b.c: 3 bytes\n")
    assert (workspace / "a/b.c").read_text() == "é\n"
    do("write_file", path="tool", content="#!/bin/sh\n", executable=True)
    do("write_file", path="tool", content="#!/bin/sh\necho\n")
    assert (workspace / "tool").stat().st_mode & 0o777 == 0o755
    assert codes(do("write_file", path="a", content="x")) == ["path.not_a_file"]
    assert codes(do("write_file", path="x", content="\ud800")) == ["write_file.text"]
    assert codes(do("write_file", path="a/b.c/d", content="x")) == ["path.not_a_folder"]


def test_a_full_disk_is_no_result_and_leaves_the_old_file(
    workspace: Path, do: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a").write_text("old")

    def full(*unused: object, **also: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(RunError, match="No space left on device") as found:
        do("write_file", path="a", content="new")
    assert found.value.code == "workspace.full"
    assert [item.name for item in workspace.iterdir()] == ["a"] and (workspace / "a").read_text() == "old"


PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def test_apply_patch(do: Any, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    (workspace / "a.py").chmod(0o755)
    (workspace / "old").write_text("old\n")
    more = "--- /dev/null\n+++ b/n/new\n@@ -0,0 +1 @@\n+n\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    result = do("apply_patch", patch=PATCH + more)
    assert result.output == b"changed a.py\ncreated n/new\ndeleted old\n"
    assert (workspace / "a.py").read_text() == "x = 2\n"
    assert (workspace / "a.py").stat().st_mode & 0o777 == 0o755
    assert (workspace / "n/new").read_text() == "n\n" and not (workspace / "old").exists()
    moved = do("apply_patch", patch="diff --git a/a.py b/b.py\nrename from a.py\nrename to b.py\n")
    assert moved.exit == 0 and (workspace / "b.py").stat().st_mode & 0o777 == 0o755


def test_a_refused_patch_changes_nothing(do: Any, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    bad = PATCH + "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y\n+z\n"
    result = do("apply_patch", patch=bad)
    assert (result.status, result.exit, codes(result)) == ("exited", 1, ["patch.missing"])
    assert result.diagnostics[0]["hint"] and result.diagnostics[0]["line"] == 6
    assert (workspace / "a.py").read_text() == "x = 1\n"
    assert codes(do("apply_patch", patch=PATCH.replace("a.py", "../a.py"))) == ["patch.path"]


def test_patterns_are_refused_where_paths_are_protected() -> None:
    """`tests/*` would protect a file of that name alone, and so nothing."""
    text = 'task T {\n  step a: tool.apply_patch { patch: "x" protect: ["tests/*"] }\n}\n'
    found = {item.code: item for item in check(parse(text, "t.spak"), catalog())}
    assert found["lang.argument"].line == 2
    assert "patterns such as * are not supported" in found["lang.argument"].hint
    plain = check(parse(text.replace("/*", ""), "t.spak"), catalog())
    assert "lang.argument" not in {item.code for item in plain}


def test_a_patch_leaves_alone_what_is_protected(do: Any, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("x = 1\n")
    (workspace / "also").symlink_to("src")
    for path in ("src/a.py", "also/a.py"):
        result = do("apply_patch", patch=PATCH.replace("a.py", path), protect=["src/"])
        assert codes(result) == ["patch.protected"]
    assert (workspace / "src/a.py").read_text() == "x = 1\n"
    assert do("apply_patch", patch=PATCH.replace("a.py", "src/a.py"), protect=["sr", "src/b"]).exit == 0


def test_links_do_not_lead_a_patch_astray(do: Any, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("x = 1\n")
    (workspace / "file").symlink_to("src/a.py")
    (workspace / "also").symlink_to("src")
    (workspace / "git").symlink_to(".git")
    (workspace / "out").symlink_to("/tmp")
    two = PATCH.replace("a.py", "src/a.py") + PATCH.replace("a.py", "also/a.py")
    new = "--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+x\n"
    for text, code in (
        (PATCH.replace("a.py", "file"), "patch.link"),
        (two, "patch.duplicate"),
        (new.format("git/config"), "patch.path"),
        (new.format("git/hooks/x"), "patch.path"),
        (new.format("out/x"), "path.outside"),
    ):
        assert codes(do("apply_patch", patch=text)) == [code]
    assert (workspace / "src/a.py").read_text() == "x = 1\n" and not list((workspace / ".git").iterdir())
    assert do("apply_patch", patch=PATCH.replace("a.py", "also/a.py")).exit == 0


def test_list_files(do: Any, workspace: Path) -> None:
    (workspace / "b/c").mkdir(parents=True)
    (workspace / "b/c/d").touch()
    (workspace / "a\nb").touch()
    (workspace / "l").symlink_to("/etc")
    assert do("list_files").output.decode() == "a\\nb\nb/\nb/c/\nb/c/d\nl@\n"
    assert do("list_files", depth=1).output.decode() == "a\\nb\nb/\nl@\n"
    assert do("list_files", path="b/c").output == b"d\n"
    assert codes(do("list_files", path="b/c/d")) == ["path.not_a_folder"]
    assert codes(do("list_files", path="l")) == ["path.outside"]


def test_list_files_says_when_it_stops(do: Any, workspace: Path) -> None:
    for number in range(2001):
        (workspace / f"{number:04}").touch()
    result = do("list_files")
    assert result.truncated and codes(result) == ["list_files.cut"]
    assert result.output.count(b"\n") == 2000


C = """
#include <math.h>
#define N 4
/* int no(void) { */
typedef struct point { int x; } point;
struct pair { int a, b; };
static const char *text = "int no(void) { }";
extern int later(int a);
static int table[N] = {1, 2};
int add(int a, int b) {
    if (a) { return b; }
    return a + b;
}
extern "C" {
__global__ void __launch_bounds__(128) kernel(float *x) { x[0] = 1; }
}
"""


def test_read_ast_outlines_c(do: Any, workspace: Path) -> None:
    (workspace / "a.cu").write_text(C)
    value = json.loads(do("read_ast", path="a.cu").output)
    assert value["language"] == "cuda"
    found = [(item["kind"], item["name"], item["line"]) for item in value["symbols"]]
    assert found == [
        ("include", "math.h", 2),
        ("macro", "N", 3),
        ("struct", "point", 5),
        ("type", "point", 5),
        ("struct", "pair", 6),
        ("variable", "text", 7),
        ("declaration", "later", 8),
        ("variable", "table", 9),
        ("function", "add", 10),
        ("function", "kernel", 15),
    ]
    assert next(item for item in value["symbols"] if item["name"] == "add")["end_line"] == 13


@pytest.mark.parametrize(
    "unit", ["{", "}", "(", "/*", '"', "a ", "#define\\\n", "a(", "*/*", "=;", "a{}", "struct a{}", "int a;"]
)
def test_the_outline_takes_one_pass(do: Any, workspace: Path, unit: str) -> None:
    (workspace / "a.c").write_text(unit * (1_000_000 // len(unit)))
    result = do("read_ast", path="a.c")
    assert result.exit == 0 and result.cpu_ms < 20_000 and len(result.output) < 1_000_000


@pytest.mark.sandbox
def test_read_ast_of_python(do: Any, workspace: Path) -> None:
    (workspace / "a.py").write_text(
        "import os.path\nfrom . import b\nX = 1\nclass A(B):\n    def f(self, x: int = 1):\n        '\\d'\n"
    )
    value = json.loads(do("read_ast", path="a.py").output)
    assert [(item["kind"], item["name"], item["line"]) for item in value["symbols"]] == [
        ("import", "os.path", 1),
        ("import", "..b", 2),
        ("variable", "X", 3),
        ("class", "A", 4),
        ("function", "A.f", 5),
    ]
    assert value["symbols"][4]["signature"] == "(self, x: int=1)"
    (workspace / "bad.py").write_text("x = 1\ndef :\n")
    bad = do("read_ast", path="bad.py")
    assert codes(bad) == ["read_ast.syntax"] and bad.diagnostics[0]["line"] == 2


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "text", ["(" * 100_000, "-" * 100_000 + "1", "\0", "x = '\\ud800'", "[" * 90 + "]" * 90]
)
def test_python_that_breaks_parsers(do: Any, workspace: Path, text: str) -> None:
    (workspace / "a.py").write_text(text)
    result = do("read_ast", path="a.py")
    assert result.status in ("exited", "timeout", "oom")


def test_read_ast_knows_its_languages(do: Any, workspace: Path) -> None:
    (workspace / "a.txt").touch()
    assert codes(do("read_ast", path="a.txt")) == ["read_ast.language"]
    assert codes(do("read_ast", path="no.c")) == ["path.missing"]


def test_a_workspace_that_is_gone_is_no_traceback(workspace: Path) -> None:
    shutil.rmtree(workspace)
    for name in ("read_file", "write_file", "list_files", "apply_patch", "read_ast"):
        args = {"path": "a.c", "content": "x", "patch": PATCH}
        result = TOOLS[name].run(Call("c", name, args, workspace, None))
        assert (result.status, result.exit) == ("exited", 1)
