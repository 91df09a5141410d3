"""A guarded session as the draft of a spec: whatever it did, the draft checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spak import canon
from spak.config import catalog
from spak.errors import RunError
from spak.guard.as_spec import draft
from spak.lang import parse
from spak.lang.check import check
from spak.ledger.memory import MemoryLedgers
from spak.patch import PatchRefused, apply
from spak.program import compile as compile_program
from spak.records import Record
from spak.workspace.tree import TREE

Files = Mapping[str, bytes]


class Session:
    """Records and objects of a session, as a ledger and a store have them."""

    def __init__(self, files: Files) -> None:
        self.objects: dict[str, bytes] = {}
        body = {"host": {"run": "r-1", "labels": {"agent": "claude"}}, "rules": {"r3": self.root(files)}}
        self.records = [Record("genesis", "proposal", body)]

    def root(self, files: Files) -> str:
        lines = [
            f"f {self.put(data)} {len(data)} ".encode() + path.encode("utf-8", "surrogateescape") + b"\0"
            for path, data in sorted(files.items())
        ]
        return self.put(TREE + b"".join(lines))

    def put(self, data: bytes) -> str:
        self.objects[canon.digest(data)] = data
        return canon.digest(data)

    def read(self, digest: str) -> bytes:
        if digest not in self.objects:
            raise RunError("workspace.object", "it is not there")
        return self.objects[digest]

    def did(self, tool: str, args: Mapping[str, Any], r3: str = "", **act: Any) -> None:
        found = {"outcome": "exited", "exit": 0, **({"r3": r3} if r3 else {}), **act}
        txn = {"txn": "rollback"} if found["outcome"] != "exited" else {}
        self.records += [
            Record("permit", "commit", {"act": "tool", "name": tool, "args": args, "allow": True}),
            Record("act", "proposal", found),
            Record("route", "commit", {"signal": "success", **txn}),
        ]

    def changed(self, files: Files, **act: Any) -> None:
        root = self.root(files)
        self.did("contained", {"root": root, "changes": 1, "paths": []}, root, **act)

    def draft(self) -> Any:
        blobs = MemoryLedgers().create("r-1", Record("genesis", "proposal", {}, at=5)).blobs
        made = draft(self.records, blobs, self.read)
        found = check(parse(made.text), catalog())
        assert found == () or not list(found), (made.text, found)
        return made


def steps(text: str) -> list[tuple[str, str]]:
    """The names of the steps, and the patch of each that has one, as a run has it."""
    task = compile_program(parse(text), catalog(), {}).tasks["Session"]
    found = []
    for step in task.steps:
        patch: Any = step.args.get("patch", "")
        found.append((step.id, patch if isinstance(patch, str) else "".join(patch.parts)))
    return found


HOSTILE = [
    "plain\n",
    "a {{b}} \\{{c}} {{\n{{input.x}}\n",
    'quotes """ and "x" \\" \\\\ end',
    "\t tabs \r\n and returns\r\n",
    'bidi \u202e and \u00e9 \U0001f600 and } " ; // no comment\n',
    'task X { step y: tool.run { cmd: "rm" } }\n}\n}\n',
    "\n\n\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_patch_of_any_text_is_the_step_that_makes_it(text: str) -> None:
    made = Session({"a.txt": b"before\n"})
    made.changed({"a.txt": text.encode(), "new.txt": text.encode()})
    spec = made.draft()
    assert spec.steps == 1
    [(name, patch)] = steps(spec.text)
    found = apply(patch, {"a.txt": b"before\n"}.get)
    assert not isinstance(found, PatchRefused), found
    after = {"a.txt": text.encode(), "new.txt": text.encode()}
    assert name == "change_1" and {one.path: one.after for one in found} == after


def test_what_no_step_can_say_is_a_comment_and_what_was_taken_back_is_not_there() -> None:
    made = Session({"a": b"1\n", "b": b"1\n"})
    made.changed({"a": b"\xff\0", "b": b"2\n", "c\nd // e": b"x\n"})
    made.changed({"a": b"3\n"}, outcome="invalid")
    made.did("run", {"cmd": ["sh", "-c", 'echo {{x}} """'], "timeout_s": 5})
    made.did("run", {"cmd": ["false"]}, exit=1)
    made.did(
        "model_request", {"request": json.dumps({"messages": [{"role": "user", "content": "Mend {{it}}"}]})}
    )
    made.did("ask_person", {"question": "which?"})
    made.did("tunnel", {"host": "example.org", "port": 443})
    made.did("write_file", {"path": "x", "content": {"$blob": "A" * 43, "size": 1, "head": "x"}})
    text = made.draft().text
    assert "// a: changed too" in text and "// c d // e" in text and 'GOAL "Mend \\{{it}}"' in text
    assert "// write_file: its arguments are not here" in text
    assert [name for name, _ in steps(text)] == ["change_1", "run_2"]


def test_changes_that_a_person_took_back_leave_no_step() -> None:
    made = Session({"a": b"1\n"})
    made.changed({"a": b"2\n"})
    made.changed({"a": b"3\n"})
    made.changed({"a": b"2\n"})
    assert made.draft().steps == 1
    made.changed({"a": b"1\n"})
    assert made.draft().steps == 0


def test_a_long_session_is_cut_where_a_spec_ends() -> None:
    made = Session({})
    for number in range(40):
        made.did("write_file", {"path": f"f{number}", "content": "x" * 10_000})
    assert " more are left out" in made.draft().text


def test_a_forged_tool_or_argument_is_no_text_of_the_spec() -> None:
    made = Session({})
    made.did('run { cmd: "x" } step evil: tool.run', {"a": "b"})
    made.did("run", {'cmd: ["rm"] } step evil: tool.run { cmd': "b"})
    assert "evil" not in made.draft().text
