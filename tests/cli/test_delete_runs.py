"""`spak runs --delete`: a run that ended goes as a whole; no other does."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

from cli_calls import Cli


def test_an_ended_run_is_deleted_with_all_that_it_held(cli: Cli, ended: str, runs: Path) -> None:
    fork = cli("fork", ended, "--at", "3", "--json").json["run"]
    done = cli("runs", "--delete", ended, "--delete", ended, "--json")
    assert (done.code, done.json) == (0, {"removed": [ended]})
    assert [path.name for path in runs.iterdir()] == [fork]
    assert cli("show", ended).code == 2
    assert cli("replay", fork, "--json").json["equal"] is True
    assert cli("runs", "--delete", ended).code == 2


def test_a_run_that_goes_on_stays(cli: Cli, waiting: str, runs: Path) -> None:
    done = cli("runs", "--delete", waiting, "--json")
    assert (done.code, done.error) == (2, "usage.not_ended") and f"spak cancel {waiting}" in done.out
    assert cli("show", waiting, "--json").json["state"] == "waiting"
    cli("cancel", waiting)
    assert cli("runs", "--delete", waiting).code == 0 and not list(runs.iterdir())


def test_a_run_that_is_held_stays(cli: Cli, ended: str, runs: Path) -> None:
    with (runs / ended / "lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = cli("runs", "--delete", ended, "--json")
    assert (done.code, done.error) == (1, "ledger.busy")
    assert (runs / ended / "trace.jsonl").is_file()


def test_one_whose_records_cannot_be_read_can_go(cli: Cli, ended: str, runs: Path) -> None:
    (runs / ended / "trace.jsonl").write_bytes(b"nothing\n")
    assert cli("runs", "--delete", ended).code == 0 and not list(runs.iterdir())


def test_killed_in_the_middle_the_rest_is_cleaned_up(cli: Cli, ended: str, runs: Path) -> None:
    def before() -> None:
        from spak.cli import run_folders

        run_folders._remove = lambda folder: os.kill(os.getpid(), signal.SIGKILL)

    assert cli("runs", "--delete", ended, before=before).code == -signal.SIGKILL
    assert cli("runs", "--json").json == {"runs": []}
    assert cli("runs", "--clean", "--json").json == {"removed": [f".deleted-{ended}"]}
    assert not list(runs.iterdir())
