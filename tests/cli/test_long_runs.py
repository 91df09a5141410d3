"""What `spak show` and `spak report` read of a long run: its last snapshot and the records after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from spak import canon
from spak.cli import report
from spak.ledger import chain, files, snapshots
from spak.runner import run as module
from spak.runner.views import causes

LOOP = """
AGENT Loop LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 500 } }
  START -> t
  TASK t { step q: llm.query { prompt: "Go on." output_var: x } NEXT { success -> t } }
}
"""
SHORT, LONG = 4, 16
"""Answers of a run."""
FEW = 14
"""Records that may be read: those after the snapshot, the newest, and the first."""


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 5)
    monkeypatch.setattr(report, "WHOLE", 5)
    monkeypatch.setattr(causes, "TAIL", 5)


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """The records of ledger files that were read since the last time, by number, also by other processes."""
    listed = tmp_path / "read"
    real = files.decode

    def decode(line: bytes) -> Any:
        record = real(line)
        with listed.open("a") as file:
            file.write(f"{record.seq}\n")
        return record

    def since() -> list[int]:
        found = list(map(int, listed.read_text().split())) if listed.exists() else []
        listed.unlink(missing_ok=True)
        return found

    for where in (files, chain):
        monkeypatch.setattr(where, "decode", decode)
    return since


@pytest.fixture
def waiting(cli: Cli, tmp_path: Path) -> Callable[[int], Path]:
    """A run that waits after so many answers."""

    def made(answers: int) -> Path:
        (tmp_path / "loop.spak").write_text(LOOP)
        name = cli("run", "loop.spak", "--json").json["run"]
        for number in range(answers):
            assert cli("step", name, "--answer", f"answer {number}", "--json").code == 4
        return tmp_path / ".spak/runs" / name

    return made


@pytest.mark.parametrize("verb", ["show", "report"])
def test_a_longer_run_is_not_more_to_read(
    cli: Cli, waiting: Callable[[int], Path], read: Callable[[], list[int]], verb: str
) -> None:
    counts = []
    for answers in (SHORT, LONG):
        folder = waiting(answers)
        count = cli("show", folder.name, "--json").json["records"]
        assert count > answers * 3
        read()
        assert cli(verb, folder.name, "--json").code == 0
        found = read()
        counts.append(len(found))
        assert 0 in found and [seq for seq in found if 0 < seq < count - FEW] == []
    assert 0 < counts[1] <= counts[0] + FEW


def test_an_ended_run_is_told_from_its_newest_records(
    cli: Cli, waiting: Callable[[int], Path], read: Callable[[], list[int]]
) -> None:
    folder = waiting(LONG)
    cli("cancel", folder.name)
    read()
    found = cli("show", folder.name, "--json").json
    assert (found["state"], 0 < len(read()) <= FEW) == ("cancelled", True)
    assert [row["seq"] for row in found["refusal"]["records"]][-1] == found["records"] - 1


@pytest.mark.parametrize("verb", ["show", "report"])
def test_without_its_snapshot_it_says_the_same(
    cli: Cli, waiting: Callable[[int], Path], read: Callable[[], list[int]], verb: str
) -> None:
    folder = waiting(SHORT)
    with_it = cli(verb, folder.name, "--json").json
    snapshots.drop(folder)
    read()
    assert cli(verb, folder.name, "--json").json == with_it
    assert set(range(with_it.get("records", SHORT))) <= set(read())


def test_a_report_says_from_which_record_on_it_was_verified(
    cli: Cli, waiting: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = waiting(SHORT)
    kept = snapshots.found(folder, folder.name)
    assert kept is not None
    cli("report", folder.name)
    page = (folder / "report.html").read_text()
    assert f"verified, its first {kept.count} by one hash" in page
    assert f"equal from record {kept.count} on (of all: spak replay {folder.name})" in page
    cli("cancel", folder.name)
    cli("report", folder.name)
    ended = (folder / "report.html").read_text()
    assert f"none: its last snapshot is of its end (of all: spak replay {folder.name})" in ended
    monkeypatch.setattr(report, "WHOLE", 1000)
    cli("report", folder.name)
    page = (folder / "report.html").read_text()
    assert " records, verified, head" in page and "<dd>equal, summary" in page


def test_a_changed_byte_before_the_snapshot_is_found(cli: Cli, waiting: Callable[[int], Path]) -> None:
    folder = waiting(SHORT)
    trace = folder / "trace.jsonl"
    trace.write_bytes(trace.read_bytes().replace(b"answer 1", b"answer 7"))
    for verb in ("show", "report"):
        found = cli(verb, folder.name, "--json")
        assert "ledger.tampered" in found.out


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a snapshot holds beside the state, with all its hashes."""
    head, _, data = (folder / "snapshot").read_bytes().partition(b"\n")
    value = canon.loads(data[44:])
    change(value["beside"])
    text = canon.dumps(value)
    sealed = canon.digest(text).encode() + b"\n" + text
    forged = canon.dumps({**canon.loads(head), "data": canon.digest(sealed)}) + b"\n" + sealed
    (folder / "snapshot").write_bytes(forged)


@pytest.mark.parametrize(
    "change",
    [
        lambda beside: beside.pop("numbers"),
        lambda beside: beside.pop("tally"),
        lambda beside: beside["tally"].update(apart=["l", 1]),
        lambda beside: beside["tally"].update(evidence=["l", 1]),
    ],
    ids=["no numbers", "no tally", "a list of own tests", "a list of evidence"],
)
def test_a_snapshot_of_another_shape_is_not_used(
    cli: Cli, waiting: Callable[[int], Path], change: Callable[[dict[str, Any]], None]
) -> None:
    folder = waiting(SHORT)
    count = cli("show", folder.name, "--json").json["records"]
    with_it = cli("report", folder.name, "--json").json
    forge(folder, change)
    assert cli("show", folder.name, "--json").json["records"] == count
    assert cli("report", folder.name, "--json").json == with_it
    made = cli("fork", folder.name, "--at", str(count), "--json").json
    assert cli("replay", made["run"], "--json").json["equal"] is True


def test_replay_finds_a_tally_that_its_records_do_not_lead_to(
    cli: Cli, waiting: Callable[[int], Path]
) -> None:
    folder = waiting(SHORT)
    forge(folder, lambda beside: beside["tally"].update(checked=True))
    found = cli("replay", folder.name, "--json")
    assert (found.code, found.json["snapshot"]["problem"]) == (
        1,
        "it is not the state that its records lead to",
    )


def test_a_fork_from_the_snapshot_is_the_one_from_all_records(
    cli: Cli, waiting: Callable[[int], Path], read: Callable[[], list[int]]
) -> None:
    folder = waiting(LONG)
    count = cli("show", folder.name, "--json").json["records"]
    for at in (count, count - 1):
        read()
        quick = cli("fork", folder.name, "--at", str(at), "--json").json
        assert [seq for seq in read() if 0 < seq < count - FEW] == []
        kept = (folder / "snapshot").read_bytes()
        snapshots.drop(folder)
        slow = cli("fork", folder.name, "--at", str(at), "--json").json
        (folder / "snapshot").write_bytes(kept)
        assert (quick["state"], quick["summary_hash"]) == (slow["state"], slow["summary_hash"])
        assert quick["run"] not in (slow["run"], folder.name)
        shown = [cli("show", one["run"], "--json").json["registers"] for one in (quick, slow)]
        assert shown[0] == shown[1]
    assert cli("ledger", "verify", quick["run"]).code == 0
    assert cli("replay", quick["run"], "--json").json["equal"] is True
    answered = [cli("step", one["run"], "--answer", "on", "--json").json for one in (quick, slow)]
    assert answered[0]["summary_hash"] == answered[1]["summary_hash"]
    assert cli("replay", quick["run"], "--json").json["snapshot"]["problem"] == ""


def test_a_fork_before_the_snapshot_or_beyond_the_end(cli: Cli, waiting: Callable[[int], Path]) -> None:
    folder = waiting(SHORT)
    made = cli("fork", folder.name, "--at", "4", "--json").json
    assert made["records"] >= 4 and cli("replay", made["run"], "--json").json["equal"] is True
    found = cli("fork", folder.name, "--at", "1000", "--json")
    assert "run.fork" in found.out
