"""Signed notes and checkpoints: the published examples of the formats, and everything that is none."""

from base64 import b64decode

import pytest

from spak.errors import LedgerError
from spak.ledger import note

# The example of c2sp.org/signed-note.
C2SP_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
C2SP_NOTE = (
    "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1"
    "ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
# The example of golang.org/x/mod/sumdb/note, with its private key.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_SEED = b64decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")[1:]
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
)
GO_LINE = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZ"
    "b6KE6RyyBwJnAM=\n"
)
# A checkpoint of a public log of certificates, with the cosignature of a public witness.
CT_KEY = "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f"
WITNESS_KEY = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"
CT_CHECKPOINT = (
    "arche2025h1.staging.ct.transparency.dev\n1432088532\nU7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=\n\n"
    "— arche2025h1.staging.ct.transparency.dev ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3Nyg"
    "NI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=\n"
    "— transparency.dev/DEV:witness-little-garden 2AQqhwAAAABqEiEgzgFIqqhbUoDwjMWE6UP8nd8/KYTzwZ2rhI"
    "gcqoXHAwVkjZr4AscylP3v7sEodkRAErumC2q44vdgJY096st5BQ==\n"
    "— remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTy"
    "nk5XeU/zZ0WBxtqB0DrAWfBw==\n"
)
SEED = bytes(range(32))


def refused(data: str | bytes, code: str = "ledger.checkpoint") -> None:
    with pytest.raises(LedgerError) as caught:
        note.read(data if isinstance(data, bytes) else data.encode()).head()
    assert caught.value.code == code


@pytest.mark.parametrize("text", [C2SP_KEY, GO_KEY, CT_KEY, WITNESS_KEY])
def test_published_keys_are_read_and_written_alike(text: str) -> None:
    assert str(note.verifier(text + "\n")) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com/foo",
        C2SP_KEY.replace("530d903a", "530d903b"),
        C2SP_KEY.replace("foo", "bar"),
        C2SP_KEY[:-4],
        C2SP_KEY.replace("Aeky", "Beky"),
        C2SP_KEY.replace("+530d903a+", "+530D903A+"),
        "a b+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
    ],
)
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(LedgerError) as caught:
        note.verifier(text)
    assert caught.value.code == "ledger.key"


def test_the_published_notes_verify_and_no_changed_one() -> None:
    for key, data in ((C2SP_KEY, C2SP_NOTE), (GO_KEY, f"{GO_TEXT}\n{GO_LINE}")):
        found, verifier = note.read(data.encode()), note.verifier(key)
        assert found.signed_by(verifier) and found.text() == data
        changed = note.read(data.replace("i", "j", 1).encode())
        with pytest.raises(LedgerError) as caught:
            changed.signed_by(verifier)
        assert caught.value.code == "ledger.signature"


def test_a_public_checkpoint_and_its_cosignature_verify() -> None:
    log, witness = note.verifier(CT_KEY), note.verifier(WITNESS_KEY)
    found, head = note.trusted(CT_CHECKPOINT.encode(), log, (witness,))
    assert (head.origin, head.size) == ("arche2025h1.staging.ct.transparency.dev", 1432088532)
    assert found.signed_at(log) == 0 and found.signed_at(witness) == 1779573024
    assert not found.signed_by(note.verifier(C2SP_KEY))  # an unknown key is no error
    with pytest.raises(LedgerError) as caught:
        note.trusted(CT_CHECKPOINT.replace("1432088532", "1432088533").encode(), log)
    assert caught.value.code == "ledger.signature"


def test_a_log_key_signs_the_note_of_the_published_example() -> None:
    """Ed25519 is deterministic, so that the same key gives the same line."""
    assert str(note.own_verifier("PeterNeumann", GO_SEED)) == GO_KEY
    assert note.signature(GO_TEXT, "PeterNeumann", GO_SEED) == GO_LINE


def test_a_checkpoint_is_read_back_as_it_was_signed() -> None:
    head = note.Head("example.com/team", 3, bytes(range(32)))
    signed = note.sign(head, SEED)
    key = note.own_verifier("example.com/team", SEED)
    assert note.trusted(signed.text().encode(), key) == (signed, head)
    extended = note.Note(head.text() + "an extension line\n", ())
    assert extended.head() == head
    for other in (
        note.own_verifier("example.com/other", SEED),
        note.own_verifier("example.com/team", bytes(32)),
    ):
        with pytest.raises(LedgerError) as caught:
            note.trusted(signed.text().encode(), other)
        assert caught.value.code == "ledger.signature"


def test_what_is_no_checkpoint_is_refused() -> None:
    head = note.Head("example.com/team", 3, bytes(32))
    good = note.sign(head, SEED).text()
    refused("")
    refused("\n\n\n")
    refused(b"\xff\xfe")
    refused(good.replace("\n", "\r\n"))
    refused(good.replace("\n3\n", "\n03\n"))
    refused(good.replace("\n3\n", "\n-3\n"))
    refused(good.replace("\n3\n", "\n\n3\n"))
    refused(good[:-1])
    refused(good.split("\n\n")[0] + "\n\n")
    refused(good.replace("— ", "- "))
    refused(good.replace(note.encoded(bytes(32)), note.encoded(bytes(31))))
    refused(good + "— name c2lnbmF0dXJl\n" * note.MAX_SIGNATURES)
    refused("a\n" * note.MAX_BYTES + good)
    refused(GO_TEXT + "\n" + GO_LINE)


@pytest.mark.parametrize("name", ["", "two words", "a+b", "line\nline", "x" * 256])
def test_what_cannot_name_a_log_signs_nothing(name: str) -> None:
    with pytest.raises(LedgerError) as caught:
        note.sign(note.Head(name, 0, bytes(32)), SEED)
    assert caught.value.code == "ledger.key"
