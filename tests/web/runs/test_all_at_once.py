"""People who press everything at the same moment: one answer counts, and the ledger is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from process_kit import WAIT_S
from spakweb.store.ledger import export
from spakweb.store.runs.models import Command, Run
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)
ASKS = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


def test_every_action_at_once(cast: Any, ran: Callable[..., Run]) -> None:
    run = ran(ASKS)
    of, found, gate = run.summary["waiting"]["id"], [], threading.Barrier(10)

    def press(who: str, name: str, sent: dict[str, str]) -> None:
        try:
            client, where = cast.client(who), reverse(f"spak-run-{name}", args=[cast.team.slug, run.key])
            gate.wait(WAIT_S)
            found.append((name, client.post(where, sent).status_code))
        finally:
            connection.close()

    def work() -> None:
        try:
            gate.wait(WAIT_S)
            for _ in range(3):
                execute.advance(run.key)
        finally:
            connection.close()

    acts = [
        ("bob", "answer", {"of": of, "text": "one"}), ("alice", "answer", {"of": of, "text": "two"}),
        ("rita", "decide", {"of": of, "decision": "approve"}), ("bob", "control", {"do": "cancel"}),
        ("alice", "control", {"do": "pause"}), ("alice", "control", {"do": "resume"}),
        ("bob", "fork-go", {"at": str(run.count)}), ("bob", "labels", {"labels": "a"}),
        ("vera", "check", {}),
    ]  # fmt: skip
    threads = [threading.Thread(target=press, args=act) for act in acts] + [threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert len(found) == len(acts) and {code for _, code in found} <= {200, 302, 409}, found
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state in ("cancelled", "succeeded", "paused") and run.holder == "", (run.state, run.reason)
    assert Command.objects.filter(run=run, outcome="").count() <= 1
    told = export.checked(run)
    assert told["ok"] and told["equal"] and told["as_shown"], told
    assert Run.objects.filter(parent=run).count() == 1
