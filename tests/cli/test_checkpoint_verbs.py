"""`spak ledger checkpoint`, `prove` and `verify`, as an operator and an auditor use them."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

import log_kit
from cli_calls import Cli
from witness_kit import Witness, serving

SETTINGS = '[checkpoints]\nlog = "example.com/team"\nkey = "alice"\nto = ["evidence"]\n'


@pytest.fixture
def key(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The public key of the log in the test's folder, whose settings say where checkpoints go."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert cli("keys", "make", "alice").code == 0
    (tmp_path / "spak.toml").write_text(SETTINGS)
    log_kit.store(tmp_path / ".spak/runs")
    done = cli("ledger", "checkpoint", "--json")
    assert (done.code, done.json["size"], done.json["problems"]) == (0, 5, [])
    assert (tmp_path / "evidence/latest.checkpoint").read_text() == done.json["checkpoint"]
    return str(done.json["key"])


def test_a_checkpoint_is_printed_and_says_what_comes_next(cli: Cli, key: str, tmp_path: Path) -> None:
    done = cli("ledger", "checkpoint")
    assert done.code == 0 and done.out == (tmp_path / "evidence/latest.checkpoint").read_text()
    assert key in done.err and "next: spak ledger verify --all" in done.err


def test_an_auditor_checks_all_runs_and_one(cli: Cli, key: str, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").unlink()
    (tmp_path / "log.key").write_text(key + "\n")
    mark = ("--checkpoint", "evidence/latest.checkpoint")
    for given in (key, "log.key"):
        done = cli("ledger", "verify", "--all", *mark, "--key", given, "--json")
        assert done.code == 0
        assert done.json == {
            "ok": True, "covered": 5, "newer": 0, "erased": [], "records": 40, "problems": [],
        }  # fmt: skip
        assert cli("ledger", "verify", "r3", *mark, "--key", given, "--json").json["records"] == 9
    assert "5 runs covered" in cli("ledger", "verify", "--all", *mark, "--key", key).err
    missing = cli("ledger", "verify", "--all", *mark, "--json")
    assert (missing.code, missing.error) == (2, "usage.arguments")


@pytest.mark.parametrize("kind", log_kit.RUN_KINDS)
def test_what_was_changed_afterwards_is_found(cli: Cli, key: str, runs: Path, kind: str) -> None:
    log_kit.RUN_KINDS[kind](runs / "r2/trace.jsonl", random.Random(5))
    mark = ("--checkpoint", "evidence/latest.checkpoint", "--json")
    every = cli("ledger", "verify", "--all", *mark)
    assert (every.code, every.json["ok"]) == (1, False)
    assert {item["run"] for item in every.json["problems"]} == {"r2"}
    if kind == "a run removed":
        again = cli("ledger", "checkpoint", "--json")
        assert again.code == 1 and "without a tombstone" in again.json["problems"][0]
        assert cli("ledger", "checkpoint", "--erased", "r2", "--json").code == 0
        assert cli("ledger", "verify", "--all", *mark).json["erased"] == ["r2"]
    else:
        assert cli("ledger", "verify", "r2", *mark).json["ok"] is False
        assert "NOT whole" in cli("ledger", "verify", "--all", *mark[:2]).err


def test_an_old_copy_of_the_store_is_found_and_signs_nothing(
    cli: Cli, key: str, runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs, tmp_path / "old")
    log_kit.write(runs, "r0", 9)
    assert cli("ledger", "checkpoint").code == 0
    shutil.rmtree(runs)
    shutil.copytree(tmp_path / "old", runs)
    mark = ("--checkpoint", "evidence/latest.checkpoint")
    every = cli("ledger", "verify", "--all", *mark)
    assert every.code == 1 and "the log has 5 leaves, the checkpoint 6" in every.err
    for done in (cli("ledger", "verify", "r0", *mark, "--json"), cli("ledger", "checkpoint", "--json")):
        assert (done.code, done.error) == (1, "ledger.forked")


def test_a_record_is_proved_to_a_stranger_who_has_an_export_only(
    cli: Cli, key: str, runs: Path, tmp_path: Path
) -> None:
    assert cli("ledger", "prove", "r3", "4", "-o", "record.proof").code == 0
    assert cli("ledger", "prove", "r3", "--json").json["proof"] == cli("ledger", "prove", "r3").out
    assert cli("ledger", "prove", "r3", "-o", "run.proof").code == 0
    assert cli("export", "r3", "-o", "r3.jsonl").code == 0
    line = (runs / "r3/trace.jsonl").read_text().splitlines(keepends=True)[4]
    shutil.rmtree(runs)
    (tmp_path / "spak.toml").unlink()
    proved = cli("ledger", "verify", "record.proof", "--key", key, "--json").json
    assert (proved["run"], proved["seq"], proved["line"], proved["count"]) == ("r3", 4, line, 9)
    assert (
        "record 4 of r3 is in the checkpoint of 5 leaves"
        in cli("ledger", "verify", "record.proof", "--key", key).err
    )
    whole = ("ledger", "verify", "r3.jsonl", "--proof", "run.proof", "--key", key, "--json")
    assert cli(*whole).json["ok"] is True
    export = tmp_path / "r3.jsonl"
    export.write_bytes(export.read_bytes().replace(b'"n":5', b'"n":6'))
    assert cli(*whole).code == 1
    (tmp_path / "record.proof").write_text(
        (tmp_path / "record.proof").read_text().replace("index 3", "index 2")
    )
    wrong = cli("ledger", "verify", "record.proof", "--key", key, "--json")
    assert (wrong.code, wrong.error) == (1, "ledger.proof")


def test_one_checkpoint_is_proved_to_continue_another(cli: Cli, key: str, runs: Path, tmp_path: Path) -> None:
    log_kit.write(runs, "r0", 9)
    assert cli("ledger", "checkpoint").code == 0
    first = ("evidence/000000000005.checkpoint", "evidence/000000000006.checkpoint")
    proved = cli("ledger", "prove", "--from", first[0], "-o", "grown.proof")
    assert proved.code == 0
    assert f"next: spak ledger verify grown.proof --checkpoint {first[0]} --key KEY" in proved.err
    (tmp_path / "spak.toml").unlink()
    shutil.rmtree(runs)
    done = cli("ledger", "verify", "grown.proof", "--checkpoint", first[0], "--key", key, "--json")
    assert done.json == {"ok": True, "log": "example.com/team", "from": 5, "to": 6}
    other = cli("ledger", "verify", "grown.proof", "--checkpoint", first[1], "--key", key, "--json")
    assert (other.code, other.error) == (1, "ledger.proof")


def test_two_people_who_were_shown_two_histories_find_it(
    cli: Cli, key: str, runs: Path, tmp_path: Path
) -> None:
    shutil.move(tmp_path / "evidence", tmp_path / "alice")
    log_kit.rehash(runs / "r1/trace.jsonl", random.Random(2))
    shutil.rmtree(runs / ".log")
    assert cli("ledger", "checkpoint").code == 0
    marks = [word for who in ("alice", "evidence") for word in ("--checkpoint", f"{who}/latest.checkpoint")]
    done = cli("ledger", "verify", "--all", *marks, "--json")
    messages = [item["message"] for item in done.json["problems"]]
    assert done.code == 1 and "two histories were signed" in messages[-1]


def test_a_witness_signs_and_may_be_asked_for(cli: Cli, key: str, tmp_path: Path) -> None:
    watching = Witness()
    watching.knows(key)
    with serving(watching) as url:
        more = f'[[checkpoints.witnesses]]\nurl = "{url}/w"\nkey = "{watching.key}"\n'
        (tmp_path / "spak.toml").write_text(SETTINGS + more)
        done = cli("ledger", "checkpoint", "--json")
    assert (done.code, done.json["witnesses"]) == (0, [watching.name])
    mark = ("ledger", "verify", "--all", "--checkpoint", "evidence/latest.checkpoint", "--json")
    assert cli(*mark, "--witness", watching.key).code == 0
    other = cli(*mark, "--witness", Witness("witness.example/w2").key)
    assert (other.code, other.error) == (1, "ledger.signature")
    away = cli(
        "ledger", "checkpoint", "--json"
    )  # the witness has gone: the checkpoint is written all the same
    assert away.code == 1 and away.json["places"] == ["evidence"] and len(away.json["problems"]) == 1


def test_a_checkpoint_of_another_key_is_not_trusted(cli: Cli, key: str, tmp_path: Path) -> None:
    mark = ("ledger", "verify", "--all", "--checkpoint", "evidence/latest.checkpoint", "--json")
    other = cli(*mark, "--key", str(log_kit.KEY))
    assert (other.code, other.error) == (1, "ledger.signature")
    assert cli(*mark, "--key", "nonsense+key").error == "ledger.key"
    assert cli(*mark, "--key", "no-such-file").error == "usage.file"
    path = tmp_path / "evidence/latest.checkpoint"
    path.write_text(path.read_text().replace("\n5\n", "\n4\n"))
    assert cli(*mark).error == "ledger.signature"
    path.write_text("nothing")
    assert cli(*mark).error == "ledger.checkpoint"


def test_an_unsigned_checkpoint_is_still_read(cli: Cli, key: str, tmp_path: Path) -> None:
    found = cli("ledger", "verify", "r2", "--json").json
    (tmp_path / "mark.json").write_text(
        json.dumps({"run": "r2", "count": found["records"], "head": found["head"]})
    )
    both = ("--checkpoint", "mark.json", "--checkpoint", "evidence/latest.checkpoint")
    assert cli("ledger", "verify", "r2", *both).code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("prove",), "usage.arguments"),
        (("prove", "r2", "--from", "evidence/latest.checkpoint"), "usage.arguments"),
        (("prove", "nobody"), "usage.run"),
        (("prove", "r2", "400"), "ledger.not_covered"),
        (("prove", "--from", "spak.toml"), "ledger.checkpoint"),
        (("checkpoint", "--to", ".spak/runs/here"), "usage.arguments"),
        (("checkpoint", "--log", "two words"), "ledger.key"),
        (("checkpoint", "--sign-with", "bob"), "keys.missing"),
        (("checkpoint", "--runs-dir", "nowhere"), "usage.run"),
        (("checkpoint", "--erased", "r2"), "ledger.exists"),
        (("verify", "r9"), "usage.run"),
    ],
)
def test_what_cannot_be_done_is_said(cli: Cli, key: str, words: tuple[str, ...], code: str) -> None:
    done = cli("ledger", *words, "--json")
    assert done.code in (1, 2) and done.error == code


def test_a_run_that_began_later_is_not_covered(cli: Cli, key: str, runs: Path) -> None:
    log_kit.write(runs, "r9", 3)
    mark = ("--checkpoint", "evidence/latest.checkpoint", "--json")
    done = cli("ledger", "verify", "r9", *mark)
    assert (done.code, done.error) == (1, "ledger.not_covered")
    assert cli("ledger", "verify", "--all", *mark).json["newer"] == 1


@pytest.mark.parametrize(
    "text",
    [
        'log = "two words"',
        'to = [""]',
        'to = ["--upload-pack=x"]',
        "to = [1]",
        'to = ["~nobody-of-this-name/evidence"]',
        'witnesses = ["https://w"]',
        'witnesses = [{url = "ftp://w", key = "k"}]',
        f'witnesses = [{{url = "https://w", key = "{log_kit.KEY}"}}]',
    ],
)
def test_a_wrong_setting_is_refused_by_every_command(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "spak.toml").write_text(f"[checkpoints]\n{text}\n")
    done = cli("runs", "--json")
    assert (done.code, done.error) == (2, "usage.config")
