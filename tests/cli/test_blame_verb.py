"""`spak blame`: origins from git and from a history of the platform, which is verified first."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cli_calls import Cli
from spak import canon
from spak.evolve import spec_history
from spak.evolve.spec_history import Record, Version
from spak.policy import approval

ONE = 'TASK a {\n  GOAL: "look"\n  step s: tool.list_files { path: "." }\n}\n'
TWO = ONE.replace("look", "look well")
THREE = TWO.replace('"."', '"docs"')
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = approval.encoded(KEY.public_key().public_bytes_raw())
MERGE = {
    "patch": 7,
    "title": "Look \x1b[31mwell",
    "proposer": "bob",
    "campaign": "",
    "after": canon.digest(TWO.encode()),
    "approved": [{"by": "rita"}],
    "checks": [{"name": "replay", "state": "passed"}],
}


def commit(folder: Path, by: str, why: str) -> None:
    git(folder, "add", "-A")
    git(folder, "-c", f"user.name={by}", "-c", "user.email=a@example.org", "commit", "-qm", why)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def record(number: int, previous: str, body: Any, what: str = "merge") -> Record:
    row = {"previous": previous, "number": number, "at": 1, "what": what, "body": body}
    text = canon.dumps(row)
    digest = canon.digest(text)
    return Record(text.decode(), digest, approval.encoded(KEY.sign(digest.encode())))


def history(merge: dict[str, Any] = MERGE) -> str:
    first = record(1, canon.ZERO, merge)
    tag = {"tag": "staging", "version": 2, "before": None, "text": "", "by": "rita"}
    versions = [
        Version(1, ONE, "alice", 1_700_000_000_000, "First"),
        Version(
            2, TWO, "rita", 1_700_086_400_000, "Patch 7", {**MERGE, "record": 1, "record_hash": first.hash}
        ),
    ]
    records = [first, record(2, first.hash, tag, "tag")]
    return "\n".join(spec_history.lines("small", PUBLIC, versions, records)) + "\n"


def origins(cli: Cli, *arguments: str) -> dict[str, Any]:
    return {row["path"]: row["origin"] for row in cli("blame", *arguments, "--json").json["fields"]}


def test_commits_of_the_repository_through_a_rename_of_the_file(cli: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "old name.spak").write_text(ONE)
    commit(tmp_path, "Alice", "Begin")
    (tmp_path / "old name.spak").write_text(TWO)
    commit(tmp_path, "Bob \x1b[1m", "Say how")
    git(tmp_path, "mv", "old name.spak", "new.spak")
    (tmp_path / "new.spak").write_text("// moved\n" + TWO)
    commit(tmp_path, "Carol", "Move it")
    (tmp_path / "new.spak").write_text("// moved\n" + THREE)
    found = origins(cli, "new.spak")
    assert (found["tasks/a/steps/s/kind"]["by"], found["tasks/a/steps/s/kind"]["why"]) == ("Alice", "Begin")
    assert found["tasks/a/GOAL"]["why"] == "Say how"
    assert found["tasks/a/steps/s/path"]["name"] == "not saved yet"
    shown = cli("blame", "new.spak", "--task", "a")
    assert shown.code == 0 and "tasks/a/GOAL" in shown.out and "Say how" in shown.out


def test_a_history_of_the_platform_with_approvals_and_evidence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(TWO)
    (tmp_path / "h.jsonl").write_text(history())
    found = origins(cli, "a.spak", "--history", "h.jsonl")
    goal = found["tasks/a/GOAL"]
    assert (goal["name"], goal["by"], goal["approved"]) == ("version 2", "bob", ["rita"])
    assert (goal["at"][:10], goal["evidence"]) == ("2023-11-15", ["replay: passed"])
    assert found["tasks/a/steps/s/path"]["by"] == "alice"
    key = approval.key_id(PUBLIC)
    shown = cli("blame", "a.spak", "--history", "h.jsonl", "--key", key)
    assert shown.code == 0 and key in shown.err and "approved by rita" in shown.out
    assert (
        cli("blame", "a.spak", "--history", "h.jsonl", "--key", "other", "--json").error == "usage.arguments"
    )


FORGED: dict[str, tuple[Callable[[str], str], str]] = {
    "a changed text": (lambda text: text.replace("look well", "delete all"), "another text"),
    "another approver": (lambda text: text.replace('"by": "rita"}]', '"by": "eve"}]'), "no record has"),
    "a record left out": (lambda text: "\n".join(text.split("\n")[:3] + text.split("\n")[4:]), "not the one"),
    "a changed record": (lambda text: text.replace("staging", "product"), "not the one"),
    "another key": (lambda text: text.replace(PUBLIC, PUBLIC[::-1]), "not signed"),
    "a record that is no JSON": (lambda text: text.replace('"record": "{', '"record": "', 1), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_history_does_not_hold(cli: Cli, tmp_path: Path, how: str) -> None:
    forge, words = FORGED[how]
    assert forge(history()) != history()
    (tmp_path / "a.spak").write_text(TWO)
    (tmp_path / "h.jsonl").write_text(forge(history()))
    done = cli("blame", "a.spak", "--history", "h.jsonl", "--json")
    assert done.code == 1 and words in " ".join(done.json["wrong"])
    assert "the history does not hold" in cli("blame", "a.spak", "--history", "h.jsonl").err


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[" * 5000, '{"format": "other", "name": "a", "key": "b"}', history().splitlines()[0],
     history().replace('"version": 1', '"version": 5'), history().replace('"by": "alice"', '"by": 3')],
)  # fmt: skip
def test_what_is_no_history_is_an_error(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.spak").write_text(TWO)
    (tmp_path / "h.jsonl").write_text(text)
    assert cli("blame", "a.spak", "--history", "h.jsonl", "--json").error == "outer.history"


def test_a_file_that_nothing_knows_is_an_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(ONE)
    assert cli("blame", "a.spak", "--json").error == "usage.history"
    git(tmp_path, "init", "-q")
    assert cli("blame", "a.spak", "--json").error == "usage.history"
    assert cli("blame", "a.spak", "--key", "x", "--json").error == "usage.arguments"
    (tmp_path / "h.jsonl").write_text(history())
    wrong = cli("blame", "a.spak", "--history", "h.jsonl", "--task", "none", "--json")
    assert wrong.error == "usage.arguments"
