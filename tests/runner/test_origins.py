"""Which root the author of a text could see, read off the records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spak import canon
from spak.errors import RunError
from spak.ports import Call
from spak.records import Authority, Kind, Record
from spak.runner.origins import Origins
from spak.tools.apply_patch import ApplyPatch
from spak.workspace import Workspace

ASK = (Kind.PERMIT, Authority.COMMIT, {"act": "ask", "allow": True})


def origins(*records: tuple[Kind, Authority, Mapping[str, Any]]) -> Origins:
    made = Origins("r0")
    for kind, authority, body in records:
        made.feed(Record(kind, authority, body))
    return made


def answered(out: Any) -> tuple[Kind, Authority, Mapping[str, Any]]:
    return Kind.ACT, Authority.PROPOSAL, {"outcome": "answered", "out": out}


def exited(out: str) -> tuple[Kind, Authority, Mapping[str, Any]]:
    return Kind.ACT, Authority.PROPOSAL, {"outcome": "exited", "out": out}


def route(root: str) -> tuple[Kind, Authority, Mapping[str, Any]]:
    return Kind.ROUTE, Authority.COMMIT, {"signal": "success", "r3": root}


def test_an_answer_is_of_the_root_of_its_question_and_an_output_of_the_root_after_it() -> None:
    made = origins(ASK, answered("fix"), exited("told"), route("r1"), ASK, answered("good"), route("r2"))
    assert [made.of(text) for text in ("fix", "told", "good")] == ["r0", "r1", "r1"]
    assert (made.asked, made.root, made.of("of nobody")) == ("r1", "r2", "r1")


def test_a_long_answer_is_known_by_its_blob() -> None:
    text = "long " * 9000
    made = origins(ASK, answered({"$blob": canon.digest(text.encode()), "size": len(text)}), route("r1"), ASK)
    assert (made.of(text), made.of("another")) == ("r0", "r1")


def test_without_a_question_the_files_are_what_they_are() -> None:
    denied = (Kind.PERMIT, Authority.COMMIT, {"act": "ask", "allow": False})
    assert origins(route("r1")).of("text") == "r1"
    assert origins(denied, route("r1")).of("text") == "r1"
    host = (Kind.ROLLBACK, Authority.HOST, {"from": "x", "to": "y", "r3": "z"})
    assert origins(host).root == "r0"


def test_the_content_of_an_earlier_root(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "ws", tmp_path / "store")
    (tmp_path / "ws/sub").mkdir(parents=True)
    (tmp_path / "ws/sub/ä b.txt").write_text("one")
    (tmp_path / "ws/link").symlink_to("sub")
    root = place.snapshot()
    (tmp_path / "ws/sub/ä b.txt").write_text("two")
    later = place.snapshot()
    assert place.content_at(root, "sub/ä b.txt") == canon.digest(b"one")
    assert place.content_at(later, "sub/ä b.txt") == canon.digest(b"two")
    for path in ("sub", "sub/none", "none/x", "sub/ä b.txt/x", "link", "link/ä b.txt"):
        assert place.content_at(root, path) is None, path
    with pytest.raises(RunError) as caught:
        place.content_at("A" * 43, "x")
    assert caught.value.code == "workspace.object"


def test_a_root_that_is_lost_is_no_anchor(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")

    def shown(text: str, path: str) -> str | None:
        raise RunError("workspace.object", "gone", "")

    patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"
    result = ApplyPatch().run(Call("1", "apply_patch", {"patch": patch}, tmp_path, None, shown=shown))
    assert result.exit == 1 and b"patch.unknown" in result.output
    assert (tmp_path / "a").read_text() == "x\n" and result.anchors == {}


def test_a_file_behind_a_link_is_held_to_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").write_text("x\n")
    (tmp_path / "link").symlink_to("sub")
    asked: list[str] = []

    def shown(text: str, path: str) -> str | None:
        asked.append(path)
        return canon.digest(b"x\n")

    patch = "--- a/link/a\n+++ b/link/a\n@@ -1 +1 @@\n-x\n+y\n"
    result = ApplyPatch().run(Call("1", "apply_patch", {"patch": patch}, tmp_path, None, shown=shown))
    assert (result.exit, asked) == (0, ["sub/a"])
