"""What the command line says of snapshots: nothing while they serve, and a line when one is thrown away."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import Cli
from spak import canon
from spak.kernel.replay import Replay
from spak.runner import run as module

LOOP = """
AGENT Loop LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 500 } }
  START -> t
  TASK t { step q: llm.query { prompt: "Go on." output_var: x } NEXT { success -> t } }
}
"""


@pytest.fixture
def snapshot(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The snapshot of the latest run, which waits."""
    monkeypatch.setattr(module, "LEAST", 5)
    (tmp_path / "loop.spak").write_text(LOOP)
    name = cli("run", "loop.spak", "--json").json["run"]
    for number in range(3):
        done = cli("step", "--answer", f"answer {number}", "--json")
        assert done.code == 4 and "snapshot" not in done.err
    path = tmp_path / ".spak/runs" / name / "snapshot"
    assert path.is_file()
    return path


def forged(path: Path) -> None:
    """Another number of steps in the state, and all hashes made to fit."""
    head, _, data = path.read_bytes().partition(b"\n")
    value = canon.loads(data[44:])
    dog = next(item for item in value["state"] if isinstance(item, list) and item[0] == "Watchdog")
    dog[2] += 7
    text = canon.dumps(value)
    sealed = canon.digest(text).encode() + b"\n" + text
    path.write_bytes(canon.dumps({**canon.loads(head), "data": canon.digest(sealed)}) + b"\n" + sealed)


def test_replay_compares_it(cli: Cli, snapshot: Path) -> None:
    found = cli("replay", "--json")
    assert (found.code, found.json["equal"], found.json["snapshot"]["problem"]) == (0, True, "")
    assert 5 < found.json["snapshot"]["records"] <= found.json["records"]
    forged(snapshot)
    found = cli("replay", "--json")
    assert (found.code, found.json["equal"]) == (1, True)
    assert found.json["snapshot"]["problem"] == "it is not the state that its records lead to"
    assert not snapshot.exists()
    assert "snapshot" not in cli("replay", "--json").json


def test_one_that_cannot_be_read_is_removed_by_replay(cli: Cli, snapshot: Path) -> None:
    snapshot.write_bytes(b"nothing")
    found = cli("replay")
    assert found.code == 1 and "DAMAGED" in found.err and not snapshot.exists()
    assert cli("replay").code == 0


def test_resume_says_that_it_replayed_all(cli: Cli, snapshot: Path) -> None:
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    before = cli("show", "--json").json["summary_hash"]
    found = cli("resume", "--json")
    assert (found.code, found.json["summary_hash"]) == (4, before)
    assert "ledger.snapshot_discarded" in found.err and "nothing is lost" in found.err
    assert "snapshot" not in cli("resume", "--json").err


def test_an_export_has_none(cli: Cli, snapshot: Path, tmp_path: Path) -> None:
    assert cli("export", "-o", "run.jsonl").code == 0
    assert cli("import", "run.jsonl", "--runs-dir", "other").code == 0
    assert not (tmp_path / "other" / snapshot.parent.name / "snapshot").exists()
    assert "snapshot" not in cli("replay", "run.jsonl", "--json").json


@pytest.fixture
def ended(cli: Cli, snapshot: Path) -> Path:
    """The same of the run when it has ended."""
    assert cli("cancel", snapshot.parent.name).code == 6
    assert cli("show", "--json").json["state"] == "cancelled"
    return snapshot


def test_a_run_that_ended_is_shown_without_a_replay(
    cli: Cli, ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = cli("show", "--json").json
    with monkeypatch.context() as watched:
        watched.setattr(Replay, "feed", lambda *ignored: pytest.fail("it was replayed"))
        assert cli("show", "--json").json == shown
    ended.unlink()
    assert cli("show", "--json").json == shown


@pytest.mark.parametrize("doubt", ["bytes", "stale", "version", "rules", "no file"])
def test_one_in_doubt_is_not_shown(cli: Cli, ended: Path, doubt: str) -> None:
    head, _, _ = ended.read_bytes().partition(b"\n")
    shown = cli("show", "--json").json
    forged(ended)
    assert cli("show", "--json").json != shown, "what is forged would be seen"
    if doubt == "no file":
        ended.unlink()
        ended.mkdir()
    elif doubt == "bytes":
        ended.write_bytes(ended.read_bytes()[:-1])
    else:
        _, _, sealed = ended.read_bytes().partition(b"\n")
        value = canon.loads(sealed[44:])
        other = {"stale": {"count": value["count"] - 1}, "version": {"layout": "x"}, "rules": {"rules": "x"}}
        text = canon.dumps({**value, **other[doubt]})
        sealed = canon.digest(text).encode() + b"\n" + text
        ended.write_bytes(canon.dumps({**canon.loads(head), "data": canon.digest(sealed)}) + b"\n" + sealed)
    assert cli("show", "--json").json == shown


def test_a_record_edited_after_the_end_is_no_run_to_show(cli: Cli, ended: Path) -> None:
    trace = ended.parent / "trace.jsonl"
    trace.write_bytes(trace.read_bytes().replace(b"answer 1", b"answer 7", 1))
    found = cli("show", "--json")
    assert found.code == 1 and "ledger.tampered" in found.err + found.out
