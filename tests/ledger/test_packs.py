"""Packs: what is stated follows from the export, every change is found, and tools of others agree."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest

import pack_outside
from pack_kit import GOLDEN, PRIVATE, PUBLIC, logged, packed, tampered
from spak import canon, data
from spak.errors import LedgerError, UsageError
from spak.ledger import FileLedgers, MemoryLedgers, import_, pack, verify
from spak.ledger.note import own_verifier
from spak.ledger.pack import Keys, Verdict, verify_pack
from spak.ledger.statement import read_bundle
from spak.policy import approval
from spak.records import Record


def checked(data: bytes, keys: Keys | None = None) -> Verdict:
    return verify_pack(data.splitlines(keepends=True), keys or Keys(PUBLIC))


def codes(found: Verdict) -> set[str]:
    return {problem.code for problem in found.problems}


@pytest.fixture(scope="module")
def tuning() -> bytes:
    return packed(next(file for file in GOLDEN if file.stem == "tuning"))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_every_kind_of_run_has_a_pack_that_is_valid(file: Path) -> None:
    data = packed(file)
    found = checked(data)
    assert found.ok and found.replayed and found.problems == ()
    _, rest = data.split(b"\n", 1)
    assert rest == file.read_bytes(), "the export follows as it is"
    ledgers = MemoryLedgers()
    assert import_(io.BytesIO(data), ledgers) == found.to_json()["run"]
    assert packed(file) == data
    assert checked(packed(file, private=None), Keys()).ok


def test_what_is_stated(tuning: bytes) -> None:
    signed = read_bundle(canon.loads(tuning.split(b"\n", 1)[0]))
    assert signed is not None
    stated = json.loads(signed.payload)
    about = stated["predicate"]
    first = json.loads(tuning.splitlines()[1])["body"]
    rules = first["rules"]
    assert about["genesis"]["rules"] == canon.content_hash(rules)
    assert about["genesis"]["policy"] == rules["policy"]["hash"]
    assert about["genesis"]["spec"] == canon.digest(rules["spec"].encode())
    assert about["kernel"] == {"code": [], "semantics": rules["kernel"]}
    assert about["summary"] == checked(tuning).to_json()["summary_hash"]
    assert (about["run"], about["state"]) == (first["host"]["run"], "succeeded")
    assert [item["name"] for item in stated["subject"]] == [f"{about['run']}.jsonl", "best.binary"]
    assert about["artifacts"][0]["blob"] in tuning.decode()


def test_a_changed_byte_of_the_first_line_is_found(tuning: bytes) -> None:
    size = tuning.index(b"\n") + 1
    lines = tuning.splitlines(keepends=True)
    for at in range(0, size, 13):
        first = bytearray(lines[0])
        first[at] ^= 1
        found = verify_pack([bytes(first), *lines[1:]], Keys(PUBLIC), replayed=False)
        assert not found.ok, at


def test_tools_of_others_verify_a_pack_and_refuse_what_was_changed(tuning: bytes) -> None:
    """sigstore-models, securesystemslib and in-toto-attestation, without anything of SPAK."""
    key = approval.key_id(PUBLIC)
    for file in GOLDEN:
        assert pack_outside.problem(packed(file), PUBLIC, key) == ""
    assert pack_outside.problem(packed(GOLDEN[0], bytes(32)), PUBLIC, key) == "another key is named"
    changed = [tampered(tuning, random.Random(seed)) for seed in range(200)]
    found = [pack_outside.problem(data, PUBLIC, key) for data in changed if data != tuning]
    assert len(found) > 190 and all(found)


def test_every_line_that_is_missing_is_found(tuning: bytes) -> None:
    lines = tuning.splitlines(keepends=True)
    for at in range(len(lines)):
        assert not verify_pack(lines[:at] + lines[at + 1 :], Keys(PUBLIC), replayed=False).ok, at


def chained_again(data: bytes, seq: int, change: str, to: str, private: bytes | None = PRIVATE) -> bytes:
    """A record is changed, and everything after it computed again: blobs stay."""
    ledgers = MemoryLedgers()
    lines = data.splitlines(keepends=True)[1:]
    records = [json.loads(line) for line in lines if line.startswith(b'{"#":')]
    run = records[0]["body"]["host"]["run"]
    ledger = None
    for place, value in enumerate(records):
        text = json.dumps(value["body"])
        body = json.loads(text.replace(change, to)) if place == seq else value["body"]
        assert place != seq or body != value["body"]
        record = Record(
            value["kind"], value["authority"], body, value.get("task", ""), value.get("step", ""),
            value.get("attempt", 0), place, value.get("at", 0), value.get("side", {}),
        )  # fmt: skip
        if ledger is None:
            ledger = ledgers.create(run, record)
        else:
            ledger.append([record])
    assert ledger is not None
    for line in lines:
        if line.startswith(b'{"blob":'):
            from base64 import b64decode

            ledger.blobs.put(b64decode(json.loads(line)["data"]))
    out = io.BytesIO()
    pack.write(ledger, out, private)
    return out.getvalue()


def test_a_forged_decision_is_found_by_the_replay_though_all_is_signed_again() -> None:
    data = packed(next(file for file in GOLDEN if file.stem == "hello"))
    seq = next(n for n, line in enumerate(data.splitlines()[1:]) if b'"kind":"route"' in line)
    forged = chained_again(data, seq, '"success"', '"fail"')
    found = checked(forged)
    assert codes(found) == {"replay"} and found.problems[0].seq == seq


def test_a_pack_signed_by_another_is_refused_and_an_unsigned_one(tuning: bytes) -> None:
    another = packed(GOLDEN[0], bytes(32))
    assert codes(checked(another)) == {"signature"}
    assert codes(checked(packed(GOLDEN[0], None))) == {"signature"}
    found = checked(another, Keys())
    assert found.ok and {note.code for note in found.notes} == {"not_verified", "kernel_unknown"}


def test_a_statement_of_another_run_is_named(tuning: bytes) -> None:
    other = packed(GOLDEN[0])
    mixed = other.splitlines(keepends=True)[:1] + tuning.splitlines(keepends=True)[1:]
    found = verify_pack(mixed, Keys(PUBLIC))
    assert codes(found) == {"statement"} and "predicate.summary" in found.problems[0].message
    with pytest.raises(LedgerError, match=r"predicate\.summary"):
        import_(io.BytesIO(b"".join(mixed)), MemoryLedgers())
    assert not verify(mixed, exported=True).ok


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}\n", b'{"_type":', b'{"_type":"x"}\n', b'{"dsseEnvelope":7}\n']
)
def test_what_is_no_pack_is_refused(data: bytes) -> None:
    assert "header" in codes(checked(data, Keys()))
    assert "header" in codes(checked(data + b"".join(GOLDEN[0].read_bytes().splitlines(True)), Keys()))


def test_a_run_that_has_not_ended_has_no_statement(tmp_path: Path) -> None:
    ledgers = FileLedgers(tmp_path)
    with ledgers.create("r1", Record("genesis", "proposal", {"host": {"run": "r1"}})) as ledger:
        with pytest.raises(UsageError, match="not ended"):
            pack.write(ledger, io.BytesIO())
        ledger.conclude()
    assert not (tmp_path / "r1" / pack.PACK).exists()


# ---- logs ----------------------------------------------------------------------------------------------


def test_a_proof_that_a_log_has_the_run_is_part_of_the_pack() -> None:
    proof, key = logged(GOLDEN[0])
    data = packed(GOLDEN[0], log=proof)
    assert checked(data, Keys(PUBLIC, key)).problems == ()
    assert "not_verified" in {note.code for note in checked(data).notes}
    stranger = own_verifier("example.com/log", bytes(32))
    assert codes(checked(data, Keys(PUBLIC, stranger))) == {"proof"}
    assert codes(checked(packed(GOLDEN[0]), Keys(PUBLIC, key))) == {"proof"}
    assert codes(checked(packed(GOLDEN[0], log=logged(GOLDEN[0], erased=True)[0]))) == {"proof"}


def test_records_that_the_log_does_not_have_are_not_taken_for_its_own() -> None:
    """An early proof is true of the beginning of a run; whatever follows could be anybody's."""
    proof, key = logged(GOLDEN[0], count=3)
    found = checked(packed(GOLDEN[0], None, proof), Keys(None, key))
    assert codes(found) == {"proof"} and "only the first 3 of" in found.problems[-1].message
    assert checked(packed(GOLDEN[0], log=proof), Keys(PUBLIC, key)).ok, (
        "the signer of the statement answers for the rest"
    )


def test_a_proof_of_another_run_or_of_other_records_is_refused() -> None:
    proof, key = logged(GOLDEN[1])
    assert "checkpoint" in codes(checked(packed(GOLDEN[0], log=proof), Keys(PUBLIC, key)))
    assert codes(checked(packed(GOLDEN[0], log="c2sp.org/tlog-proof@v1\nextra x"))) == {"proof"}


# ---- the code that decided -----------------------------------------------------------------------------


def test_the_hash_of_the_kernel_covers_all_that_a_replay_imports() -> None:
    import subprocess
    import sys

    source = """
import sys
from pathlib import Path
from spak.kernel.replay import replay
from spak.records import decode
for name in sys.argv[1:]:
    lines = Path(name).read_bytes().splitlines(keepends=True)
    replay(decode(line) for line in lines if line.startswith(b'{"#":'))
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("spak.")}))
"""
    done = subprocess.run(
        [sys.executable, "-c", source, *map(str, GOLDEN)], capture_output=True, text=True, check=True
    )
    assert {"kernel", "policy", "canon"} <= set(done.stdout.split()) <= set(data.DECIDING)


def test_the_hash_of_the_kernel_changes_with_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "spak"
    for name in data.DECIDING:
        (package / name).mkdir(parents=True)
        (package / name / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(data, "__file__", str(package / "data.py"))
    kernel_code = data.kernel_code.__wrapped__
    before = kernel_code()
    (package / "kernel" / "__pycache__").mkdir()
    (package / "kernel" / "__pycache__" / "one.pyc").write_bytes(b"x")
    assert kernel_code() == before
    (package / "kernel" / "one.py").write_text("x = 2\n")
    assert kernel_code() != before
