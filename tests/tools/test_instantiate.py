"""`instantiate`: defines in front of a template, flags in the first line, paths that stay inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spak.ports import Call, ToolResult
from spak.tools.instantiate import Instantiate


def call(workspace: Path, **args: Any) -> ToolResult:
    full = {"template": "t.c", "path": "out/k.c", "params": {}, **args}
    return Instantiate().run(Call("c1", "instantiate", full, workspace, None))


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "t.c").write_bytes(b"int main(void) { return TILE; }\n")
    return folder


def test_what_it_writes(ws: Path) -> None:
    params = {"TILE": 64, "LAYOUT": "PACKED", "B": -2, "X": 0.5, "ON": True, "FLAGS": "-O3 -march=native"}
    result = call(ws, params=params, flags=["-Wall"])
    assert (result.status, result.exit) == ("exited", 0)
    assert (ws / "out" / "k.c").read_text() == (
        "// spak-flags: -Wall -O3 -march=native\n"
        "#define B -2\n#define LAYOUT PACKED\n#define ON 1\n#define TILE 64\n#define X 0.5\n"
        "int main(void) { return TILE; }\n"
    )
    assert result.key == call(ws, params=params, flags=["-Wall"]).key


def test_without_flags_there_is_no_line(ws: Path) -> None:
    call(ws, params={"TILE": 1, "FLAGS": ""})
    assert (ws / "out" / "k.c").read_text().startswith("#define TILE 1\n")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"params": {"tile": 1}}, "instantiate.name"),
        ({"params": {"A B": 1}}, "instantiate.name"),
        ({"params": {"A\n#include": 1}}, "instantiate.name"),
        ({"params": {f"P{k}": 1 for k in range(257)}}, "instantiate.name"),
        ({"params": {"A": "1\n#include <x>"}}, "instantiate.value"),
        ({"params": {"A": "f(x)"}}, "instantiate.value"),
        ({"params": {"A": ""}}, "instantiate.value"),
        ({"params": {"A": [1]}}, "instantiate.value"),
        ({"params": {"A": 2**64}}, "instantiate.value"),
        ({"params": {"A": float("inf")}}, "instantiate.value"),
        ({"params": {"FLAGS": 3}}, "instantiate.flag"),
        ({"params": {"FLAGS": "-O3 /etc/passwd"}}, "instantiate.flag"),
        ({"params": {"FLAGS_MORE": "-I/etc"}}, "instantiate.flag"),
        ({"flags": ["-O2\n#include"]}, "instantiate.flag"),
        ({"flags": ["-O2"] * 65}, "instantiate.flag"),
        ({"path": "t.c"}, "instantiate.path"),
        ({"path": "./out/../t.c"}, "path.missing"),
        ({"path": "../k.c"}, "path.parent"),
        ({"path": "/etc/k.c"}, "path.absolute"),
        ({"template": "missing.c"}, "path.missing"),
        ({"template": "away.c"}, "path.outside"),
        ({"path": "folder/k.c"}, "path.outside"),
        ({"path": "same.c"}, "instantiate.path"),
        ({"template": "binary"}, "instantiate.template"),
        ({"template": "big.c"}, "path.too_large"),
    ],
)
def test_refused(ws: Path, args: dict[str, Any], code: str) -> None:
    (ws / "away.c").symlink_to("/etc/passwd")
    (ws / "folder").symlink_to(ws.parent)
    (ws / "same.c").symlink_to("t.c")
    (ws / "binary").write_bytes(b"\x7fELF\0")
    (ws / "big.c").write_bytes(b"x" * ((1 << 20) + 1))
    result = call(ws, **args)
    assert (result.status, result.exit) == ("exited", 1)
    assert [item["code"] for item in result.diagnostics] == [code]
    assert not list(ws.rglob("k.c")) and not (ws.parent / "k.c").exists()
    assert (ws / "t.c").read_bytes() == b"int main(void) { return TILE; }\n"
