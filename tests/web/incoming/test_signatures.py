"""Signatures of messages that come in: each form, and each way in which one can be wrong."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signed_kit import FORMS, github, standard
from spakweb.ground import clock
from spakweb.work.incoming.signatures import judge

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER = "whsec_" + base64.b64encode(KEY[::-1]).decode()
BODY = b'{"a":1}'


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 27, tzinfo=UTC))


def now_s() -> float:
    return clock.now().timestamp()


@pytest.mark.parametrize("form", FORMS)
def test_each_form_holds_with_any_of_the_secrets(form: str) -> None:
    headers = FORMS[form](SECRET, BODY, "push", "id-1")
    for secrets in ([SECRET], [OTHER, SECRET], [SECRET, OTHER]):
        judged = judge(headers, BODY, secrets, now_s())
        assert judged.holds and judged.message == "id-1"
        assert judged.event == ("" if form == "standard" and not headers.get("x-gitlab-event") else "push")


def test_the_vector_of_standard_webhooks() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert judge(headers, b'{"test": 2432232314}', [secret], 1614265330).holds


def test_the_vector_of_github() -> None:
    headers = {
        "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    }
    assert judge(headers, b"Hello, World!", ["It's a Secret to Everybody"], 0).holds


def test_a_sender_may_take_the_text_of_the_secret_as_the_key() -> None:
    import hashlib
    import hmac

    stamp = int(now_s())
    signed = hmac.new(SECRET.encode(), f"m.{stamp}.".encode() + BODY, hashlib.sha256).digest()
    headers = {"webhook-id": "m", "webhook-timestamp": str(stamp)}
    headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode()}"
    assert judge(headers, BODY, [SECRET], now_s()).holds


@pytest.mark.parametrize("name", ['{"a":"x', 'payload="', "a.1", ".", '"'])
def test_a_signature_of_githubs_form_does_not_hold_for_an_id_cut_from_the_body(name: str) -> None:
    """The text of the secret is a key of both forms: a body must not be read as id, time and another body."""
    stamp = str(int(now_s()))
    whole = f"{name}.{stamp}.".encode() + BODY
    digest = bytes.fromhex(github(SECRET, whole)["x-hub-signature-256"].removeprefix("sha256="))
    headers = {"webhook-id": name, "webhook-timestamp": stamp}
    headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    judged = judge(headers, BODY, [SECRET], now_s())
    assert not judged.holds and "webhook-id" in judged.why


@pytest.mark.parametrize("form", FORMS)
def test_another_secret_is_wrong(form: str) -> None:
    judged = judge(FORMS[form](OTHER, BODY), BODY, [SECRET], now_s())
    assert not judged.holds and not judged.late and not judged.known_by


@pytest.mark.parametrize("form", ["github", "standard"])
@given(body=st.binary(max_size=64))
def test_another_body_is_wrong(form: str, body: bytes) -> None:
    headers = FORMS[form](SECRET, BODY)
    assert judge(headers, body, [SECRET], now_s()).holds == (body == BODY)


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"x-hub-signature-256": ""},
        {"x-hub-signature-256": "sha1=" + "0" * 40},
        {"x-hub-signature-256": "sha256=" + "é" * 64},
        {"x-hub-signature-256": "a" * 5000},
        {"x-hub-signature": "sha1=0"},
        {"x-gitlab-token": ""},
        {"x-gitlab-token": SECRET[:-1]},
        {"x-gitlab-token": SECRET.lower()},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": "v1,AAAA", "webhook-id": "a", "webhook-timestamp": "-1"},
        {"webhook-signature": "v1,AAAA", "webhook-id": "a", "webhook-timestamp": "1e9"},
        {"webhook-signature": "v1,AAAA", "webhook-id": "a", "webhook-timestamp": "9" * 40},
        {"webhook-signature": "v1,AAAA", "webhook-id": "a" * 200, "webhook-timestamp": "1"},
        {"webhook-signature": " ".join(["v1,AAAA"] * 900), "webhook-id": "a", "webhook-timestamp": "1"},
        {"webhook-signature": "v2,\ud800", "webhook-id": "a", "webhook-timestamp": "1"},
    ],
    ids=range(16),
)
def test_what_is_no_signature(about: dict[str, str]) -> None:
    judged = judge(about, BODY, [SECRET], now_s())
    assert not judged.holds and judged.why and not judged.late


@given(
    st.dictionaries(
        st.sampled_from(
            ["webhook-id", "webhook-timestamp", "webhook-signature", "x-hub-signature-256", "x-gitlab-token"]
        ),
        st.text(max_size=80),
    ),
    st.binary(max_size=40),
)
def test_no_text_in_headers_breaks_it_or_holds(headers: dict[str, str], body: bytes) -> None:
    assert not judge(headers, body, [SECRET], now_s()).holds


def test_the_first_form_counts_and_a_good_one_after_it_saves_nothing() -> None:
    good = github(SECRET, BODY)
    wrong = standard(OTHER, BODY)
    assert not judge({**good, **wrong}, BODY, [SECRET], now_s()).holds


@pytest.mark.parametrize(
    ("apart", "holds"), [(0, True), (300, True), (-300, True), (301, False), (-301, False)]
)
def test_the_time_of_a_message_may_differ_by_five_minutes(apart: int, holds: bool) -> None:
    judged = judge(standard(SECRET, BODY), BODY, [SECRET], now_s() + apart)
    assert (judged.holds, judged.late) == (holds, not holds)
    assert holds or ("ago" in judged.why) == (apart > 0)


def test_what_a_message_is_known_by_is_what_its_signature_covers() -> None:
    one, other = (judge(github(SECRET, BODY, message=name), BODY, [SECRET], 0) for name in ("a", "b"))
    assert one.known_by == other.known_by and one.known_by.startswith("sha256:")
    assert judge(standard(SECRET, BODY, message="a"), BODY, [SECRET], now_s()).known_by == "a"


def test_the_example_of_the_docs_signs_as_it_should() -> None:
    docs = (Path(__file__).parents[3] / "docs/webhooks.md").read_text()
    script = "\n".join(
        line[4:] for line in docs[docs.index("    body=") :].splitlines() if line.startswith("    ")
    )
    said = """curl() {
      for word in "$@"; do case "$word" in webhook-*|'{'*) printf '%s\\n' "$word";; esac; done
    }
    """
    done = subprocess.run(
        ["bash", "-euc", f"{said}\n{script}"], capture_output=True, text=True, check=True,
        env={"SECRET": SECRET, "ADDRESS": "x", "PATH": os.environ["PATH"]},
    )  # fmt: skip
    body, *lines = done.stdout.splitlines()
    headers = dict(line.split(": ", 1) for line in lines)
    assert {*headers} == {"webhook-id", "webhook-timestamp", "webhook-signature"}
    assert judge(headers, body.encode(), [SECRET], float(headers["webhook-timestamp"])).holds
    assert not judge(headers, body.encode(), [OTHER], float(headers["webhook-timestamp"])).holds
