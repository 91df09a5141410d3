"""`spak export --as pack`, `spak verify-pack`: a run goes to a stranger, who trusts nothing but a key."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cli_calls import Cli
from spak import data


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def public(cli: Cli, home: Path) -> str:
    return str(cli("keys", "make", "alice", "--json").json["public"])


@pytest.fixture
def pack(cli: Cli, ended: str, public: str, tmp_path: Path) -> Path:
    assert cli("export", ended, "--as", "pack", "--sign", "alice", "-o", "run.jsonl").code == 0
    return tmp_path / "run.jsonl"


def test_a_stranger_checks_imports_and_replays_a_pack(cli: Cli, ended: str, pack: Path, public: str) -> None:
    shown = cli("show", ended, "--json").json
    found = cli("verify-pack", str(pack), "--key", public, "--json")
    assert (found.code, found.json["ok"], found.json["problems"], found.json["notes"]) == (0, True, [], [])
    assert found.json["summary_hash"] == shown["summary_hash"]
    assert found.json["replayed"] is True
    code = data.kernel_code()
    assert found.json["kernel_code"] == {"recorded": [code], "here": code}
    assert cli("import", str(pack), "--runs-dir", "elsewhere").code == 0
    assert cli("replay", ended, "--runs-dir", "elsewhere", "--json").json["equal"] is True
    assert cli("replay", str(pack), "--json").json["equal"] is True
    assert cli("ledger", "verify", str(pack)).code == 0


def test_the_statement_is_in_the_folder_of_a_run_that_ended(
    cli: Cli, ended: str, runs: Path, tmp_path: Path
) -> None:
    assert cli("export", ended, "--as", "pack", "-o", "unsigned.jsonl").code == 0
    kept = (runs / ended / "pack.json").read_bytes()
    assert (tmp_path / "unsigned.jsonl").read_bytes().startswith(kept)
    assert json.loads(kept)["predicate"]["run"] == ended


def test_a_pem_key_serves_too(cli: Cli, pack: Path, home: Path, tmp_path: Path) -> None:
    pem = subprocess.run(
        ["openssl", "pkey", "-in", str(home / "spak" / "keys" / "alice.key"), "-pubout"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    (tmp_path / "alice.pem").write_bytes(pem)
    assert cli("verify-pack", str(pack), "--key", "alice.pem").code == 0


def test_a_changed_pack_is_named(cli: Cli, pack: Path, public: str) -> None:
    lines = pack.read_bytes().splitlines(keepends=True)
    pack.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    found = cli("verify-pack", str(pack), "--key", public, "--json")
    assert found.code == 1 and {"chain", "footer", "statement"} <= {
        item["code"] for item in found.json["problems"]
    }
    assert found.json["replayed"] is False
    assert "NOT valid" in cli("verify-pack", str(pack)).err
    assert cli("import", str(pack), "--runs-dir", "elsewhere", "--json").error == "ledger.import"


def test_another_kernel_is_said_and_is_no_error(
    cli: Cli, ended: str, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("spak.ledger.pack.kernel_code", "spak.data.kernel_code"):
        monkeypatch.setattr(name, lambda: "0" * 64)
    found = cli("verify-pack", str(pack), "--json")
    assert (found.code, [note["code"] for note in found.json["notes"]]) == (
        0,
        ["not_verified", "kernel_differs"],
    )
    replayed = cli("replay", ended)
    assert replayed.code == 0 and "kernel_differs" in replayed.err and "0" * 64 in replayed.err


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("export", "--sign", "alice"), "usage.arguments"),
        (("export", "--as", "events", "--proof", "x"), "usage.arguments"),
        (("export", "--as", "pack", "--sign", "nobody", "-o", "x.jsonl"), "keys.missing"),
        (("export", "--as", "pack", "--proof", "gone", "-o", "x.jsonl"), "usage.file"),
        (("verify-pack", "gone.jsonl"), "usage.file"),
        (("verify-pack", "run.jsonl", "--key", "gone"), "usage.file"),
        (("verify-pack", "run.jsonl", "--key", "run.jsonl"), "usage.file"),
        (("verify-pack", "run.jsonl", "--key", "short"), "keys.public"),
        (("verify-pack", "run.jsonl", "--key", "bad.pem"), "keys.public"),
        (("verify-pack", "run.jsonl", "--log-key", "a+b+c"), "ledger.key"),
    ],
)
def test_wrong_use_has_a_code(
    cli: Cli, pack: Path, tmp_path: Path, args: tuple[str, ...], error: str
) -> None:
    (tmp_path / "short").write_text("abc\n")
    (tmp_path / "bad.pem").write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    assert cli(*args, "--json").error == error
    assert not (tmp_path / "x.jsonl").exists()


def test_a_run_that_waits_has_no_pack(cli: Cli, waiting: str, tmp_path: Path) -> None:
    done = cli("export", waiting, "--as", "pack", "-o", "x.jsonl", "--json")
    assert (done.code, done.error) == (2, "usage.not_ended")
    assert not (tmp_path / "x.jsonl").exists()
