"""Tools that start programs in the sandbox, with the real launcher."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from spak.ports import Call, Limits, Toolchain
from spak.tools import TOOLS

pytestmark = pytest.mark.sandbox

CORRECT = "#include <math.h>\ndouble f(double x) { return sqrt(x) * SCALE; }\n"


def codes(result: Any) -> list[str]:
    return [item["code"] for item in result.diagnostics]


def test_run_keeps_both_streams_and_the_exit(do: Any) -> None:
    result = do("run", cmd=["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.status, result.exit, result.output) == ("exited", 3, b"out\nerr\n")
    assert result.key == {"exit": 3} and result.size == 8
    assert do("run", cmd=["echo", "$HOME", "*", "a b", ";ls"]).output == b"$HOME * a b ;ls\n"


def test_run_writes_only_where_it_may(do: Any, workspace: Path) -> None:
    assert do("run", cmd=["touch", "a"]).exit == 0
    assert (workspace / "a").exists()
    assert do("run", cmd=["touch", "b"], writable=False).exit != 0
    assert not (workspace / "b").exists()


def test_run_in_a_folder_with_variables(do: Any, workspace: Path) -> None:
    (workspace / "a/b").mkdir(parents=True)
    (workspace / "inner").symlink_to("a/b")
    told = ["sh", "-c", 'pwd; echo "$DEBUG|$EMPTY|$HOME"; touch made']
    result = do("run", cmd=told, working_dir="a/b", env={"DEBUG": "a b; id", "EMPTY": ""})
    assert result.output == b"/ws/a/b\na b; id||/tmp\n" and (workspace / "a/b/made").exists()
    assert do("run", cmd=["pwd"], working_dir="inner").output == b"/ws/a/b\n"
    assert do("run", cmd=["pwd"], working_dir=".").output == b"/ws\n"
    checked = do("run", cmd=["false"], working_dir="a", verdict_file="v.txt")
    assert checked.exit == 1 and (workspace / "v.txt").exists()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"working_dir": "missing"}, "path.not_a_folder"),
        ({"working_dir": "missing/deeper"}, "path.missing"),
        ({"working_dir": "file"}, "path.not_a_folder"),
        ({"working_dir": "out"}, "path.outside"),
        ({"working_dir": ".."}, "path.parent"),
        ({"working_dir": "/etc"}, "path.absolute"),
        ({"env": {"A=B": "x"}}, "run.env"),
        ({"env": {"": "x"}}, "run.env"),
        ({"env": {"A": "x\0y"}}, "run.env"),
    ],
)
def test_run_starts_nothing_elsewhere_or_with_odd_variables(
    do: Any, workspace: Path, args: dict[str, Any], code: str
) -> None:
    (workspace / "file").touch()
    (workspace / "out").symlink_to("/etc")
    assert codes(do("run", cmd=["touch", "made"], **args)) == [code]
    assert not (workspace / "made").exists()


def test_run_ends_what_hangs_and_names_what_is_missing(do: Any) -> None:
    result = do("run", cmd=["sleep", "60"], timeout_s=0.5)
    assert result.status == "timeout"
    missing = do("run", cmd=["no-such-program"])
    assert missing.status in ("launcher", "exited") and missing.exit != 0 and missing.output
    assert codes(do("run", cmd=[""])) == ["run.empty"]


def test_run_finds_pytest_in_the_toolchain(do: Any, workspace: Path) -> None:
    (workspace / "test_a.py").write_text("def test_a():\n    assert 1 == 2\n")
    for without in ("", "pytest"):
        result = do("run", cmd=["pytest", "-q", "--disable-plugin-autoload", "test_a.py"], without=without)
        assert result.exit == 1 and b"assert 1 == 2" in result.output
    assert sorted(item.name for item in workspace.iterdir()) == ["test_a.py"]


def test_the_verdict_is_written_last_and_not_by_the_program(do: Any, workspace: Path) -> None:
    forge = ["sh", "-c", "echo PASS > result.txt; exit 1"]
    assert do("run", cmd=forge, verdict_file="result.txt").exit == 1
    assert (workspace / "result.txt").read_text() == "FAIL (exit 1)\n"
    assert do("run", cmd=["true"], verdict_file="result.txt").exit == 0
    assert (workspace / "result.txt").read_text() == "PASS\n"
    (workspace / "result.txt").unlink()
    (workspace / "result.txt").symlink_to("/etc/hostname")
    assert codes(do("run", cmd=["true"], verdict_file="result.txt")) == ["path.outside"]


def test_what_a_tool_wrote_the_sandbox_may_write_again(do: Any, workspace: Path) -> None:
    do("run", cmd=["true"])
    do("write_file", path="d/a", content="x")
    assert do("run", cmd=["sh", "-c", "echo more >> d/a && touch d/b"]).exit == 0
    assert (workspace / "d/a").read_text() == "xmore\n"


def test_nothing_runs_without_a_launcher(workspace: Path, toolchain: Toolchain) -> None:
    for name, args in (("run", {"cmd": ["true"]}), ("python_repl", {"code": "1"})):
        result = TOOLS[name].run(Call("c", name, args, workspace, None, toolchain=toolchain))
        assert result.status == "launcher" and b"nothing runs outside a sandbox" in result.output


def test_python_repl_shows_output_and_value(do: Any, workspace: Path) -> None:
    (workspace / "mine.py").write_text("n = 5\n")
    (workspace / "json.py").write_text("raise SystemExit(9)\n")
    result = do("python_repl", code="import json, mine\nprint('é')\nx = mine.n\nx + 1")
    assert (result.exit, result.output.decode()) == (0, "é\n6\n")
    assert do("python_repl", code="").output == b""
    assert do("python_repl", code="import sys; sys.exit(4)").exit == 4


def test_python_repl_names_the_exception(do: Any) -> None:
    result = do("python_repl", code="x = 1\n\n1 / 0\n")
    assert result.exit == 1 and codes(result) == ["ZeroDivisionError"]
    assert result.diagnostics[0]["line"] == 3 and result.key == {"exit": 1, "codes": ["ZeroDivisionError"]}
    assert b"<string>" not in result.output
    broken = do("python_repl", code="def (:\n")
    assert codes(broken) == ["SyntaxError"] and broken.diagnostics[0]["line"] == 1
    assert codes(do("python_repl", code="1", without="python")) == ["python_repl.missing"]


def test_cc_compiles_a_library_and_a_program(do: Any, workspace: Path) -> None:
    (workspace / "f.c").write_text(CORRECT)
    result = do("cc", source="f.c", output="build/f.so", flags=["-O3", "-lm"], defines={"SCALE": 2})
    assert (result.exit, result.diagnostics, result.output) == (0, (), b"build/f.so\n")
    assert (workspace / "build/f.so").read_bytes()[:4] == b"\x7fELF"
    (workspace / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("hi"); }\n')
    assert do("cc", source="main.c", shared=False).exit == 0
    assert do("run", cmd=["./main"]).output == b"hi\n"


def test_cc_reads_flags_from_the_source(do: Any, workspace: Path) -> None:
    (workspace / "f.c").write_text(f"// a kernel\n// spak-flags: -O2 -DSCALE=3\n{CORRECT}")
    assert do("cc", source="f.c").exit == 1
    assert do("cc", source="f.c", flags_from_source=True).exit == 0
    (workspace / "f.c").write_text("// spak-flags: -fplugin=x.so\nint x;\n")
    assert codes(do("cc", source="f.c", flags_from_source=True)) == ["cc.flag"]


def test_what_instantiate_writes_cc_compiles(do: Any, workspace: Path) -> None:
    (workspace / "t.c").write_text("#ifndef TILE\n#error no tile\n#endif\nint tile = TILE;\n")
    params = {"TILE": 64, "FLAGS": "-O3 -mavx2 -fno-math-errno"}
    assert do("instantiate", template="t.c", path="gen/k.c", params=params).exit == 0
    result = do("cc", source="gen/k.c", flags_from_source=True)
    assert (result.exit, result.output) == (0, b"gen/k.so\n")


def test_cc_says_what_is_wrong_where(do: Any, workspace: Path) -> None:
    (workspace / "f.c").write_text("int f(void) {\n  int unused;\n  return nothing;\n}\n")
    result = do("cc", source="f.c", flags=["-Wall"])
    error, warning = sorted(result.diagnostics, key=lambda item: item["severity"])[:2]
    assert (error["severity"], error["file"], error["line"]) == ("error", "f.c", 3)
    assert "nothing" in error["message"]
    assert (warning["severity"], warning["line"], warning["code"]) == ("info", 3, "note") or (
        warning["code"] == "-Wunused-variable"
    )
    assert result.exit == 1 and result.key == {"exit": 1, "codes": ["error"]}
    assert b"f.c:3: error:" in result.output


def test_cc_reports_the_linker(do: Any, workspace: Path) -> None:
    (workspace / "f.c").write_text("int g(void);\nint main(void) { return g(); }\n")
    result = do("cc", source="f.c", shared=False)
    assert result.exit == 1 and "link" in codes(result)
    assert any("undefined reference to" in item["message"] for item in result.diagnostics)


@pytest.mark.parametrize(
    "flag",
    [
        "-B/tmp",
        "-specs=x",
        "@file",
        "-wrapper",
        "-fplugin=x.so",
        "-fplugin-arg-x-y",
        "-dumpbase",
        "-I/usr/include",
        "-I../up",
        "-Ia/../../up",
        "-include",
        "-Wl,-rpath,/x",
        "-Wp,-MD,/x",
        "-Wa,@x",
        "-o",
        "/etc/passwd",
        "-fdump-tree-all",
        "-fopt-info-all=naive.c",
        "-fstack-usage",
        "-fprofile-use=x",
        "-fuse-ld=x",
        "-L/tmp",
        "-l/x",
        "--sysroot=/",
        "-x",
        "-E",
        "-DX=\n1",
        "x.c",
        "",
    ],
)
def test_cc_refuses_flags_that_reach_further(
    workspace: Path, launcher: Any, toolchain: Toolchain, flag: str
) -> None:
    (workspace / "f.c").write_text("int x;\n")
    call = Call("c", "cc", {"source": "f.c", "flags": [flag]}, workspace, launcher, Limits(), toolchain)
    assert codes(TOOLS["cc"].run(call)) == ["cc.flag"]


def test_cc_refuses_other_misuse(do: Any, workspace: Path) -> None:
    (workspace / "f.c").write_text("int x;\n")
    (workspace / "-x.c").write_text("int x;\n")
    assert codes(do("cc", source="no.c")) == ["path.missing"]
    assert codes(do("cc", source="../f.c")) == ["path.parent"]
    assert codes(do("cc", source="f.c", output="../f.so")) == ["path.parent"]
    assert codes(do("cc", source="f.c", output="./f.c")) == ["cc.output"]
    assert codes(do("cc", source="f.c", defines={"a-b": 1})) == ["cc.define"]
    assert codes(do("cc", source="f.c", defines={"A": "\n"})) == ["cc.define"]
    missing = do("cc", source="f.c", without="gcc")
    assert (missing.exit, codes(missing)) == (127, ["cc.missing"])
    assert do("cc", source="-x.c").exit == 0


def test_cc_ends_a_compiler_bomb(do: Any, workspace: Path) -> None:
    (workspace / "f.c").write_text('#include "f.c"\n#include "f.c"\n' * 20)
    (workspace / "g.c").write_text("int x[1L << 40] = {1};\nint y[] = {[0 ... 99999999] = 1};\n")
    nested = do("cc", source="f.c", limits=Limits(wall_s=3))
    assert nested.status != "exited" or nested.exit
    big = do("cc", source="g.c", limits=Limits(wall_s=3, file_bytes=1 << 20))
    assert big.status != "exited" or big.exit


CUDA = "__global__ void k(float *x) { x[threadIdx.x] *= 2.0f; }\n"


def test_nvcc_says_what_a_kernel_uses_or_that_it_is_missing(do: Any, workspace: Path) -> None:
    (workspace / "k.cu").write_text(CUDA)
    missing = do("nvcc", source="k.cu", without="nvcc")
    assert (missing.exit, codes(missing)) == (127, ["nvcc.missing"])
    if shutil.which("nvcc"):
        result = do("nvcc", source="k.cu", output="out/k.cubin", arch="sm_80", limits=Limits(wall_s=100))
        assert result.exit == 0, result.output
        assert (workspace / "out/k.cubin").read_bytes()[:4] == b"\x7fELF"
        assert any("registers" in item["message"] for item in result.diagnostics)
        (workspace / "k.cu").write_text("__global__ void k() {\n  no;\n}\n")
        bad = do("nvcc", source="k.cu", limits=Limits(wall_s=100))
        error = next(item for item in bad.diagnostics if item["severity"] == "error")
        assert bad.exit != 0 and (error["file"], error["line"]) == ("k.cu", 2)


def test_nvcc_refuses_flags_that_reach_further(workspace: Path, launcher: Any) -> None:
    (workspace / "k.cu").write_text(CUDA)
    chain = Toolchain(programs={"nvcc": "/usr/bin/false"})
    for flag in ("-ccbin=x", "--run", "-I/x", "-Xcompiler=-B.", "-optf=x", "-dryrun"):
        call = Call("c", "nvcc", {"source": "k.cu", "flags": [flag]}, workspace, launcher, toolchain=chain)
        assert codes(TOOLS["nvcc"].run(call)) == ["nvcc.flag"]


def test_nsight_makes_no_figure_up(do: Any) -> None:
    result = do("nsight", cmd=["./program"])
    assert (result.status, result.exit, codes(result)) == ("exited", 127, ["nsight.unavailable"])
    assert b"nothing was measured" in result.output


def test_nsight_gives_the_profiler_the_program(workspace: Path, launcher: Any) -> None:
    chain = Toolchain(programs={"ncu": "/usr/bin/echo"})
    call = Call(
        "c", "nsight", {"cmd": ["./p", "1"], "metrics": ["a.b"]}, workspace, launcher, toolchain=chain
    )
    assert TOOLS["nsight"].run(call).output == b"--csv --metrics a.b ./p 1\n"
