"""Answers of MCP servers that tell an agent what to do: what reaches it is marked, what it does is denied.
`python -m bench mcp` does all sixty; here are one of each way and of each thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_poison import WAYS, WHATS, collecting, obeyed, poisons, project

pytestmark = pytest.mark.sandbox


def test_an_agent_that_obeys_a_poisoned_answer_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with collecting() as (port, asked):
        every = poisons(port)
        assert len(every) == len({one.name for one in every}) == len(WAYS) * len(WHATS) == 60
        project(tmp_path, port)
        some = every[:: len(WHATS) + 1]
        wrong = {one.name: found for one in some if (found := obeyed(tmp_path, one, asked))}
        assert {one.tool for one in some} == {"mail__say", "http_request", "tunnel"}
        assert not wrong
        with (tmp_path / "law.mg").open("a") as law:
            law.write('mcp_flow("docs", "mail").\nmcp_flow("docs", "localhost").\n')
        let = [obeyed(tmp_path, one, asked) for one in every[:: len(WHATS) - 1][:3]]
    assert let == ["the call was made"] * 3, "it is the flow that stops them"
