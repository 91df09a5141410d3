"""`spak approve`: an action waits, a signed answer lets it happen once, and nothing else does."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Background, Cli, Done
from process_kit import WAIT_S
from process_kit import start as start_child
from spak.cli import session
from spak.policy import approval

pytestmark = pytest.mark.sandbox

TIDY = """
AGENT Tidy LEVEL 2 {
  CONFIG { APPROVALS ask }
  POLICY_HERE
  START -> tidy
  TASK tidy {
    step make: tool.write_file { path: "old/a.txt" content: "one" }
    step drop: tool.run { cmd: ["rm", "-r", "old"] }
    step last: tool.write_file { path: "done.txt" content: "done" }
  }
}
"""
SLOW = TIDY.replace(
    '["rm", "-r", "old"]',
    "[\"python\", \"-c\", \"import time; time.sleep(3); open('ran', 'a').write('x')\"]",
)
ASK = 'POLICY """forbidden(A) :- tool(A, /run), !approved(A)."""'
OVERRIDE = 'POLICY """forbidden(A) :- tool(A, /run), !admin_override(A, _)."""'

Spak = Callable[..., Done]


@pytest.fixture
def spak(cli: Cli, tmp_path: Path) -> Spak:
    """The command of a user whose keys are in the test's folder; `home` is another user's."""
    return lambda *args, home="alice": cli(*args, env={"XDG_CONFIG_HOME": str(tmp_path / "homes" / home)})


@pytest.fixture
def keys(spak: Spak, tmp_path: Path) -> Path:
    """alice may approve, charlie may override as well, mallory has a key that nobody lists."""
    for name, role in (("alice", "approver"), ("charlie", "admin")):
        shown = spak("keys", "make", name, home=name).out.replace('["approver"]', f'["{role}"]')
        with (tmp_path / "spak.toml").open("a") as file:
            file.write(shown)
    spak("keys", "make", "mallory", home="mallory")
    return tmp_path / "homes"


def start(spak: Spak, folder: Path, text: str = TIDY, policy: str = "") -> Any:
    (folder / "tidy.spak").write_text(text.replace("POLICY_HERE", policy or ASK))
    return spak("run", "tidy.spak", "--json", "--seed", "7")


@pytest.fixture
def waits(spak: Spak, keys: Path, tmp_path: Path) -> Any:
    """A run that waits for an approval: what `spak run --json` said of it."""
    done = start(spak, tmp_path)
    assert done.code == 4, done.err
    return done.json


def lines(runs: Path, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (runs / run / "trace.jsonl").read_text().splitlines()]


def equal(spak: Spak, run: str) -> bool:
    return bool(spak("replay", run, "--json").json["equal"])


def test_an_action_that_a_signature_would_permit_waits(waits: Any, spak: Spak, runs: Path) -> None:
    asked = waits["waiting"]
    assert (waits["state"], asked["kind"]) == ("waiting", "approval")
    assert (asked["task"], asked["step"], asked["name"]) == ("tidy", "drop", "run")
    assert asked["args"] == {"cmd": ["rm", "-r", "old"]}
    assert asked["action"] == approval.action_hash("run", asked["args"])
    assert (runs / waits["run"] / "workspace/old/a.txt").exists()
    shown = spak("show", waits["run"])
    assert '"rm","-r","old"' in shown.err and f"spak approve {waits['run']}" in shown.err
    assert spak("resume", waits["run"], "--json").code == 4
    unsigned = spak("step", waits["run"], "--answer", "yes")
    assert unsigned.code == 1 and "run.not_waiting" in unsigned.err and "spak approve" in unsigned.err


def test_a_yes_lets_it_happen_and_replays(waits: Any, spak: Spak, runs: Path) -> None:
    done = spak("approve", waits["run"], "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert '"rm"' in done.err and "signed with the key alice" in done.err
    assert not (runs / waits["run"] / "workspace/old").exists()
    assert equal(spak, waits["run"])
    again = spak("approve", waits["run"], "--json")
    assert (again.code, again.error) == (1, "run.no_approval")
    answers = [record for record in lines(runs, waits["run"]) if record["kind"] == "approval"]
    assert len(answers) == 1
    assert set(answers[0]["body"]) == {"of", "decision", "signer", "expires", "run", "signature"}


def test_all_that_is_signed_is_shown_however_long_it_is(spak: Spak, keys: Path, tmp_path: Path) -> None:
    """A long text is in the records by reference, and its end may be what matters."""
    words = "# nothing to see here\\n" * 2000
    text = TIDY.replace('["rm", "-r", "old"]', f'["sh", "-c", "{words}rm -r old; echo THE-END"]')
    done = start(spak, tmp_path, text)
    assert done.code == 4, done.err
    assert "echo THE-END" in spak("approve", done.json["run"], "--json").err


def test_a_no_refuses(waits: Any, spak: Spak, runs: Path) -> None:
    done = spak("approve", waits["run"], "--deny", "--json")
    assert (done.code, done.json["state"]) == (5, "refused")
    assert done.json["refusal"]["codes"] == ["policy.approval_denied"]
    assert (runs / waits["run"] / "workspace/old/a.txt").exists()
    assert equal(spak, waits["run"])
    again = spak("approve", waits["run"], "--json")
    assert again.error == "run.no_approval" and "it ended: spak show" in again.json["error"]["hint"]


def test_without_APPROVALS_it_is_denied_at_once(spak: Spak, keys: Path, tmp_path: Path) -> None:
    for setting in ("", "CONFIG { APPROVALS deny }"):
        done = start(spak, tmp_path, TIDY.replace("CONFIG { APPROVALS ask }", setting))
        assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])


def test_what_no_signature_would_permit_is_denied_at_once(spak: Spak, keys: Path, tmp_path: Path) -> None:
    done = start(spak, tmp_path, TIDY.replace('["rm", "-r", "old"]', '["ls"] working_dir: "/etc"'))
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])


def test_a_run_without_approvers_does_not_wait_for_nobody(spak: Spak, tmp_path: Path) -> None:
    done = start(spak, tmp_path)
    assert done.code == 5
    again = spak("approve", done.json["run"], "--json")
    assert again.error == "run.no_approval" and "no approver was listed" in again.json["error"]["hint"]


RELEASE = TIDY.replace('["rm", "-r", "old"]', '["touch", "released"]')


@pytest.mark.findings("S5.1")
def test_two_people_release_and_one_person_twice_does_not(spak: Spak, tmp_path: Path, runs: Path) -> None:
    for name in ("alice", "bob"):
        with (tmp_path / "spak.toml").open("a") as file:
            file.write(spak("keys", "make", name, home=name).out)
    (tmp_path / "rel.mg").write_text('release_program("touch").')
    settings = (tmp_path / "spak.toml").read_text()
    (tmp_path / "spak.toml").write_text(f'[policy]\nlaw = ["spak:two_persons", "rel.mg"]\n{settings}')
    waits = start(spak, tmp_path, RELEASE)
    run = waits.json["run"]
    released = runs / run / "workspace/released"
    for home in ("alice", "alice"):
        done = spak("approve", run, "--json", home=home)
        assert (done.code, done.json["state"]) == (4, "waiting") and not released.exists()
    assert spak("resume", run, "--json").code == 4
    done = spak("approve", run, "--json", home="bob")
    assert (done.code, done.json["state"]) == (0, "succeeded") and released.exists()
    assert equal(spak, run)


@pytest.mark.findings("S5.1")
def test_a_release_with_one_approver_is_refused_at_once(spak: Spak, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["spak:two_persons", "rel.mg"]\n')
    with (tmp_path / "spak.toml").open("a") as file:
        file.write(spak("keys", "make", "alice").out)
    (tmp_path / "rel.mg").write_text('release_program("touch").')
    done = start(spak, tmp_path, RELEASE)
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["policy.forbidden"])


def test_who_has_no_key_or_another_is_told_and_leaves_no_trace(waits: Any, spak: Spak, runs: Path) -> None:
    before = (runs / waits["run"] / "trace.jsonl").read_bytes()
    for args, home, code in (
        ((), "nobody", "keys.missing"),
        ((), "mallory", "keys.unlisted"),
        (("--key", "mallory"), "mallory", "keys.unlisted"),
        (("--key", "bob"), "alice", "keys.missing"),
        (("--key", "../alice"), "alice", "keys.name"),
    ):
        done = spak("approve", waits["run"], *args, "--json", home=home)
        assert (done.code, done.error) == (2, code), (args, home)
    assert (runs / waits["run"] / "trace.jsonl").read_bytes() == before


def test_a_key_that_others_can_read_signs_nothing(waits: Any, spak: Spak, keys: Path) -> None:
    file = keys / "alice/spak/keys/alice.key"
    file.chmod(0o644)
    assert spak("approve", waits["run"], "--json").error == "keys.mode"
    shutil.copy(keys / "charlie/spak/keys/charlie.key", keys / "alice/spak/keys/other.key")
    (keys / "alice/spak/keys/other.key").chmod(0o600)
    assert spak("approve", waits["run"], "--json").code == 0


def test_the_private_key_is_in_no_record_and_no_output(
    waits: Any, spak: Spak, keys: Path, runs: Path
) -> None:
    done = spak("approve", waits["run"], "--json")
    secret = "".join((keys / "alice/spak/keys/alice.key").read_text().splitlines()[1:-1])[-43:]
    stored = b"".join(path.read_bytes() for path in (runs / waits["run"]).rglob("*") if path.is_file())
    assert secret.encode() not in stored and secret not in done.out + done.err


def test_a_rule_may_want_an_override(spak: Spak, keys: Path, tmp_path: Path) -> None:
    done = start(spak, tmp_path, TIDY, OVERRIDE)
    assert done.code == 4, done.err
    run, first = done.json["run"], done.json["waiting"]["id"]
    done = spak("approve", run, "--json")
    assert done.code == 4 and done.json["waiting"]["id"] != first, "an approver's yes is not enough"
    assert spak("approve", run, "--json", home="charlie").code == 0
    assert equal(spak, run)


# ---- answers that were made elsewhere ------------------------------------------------------------------


def pem(keys: Path, name: str) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key((keys / name / f"spak/keys/{name}.key").read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    return key.private_bytes_raw()


def answer(waits: Any, private: bytes, **changed: Any) -> dict[str, Any]:
    asked = waits["waiting"]
    given = {
        "action": asked["action"],
        "of": asked["id"],
        "run": waits["run"],
        "step": f"{asked['task']}/{asked['step']}",
        "expires": time.time_ns() // 10**6 + 60_000,
        **changed,
    }
    return approval.make(private, **given)


def handed_in(runs: Path, run: str, *bodies: dict[str, Any]) -> Any:
    """The run's view after these answers came in, and nothing else was done."""
    held = session.reopen(runs, run, bare=True)
    try:
        for body in bodies:
            held.run.approve(body)
        return held.save().to_json(False)
    finally:
        held.close()


def permits(runs: Path, run: str) -> list[tuple[Any, str]]:
    found = [record["body"] for record in lines(runs, run) if record["kind"] == "permit"]
    return [(body["allow"], body.get("code", "")) for body in found]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"expires": 1}, "policy.approval_expired"),
        ({"run": "another"}, "policy.approval_run"),
        ({"step": "tidy/make"}, "policy.approval_signature"),
        (
            {"action": approval.action_hash("run", {"cmd": ["rm", "-r", "other"]})},
            "policy.approval_signature",
        ),
    ],
)
def test_an_answer_that_does_not_fit_asks_anew(
    waits: Any, spak: Spak, keys: Path, runs: Path, changed: dict[str, Any], code: str
) -> None:
    seen = handed_in(runs, waits["run"], answer(waits, pem(keys, "alice"), **changed))
    assert seen["state"] == "waiting" and seen["waiting"]["id"] != waits["waiting"]["id"]
    assert permits(runs, waits["run"])[-1] == ("ask", code)
    assert equal(spak, waits["run"])
    assert spak("approve", waits["run"], "--json").code == 0
    assert equal(spak, waits["run"])


def test_a_stranger_and_nonsense_ask_anew(waits: Any, spak: Spak, keys: Path, runs: Path) -> None:
    good = answer(waits, pem(keys, "alice"))
    for body, code in (
        (answer(waits, pem(keys, "mallory")), "policy.approval_key"),
        ({**good, "decision": "deny"}, "policy.approval_signature"),
        ({**good, "extra": 1}, "policy.approval_malformed"),
        ({"of": good["of"]}, "policy.approval_malformed"),
    ):
        body = {**body, "of": spak("show", waits["run"], "--json").json["waiting"]["id"]}
        before = len(permits(runs, waits["run"]))
        seen = handed_in(runs, waits["run"], body)
        assert seen["state"] == "waiting"
        assert permits(runs, waits["run"])[before:] == [("ask", code)]
    assert equal(spak, waits["run"])


def test_an_answer_counts_once(waits: Any, spak: Spak, keys: Path, runs: Path) -> None:
    """After a rejected answer the old good one is for a question that nobody asks any more."""
    good = answer(waits, pem(keys, "alice"))
    late = answer(waits, pem(keys, "alice"), expires=1)
    seen = handed_in(runs, waits["run"], late, good)
    assert seen["state"] == "waiting"
    forged = {**good, "of": seen["waiting"]["id"]}
    seen = handed_in(runs, waits["run"], forged)
    assert seen["state"] == "waiting"
    assert [allow for allow, _ in permits(runs, waits["run"])].count(True) == 1
    assert equal(spak, waits["run"])


def test_a_fork_copies_no_approval(waits: Any, spak: Spak, runs: Path) -> None:
    assert spak("approve", waits["run"], "--json").code == 0
    last = lines(runs, waits["run"])[-1]["seq"]
    done = spak("fork", waits["run"], "--at", str(last), "--json")
    assert done.code == 4 and done.json["waiting"]["kind"] == "approval"
    assert spak("approve", done.json["run"], "--json").code == 0


# ---- two at once, and death in the middle --------------------------------------------------------------


def test_of_two_answers_at_once_one_counts(waits: Any, keys: Path, tmp_path: Path, runs: Path) -> None:
    import os

    started = [
        start_child(
            [
                sys.executable,
                "-c",
                "from spak.cli import main; main()",
                "approve",
                waits["run"],
                *flags,
                "--json",
            ],
            cwd=tmp_path,
            env={**os.environ, "XDG_CONFIG_HOME": str(keys / name)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for name, flags in (("alice", ()), ("charlie", ("--deny",)))
    ]
    ended = [(json.loads(process.communicate(timeout=WAIT_S)[0]), process.returncode) for process in started]
    codes = sorted(code for _, code in ended)
    assert codes in ([0, 1], [1, 5]), ended
    lost = next(document for document, code in ended if code == 1)
    assert lost["error"]["code"] in ("ledger.busy", "run.no_approval")
    kinds = [record["kind"] for record in lines(runs, waits["run"])]
    assert kinds.count("approval") == 1 and kinds.count("end") == 1


def test_a_run_that_somebody_holds_is_busy(waits: Any, spak: Spak, runs: Path) -> None:
    held = session.reopen(runs, waits["run"], bare=True)
    try:
        done = spak("approve", waits["run"], "--json")
    finally:
        held.close()
    assert (done.code, done.error) == (1, "ledger.busy")


def test_killed_while_the_approved_action_is_done_it_is_not_asked_again(
    spak: Spak, keys: Path, tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = start(spak, tmp_path, SLOW).json
    monkeypatch.setenv("XDG_CONFIG_HOME", str(keys / "alice"))
    process = Background(tmp_path, "approve", waits["run"])
    process.until(lambda: permits(runs, waits["run"])[-1][0] is True)
    process.kill(signal.SIGKILL)
    process.done()
    done = spak("resume", waits["run"], "--json", home="nobody")
    assert (done.code, done.json["state"]) == (0, "succeeded"), done.err
    assert (runs / waits["run"] / "workspace/ran").read_text() == "x"
    assert equal(spak, waits["run"])


def test_cut_off_at_any_record_it_ends_the_same(waits: Any, spak: Spak, runs: Path) -> None:
    run = waits["run"]
    asked = len(lines(runs, run))
    whole = spak("approve", run, "--json").json
    trace = runs / run / "trace.jsonl"
    records = trace.read_bytes().splitlines(keepends=True)
    answered = next(at for at, line in enumerate(records) if b'"kind":"approval"' in line)
    for kept in range(asked, len(records)):
        trace.write_bytes(b"".join(records[:kept]))
        done = spak("resume", run, "--json", home="nobody")
        assert (done.code == 4) is (kept <= answered), kept
        if kept > answered:
            assert done.json["summary_hash"] == whole["summary_hash"]
