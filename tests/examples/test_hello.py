"""specs/examples/hello.spak: the smallest run, through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak

HELLO = str(EXAMPLES / "hello.spak")


@pytest.mark.sandbox
def test_it_runs_and_replays_equal(tmp_path: Path) -> None:
    code, done = spak(tmp_path, "run", HELLO, "--json")
    assert (code, done["state"], done["metrics"]["steps"]) == (0, "succeeded", 3)
    text = (run_dir(tmp_path, done) / "workspace/hello.txt").read_text()
    assert text == "Hello from a deterministic kernel.\n"
    code, again = spak(tmp_path, "replay", "latest", "--json")
    assert (code, again["equal"], again["first_difference"]) == (0, True, None)
    assert (again["records"], again["summary_hash"]) == (done["records"], done["summary_hash"])
    code, verified = spak(tmp_path, "ledger", "verify", "latest", "--json")
    assert (code, verified["ok"], verified["head"]) == (0, True, done["chain_head"])
