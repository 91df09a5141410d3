"""`grep`: what it finds, what it passes over, where it stops; and what its declaration means to the law."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate_kit import constitution, world
from gate_kit import workspace as furnished
from spak.lang.catalog import ToolEntry
from spak.policy.actions import Action
from spak.policy.facts import facts
from spak.policy.judge import judge
from spak.tools import DECLARED, TOOLS, grep, table


@pytest.fixture
def sources(workspace: Path) -> Path:
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("one\ntwo\nthree\nfour two\n")
    (workspace / "b.txt").write_text("two\r\n\ttab\n")
    return workspace


def codes(result: Any) -> list[str]:
    return [item["code"] for item in result.diagnostics]


def test_matches_with_path_and_line(do: Any, sources: Path) -> None:
    assert do("grep", pattern="two$").output == b"b.txt:1:two\nsrc/a.py:2:two\nsrc/a.py:4:four two\n"
    assert do("grep", pattern="^two$", glob="*.py").output == b"src/a.py:2:two\n"
    assert do("grep", pattern="t.o", path="src/a.py").output == b"src/a.py:2:two\nsrc/a.py:4:four two\n"
    assert do("grep", pattern="t.o", path="src", glob="src/*.py").output.count(b"\n") == 2
    none = do("grep", pattern="nowhere")
    assert (none.exit, none.output, none.key["matches"]) == (0, b"", 0)


def test_context_is_parted_as_grep_parts_it(do: Any, sources: Path) -> None:
    (sources / "src/a.py").write_text("".join(f"{number}\n" for number in range(10)))
    shown = do("grep", pattern="[27]", path="src", context=1).output.decode().splitlines()
    assert shown == [
        "src/a.py-2-1", "src/a.py:3:2", "src/a.py-4-3", "--", "src/a.py-7-6", "src/a.py:8:7", "src/a.py-9-8"
    ]  # fmt: skip
    one = do("grep", pattern="[34]", path="src", context=1).output.decode().splitlines()
    assert [line[-1] for line in one] == ["2", "3", "4", "5"]


def test_a_pattern_that_is_none_is_refused(do: Any, sources: Path) -> None:
    for pattern in ("(", "a{2000}", r"(?=x)", r"(a)\1"):
        assert codes(do("grep", pattern=pattern)) == ["grep.pattern"], pattern
    assert codes(do("grep", pattern="x", path="none")) == ["path.missing"]


def test_what_the_law_keeps_shut_is_passed_over(do: Any, sources: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("canary\n")
    (sources / "link").symlink_to(outside)
    (sources / "folder").symlink_to(tmp_path)
    os.link(outside, sources / "hard.txt")
    os.mkfifo(sources / "fifo")
    (sources / "binary").write_bytes(b"canary\0")
    for path in (".env", "id_rsa", ".ssh/config", ".git/config", "src/.aws/x", "deep/.git/HEAD"):
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        (sources / path).write_text("canary\n")
    assert do("grep", pattern="canary").output == b""
    assert do("grep", pattern="canary", path="src").output == b""
    (sources / "plain.txt").write_text("canary\n")
    assert do("grep", pattern="canary").output == b"plain.txt:1:canary\n"


def test_it_stops_at_its_bounds(do: Any, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sources / "src/a.py").write_text("x" * 1000 + "\n" + "x\n" * grep.MAX_LINES)
    cut = do("grep", pattern="x", path="src")
    assert codes(cut) == ["grep.cut"] and cut.truncated and cut.output.count(b"\n") == grep.MAX_LINES
    assert max(map(len, cut.output.splitlines())) < grep.MAX_WIDTH + 20
    monkeypatch.setattr(grep, "MAX_FILES", 1)
    assert codes(do("grep", pattern="nowhere")) == ["grep.cut"]
    monkeypatch.setattr(grep, "MAX_FILES", 9)
    monkeypatch.setattr(grep, "MAX_TOTAL", 1)
    assert codes(do("grep", pattern="nowhere")) == ["grep.cut"]


# ---- what an entry declares


def test_a_tool_that_declares_nothing_cannot_be_registered() -> None:
    found = TOOLS["grep"]

    class Other:
        entry: ToolEntry
        run = found.run

    for arguments in ({}, {**found.entry.arguments, "glob": "opens"}, {**found.entry.arguments, "x": "text"}):
        tool = Other()
        tool.entry = replace(found.entry, arguments=arguments)
        with pytest.raises(ValueError, match="does not declare its arguments"):
            table([tool])
    assert table([found]) == {"grep": found}


@pytest.mark.parametrize("how", ["reads", "edits", "writes", "deletes"])
def test_the_facts_and_the_decision_follow_from_what_is_declared(how: str, tmp_path: Path) -> None:
    """A new tool needs no line of the policy: each of its paths is judged by the use that it declares."""
    eyes = replace(world(furnished(tmp_path)), declared={"new_tool": {"at": how, "say": "text"}})

    def decided(args: dict[str, Any]) -> str:
        return judge(constitution(), Action("new_tool", args), eyes).decision

    known = facts(Action("new_tool", {"at": "src/a.py", "say": "x"}), eyes)
    assert [values[1:3] for name, values in known if name == "uses_path"]
    assert not {"unknown_tool", "unreadable"} & {name for name, _ in known}
    for path in ("../x", "link_abs", ".env", "/etc/passwd"):
        assert decided({"at": path, "say": "x"}) == "deny", path
    for args in ({}, {"at": 1}, {"at": "src/a.py", "other": "x"}):
        assert "unreadable" in {name for name, _ in facts(Action("new_tool", args), eyes)}
        assert decided(args) == "deny"
    assert decided({"at": "src/a.py"}) == "allow"
    assert decided({"at": "Makefile"}) == "allow"
    assert (decided({"at": ".git/config"}) == "allow") is (how == "reads")


@pytest.mark.parametrize("how", ["runs", "host", "tracks"])
def test_what_a_word_cannot_describe_is_denied_until_something_says_what_it_does(
    how: str, tmp_path: Path
) -> None:
    eyes = replace(world(furnished(tmp_path)), declared={"new_tool": {"at": how}})
    assert judge(constitution(), Action("new_tool", {"at": "x"}), eyes).decision == "deny"


@pytest.mark.parametrize("name", ["read_file", "read_ast", "list_files", "write_file", "instantiate"])
def test_a_declaration_says_what_the_facts_of_the_tool_say(name: str, tmp_path: Path) -> None:
    eyes = world(furnished(tmp_path))
    args = {key: "src/a.py" for key, how in DECLARED[name].items() if how != "text"}
    as_new = replace(eyes, declared={"new_tool": DECLARED[name]})

    def uses(tool: str, args: dict[str, Any]) -> set[Any]:
        return {fact for fact in facts(Action(tool, args), as_new) if fact[0] == "uses_path"}

    assert uses(name, args) == uses("new_tool", args) != set()
    if name == "list_files":
        assert uses(name, {}) == uses("new_tool", {}) != set()
