"""BUDGET { requests } holds for what tools sent: the runner records it, and the shipped law reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from host_kit import PERMITS, Look, Write, catalog, host
from law_kit import under
from spak.ledger.files import FileLedgers
from spak.ports import Call, ToolResult
from spak.runner import Run
from spak.runner.genesis import genesis
from spak.workspace import Workspace

SPEC = """
AGENT Asks LEVEL 2 {
  CONFIG { BUDGET { requests: 2 } }
  START -> a
  TASK a {
    step l: tool.look { text: "1" } step m: tool.look { text: "2" } step n: tool.look { text: "3" }
  }
}
"""
SPENT = PERMITS + "forbidden(A) :- act(A, _), spent(/requests, N), allowance(/requests, M), M <= N.\n"


class Requesting(Look):
    """A tool that sends one request of a hundred bytes each time."""

    def run(self, call: Call) -> ToolResult:
        return replace(super().run(call), requests=1, request_bytes=100)


def test_what_tools_sent_is_recorded_and_ends_a_run_whose_budget_is_used_up(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "workspace", tmp_path / "store")
    body = genesis(SPEC, catalog(), {}, place.snapshot(), 5, {"run": "asks"}, law=under(SPENT))
    tools = {"look": Requesting(), "write": Write()}
    run = Run.create(FileLedgers(tmp_path), "asks", body, replace(host(), tools=tools), place)
    assert run.advance("full_auto") == "ended"
    assert run.state.status == "refused"
    assert (run.state.r7.requests, run.state.r7.request_bytes) == (2, 200)
    assert run.state.r7.codes == ("policy.forbidden",)
    run.close()
