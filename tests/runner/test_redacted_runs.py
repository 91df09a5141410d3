"""A planted key is in nothing that a run keeps; what cannot be cleaned is not recorded; wire errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, Look, Write
from law_kit import under
from spak.cancel import Cancel
from spak.errors import RunError, UnavailableError
from spak.kernel.replay import replay
from spak.lang.catalog import Catalog, NamedEntry
from spak.ledger.export import export
from spak.ledger.files import FileLedgers
from spak.ports import Answer, Prompt
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.runner.views.aep import snapshots
from spak.runner.views.events import events
from spak.runner.views.items import items
from spak.runner.views.steps import steps
from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret
from spak.workspace import Workspace

KEY = "canary-5f1d0c77e0b94a"
SPEC = """
AGENT Planner LEVEL 5 {
  CONFIG { MODE full_auto }
  START -> look
  TASK look { GOAL "Look." TOOLS [look, write] RETRIES 20
    step p: llm.plan { role: "coder" output_var: seen }
    NEXT { success -> ask }
  }
  TASK ask {
    step q: llm.query { role: "coder" prompt: "Say {{seen}}" output_var: said }
    step keep: tool.write { path: "said.txt" text: said }
    step show: tool.look { text: said }
  }
}
"""
LONG = "word " * 5_000


@dataclass
class Says:
    """Answers in order; an exception is raised."""

    script: list[str | Exception]
    entry: NamedEntry = field(default_factory=lambda: NamedEntry("says", "a script"))
    asked: list[Prompt] = field(default_factory=list)
    model: str = "script"

    def check(self) -> None: ...

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        said = self.script.pop(0)
        if isinstance(said, Exception):
            raise said
        self.asked.append(prompt)
        if on_text is not None:
            for index in range(0, len(said), 7):
                on_text(said[index : index + 7])
        return Answer(said, {"input": 10, "output": 5, "cached": 8, "cache_write": 2}, self.model)


def call(tool: str, **args: Any) -> str:
    return json.dumps(
        {"control_packet": {"reasoning_trace": KEY, "tool_calls": [{"tool": tool, "args": args}]}}
    )


def begin(folder: Path, backend: Says, redactor: Any) -> Run:
    tools = {"look": Look(), "write": Write()}
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    body = genesis(SPEC, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(PERMITS))
    host = Host(tools=tools, backend=backend, redactor=redactor)
    return Run.create(FileLedgers(folder), "run-1", body, host, place)


def redactor() -> Redactor:
    return Redactor([Secret(KEY)])


def test_a_planted_key_is_nowhere(tmp_path: Path) -> None:
    shown: list[str] = []
    backend = Says([KEY, call("look", text=f"{KEY} {LONG}"), f"{LONG}\nthe key is {KEY}\nand more"])
    backend.model = f"a server that echoes {KEY}"
    run = begin(tmp_path, backend, redactor())
    run.performer.on_text = shown.append
    assert run.advance("full_auto") == "ended"
    assert run.state.status == "succeeded"
    exported = BytesIO()
    export(run.ledger, exported)
    found = replay(record for record, _ in run.ledger.read())
    assert found.difference is None
    for shape in (events, items, steps, lambda records, blobs: snapshots(records)):
        lines = json.dumps(list(shape((record for record, _ in run.ledger.read()), run.ledger.blobs)))
        assert KEY not in lines and len(lines) > 1000
    errors = [record.body["r4"] for record, _ in run.ledger.read() if "r4" in record.body]
    assert errors[0]["payload"] == "[redacted:key]"
    run.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY.encode() not in exported.getvalue()
    assert (tmp_path / "run-1/workspace/said.txt").read_text().count("[redacted:key]") == 1
    assert not any(KEY in item["text"] for prompt in backend.asked for item in prompt.items)
    assert KEY not in "".join(shown) and "[redacted:key]" in "".join(shown)


class Broken:
    """Takes nothing out and says so, when it meets the key."""

    def text(self, text: str) -> str:
        if KEY in text:
            raise RunError("llm.redaction", "cannot", "mend it")
        return text

    def value(self, value: Any) -> Any:
        self.text(json.dumps(value))
        return value

    def stream(self, put: Callable[[str], None]) -> Callable[[str], None]:
        return put


@pytest.mark.parametrize("at", ["answer", "output"])
def test_what_cannot_be_cleaned_is_not_recorded_and_the_run_can_go_on(tmp_path: Path, at: str) -> None:
    plain = call("write", path="a.txt", text="x").replace(KEY, "")
    bad = f"say {KEY}" if at == "answer" else plain
    run = begin(tmp_path, Says([bad]), Broken())
    if at == "output":
        leak = run.performer.host.tools["write"]
        inner = leak.run
        leak.run = lambda call: replace(inner(call), output=KEY.encode())  # type: ignore[method-assign]
    with pytest.raises(RunError) as caught:
        run.advance("full_auto")
    assert caught.value.code == "llm.redaction"
    pending, count = run.pending().id, run.ledger.count
    assert not list((tmp_path / "run-1/workspace").iterdir())
    run.close()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    tools = {"look": Look(), "write": Write()}
    place = Workspace(tmp_path / "run-1/workspace", tmp_path / "run-1/store")
    script: list[str | Exception] = [plain] if at == "answer" else []
    host = Host(tools=tools, backend=Says([*script, "word"]), redactor=redactor())
    again = Run.open(FileLedgers(tmp_path), "run-1", host, place)
    assert again.pending().id == pending and again.ledger.count == count + 1
    assert again.advance("full_auto") == "ended" and again.state.status == "succeeded"
    again.close()


@pytest.mark.parametrize("code", ["llm.unreachable", "llm.no_key", "llm.timeout"])
def test_an_error_of_the_wire_stops_the_run_and_is_no_answer(tmp_path: Path, code: str) -> None:
    backend = Says([UnavailableError(code, "no", "mend it"), call("look", text="x"), "word"])
    run = begin(tmp_path, backend, None)
    count = run.ledger.count
    with pytest.raises(UnavailableError) as caught:
        run.advance("full_auto")
    assert caught.value.code == code and run.ledger.count == count
    assert run.advance("full_auto") == "ended" and run.state.status == "succeeded"
    assert not [r for r, _ in run.ledger.read() if r.body.get("outcome") == "failed"]
    assert run.state.r2 == 30  # cached and written tokens are part of the input
    run.close()


def test_a_cancelled_call_leaves_the_question_open(tmp_path: Path) -> None:
    run = begin(tmp_path, Says([RunError("llm.cancelled", "it was", "")]), None)
    run.performer.on_text = None
    backend = run.performer.host.backend
    assert isinstance(backend, Says)
    answer = backend.answer

    def stopped(*given: Any) -> Answer:
        run.performer.cancel.set()
        assert given[2].is_set()
        return answer(*given)

    backend.answer = stopped  # type: ignore[method-assign]
    assert run.advance("full_auto") == "interrupted"
    assert run.pending().act == "plan"
    assert not [r for r, _ in run.ledger.read() if r.kind == Kind.ACT]
    run.close()
