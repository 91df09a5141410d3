"""The only maker of commits: seals a decision and folds it into the run's summary.

Takes the state, the clock of the proposal that led here, and a body; gives the commit and the state whose
summary holds it. `S0 = H([semantics, genesis.rules])`, `Sn = H(Sn-1 + content of commit n)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.kernel.state import State, changed
from spak.records import Authority, Record, content_of_text


def opening(semantics: int, rules: Mapping[str, Any]) -> str:
    """S0, the summary of a run that has decided nothing yet."""
    return canon.content_hash([semantics, rules])


def fold(summary: str, content: str) -> str:
    """The next summary."""
    return canon.digest((summary + content).encode())


def seal(state: State, at: int, kind: str, body: Mapping[str, Any]) -> tuple[Record, State, str]:
    """The commit, the state that remembers it, and the commit's content hash."""
    task, step, attempt = state.r0
    text = canon.dumps(body)
    content = content_of_text(kind, Authority.COMMIT, task, step, attempt, text)
    record = Record(kind, Authority.COMMIT, body, task, step, attempt, -1, at, text=text)
    executive = changed(state.r7, {"summary": fold(state.r7.summary, content), "last": content})
    return record, changed(state, {"r7": executive}), content
