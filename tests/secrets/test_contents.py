"""What a text holds as a secret, and what looks like it and is none."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
from collections.abc import Callable

import pytest

from spak.secrets.contents import MAX_BYTES, found_in

HEADER = "-----BEGIN OPENSSH PRIVATE KEY-----"
SECRETS = {
    "db_password: hunter22x": "hunter22x",
    "DB_PASSWORD=hunter22x\n": "hunter22x",
    '{"clientSecret": "a8f-S3cr3t!"}': "a8f-S3cr3t!",
    "  api-key = 'q1w2e3r4t5'": "q1w2e3r4t5",
    "secret_key_base: abcdefghijklmnopqrstuvwxyzabc": "abcdefghijklmnopqrstuvwxyzabc",
    "<password>pa5sw0rd</password>": "pa5sw0rd",
    "machine h login me password z1z2z3z4": "z1z2z3z4",
    "dsn: postgres://app:x9Kd02mW@db/app": "x9Kd02mW",
    "Authorization: Bearer 9f8e7d6c5b4a": "9f8e7d6c5b4a",
    "note the ghp_" + "a1B2" * 9: "ghp_" + "a1B2" * 9,
    "//r.internal/:_authToken=n0t-2-b3": "n0t-2-b3",
    "DB_PASS=hunter22x": "hunter22x",
    "smtp:\n  pass: hunter22x": "hunter22x",
    "dbPass = 'hunter22x'": "hunter22x",
    "<pass>pa5sw0rd</pass>": "pa5sw0rd",
    "port 6379\nrequirepass hunter22x": "hunter22x",
    "password: hunter2-4x2": "hunter2-4x2",
    "password: xKqPwzRt-4x2": "xKqPwzRt-4x2",
    "auth_key: m16n8k16q": "m16n8k16q",
    "password: kqpwzrtvhsxbnmdfg-4x2": "kqpwzrtvhsxbnmdfg-4x2",
}
NONE = (
    "password: changeme123x1y",
    "password: ${DB_PASSWORD}",
    "password: $DB_PASS1W2",
    "token: ${{ secrets.TOKEN1A }}",
    "secret: my-app-database-credentials-v2",
    "secretName: tls2cert3x",
    "image: postgres-13.2",
    "cache_key: v1a2b3c4",
    "POSTGRES_PASSWORD: postgres",
    "password: test1234",
    "the password must have 8 letters and 2 digits",
    '{"password": "Au moins 8 lettres et 2 chiffres"}',
    "token_file: /run/secrets/t0k3n1x",
    "api_key: <your-k3y-h3r3>",
    "AKIAIOSFODNN7EXAMPLE",
    "integrity: sha512-a1b2c3d4e5f6",
    "password_min_length: 12345678",
    "password: 2024-10-01",
    "PASS test_mm_f32x4\nPASS: conv_k3s2p1",
    "pass matmul_m16n8k16 0.123",
    "Second pass m16n8k16, bypass b32x4b8",
    "tokens\ttoken m16n8k16\ntoken\tb32x4b8",
    '{"next_token": "abc123def", "nextPageToken": "q1w2e3r4t5"}',
    "pad_token: t0k3n1x9, continuation-token=a1b2c3d4",
    'auth_key: "m16n8k16", shared_key: WMMA_M16N16K16',
    "pass: loop-unroll-4x2\nsecret: tile.128x64x32",
    "pass = vectorize_f32x4",
    HEADER,
)


@pytest.mark.parametrize(("text", "value"), SECRETS.items(), ids=range(len(SECRETS)))
def test_literals_and_known_shapes_are_found(text: str, value: str) -> None:
    assert found_in(text.encode()) == {value}


def test_a_block_of_a_private_key_is_found_where_it_holds_one() -> None:
    assert found_in(f"{HEADER}\n{'b3BlbnNz' * 10}\n".encode())


def test_a_block_of_a_private_key_is_found_in_quotes_too() -> None:
    assert found_in(f'{{"private_key": "{HEADER}\\n{"b3BlbnNz" * 10}"}}'.encode())


def test_the_key_that_goes_with_an_id_of_aws_is_found_too() -> None:
    key, commit = "Zx9vQ2mLr7Tn4KpW8sYc3HdJ6fBg1Ae5aB/cD+e9", "0123456789abcdef" * 2 + "01234567"
    assert found_in(f"aws: AKIAQ7RZ3N5XK2TV6WLB / {key}\n{commit}\n".encode()) == {
        "AKIAQ7RZ3N5XK2TV6WLB",
        key,
    }
    assert found_in(f"digest {key}, {commit}\n".encode()) == frozenset()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_packed_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"password: hunter22x\n" * 9000)
    assert found_in(packed) == {"hunter22x"}
    assert found_in(packed[:20]) == frozenset()


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_words_references_and_placeholders_are_none(text: str) -> None:
    assert found_in(text.encode()) == frozenset()


def test_under_a_name_that_promises_a_secret_a_mixed_word_is_one() -> None:
    assert found_in(b"root h8x2k9qw\n", telling=True) == {"h8x2k9qw"}
    assert found_in(b"root h8x2k9qw\n") == frozenset()
    assert found_in(b"us-east-1 python3 v2 https://a1.b2.example/c3\n", telling=True) == frozenset()


def test_what_is_no_text_and_what_lies_far_behind_is_not_looked_at() -> None:
    assert found_in(b"\0password: hunter22x") == frozenset()
    assert found_in(b" " * MAX_BYTES + b"password: hunter22x") == frozenset()


@pytest.mark.parametrize(
    "piece", ["password", "password: ", "://:", "a1", "-----BEGIN ", "authorization: bearer ", '"', "eyJ"]
)
def test_no_text_takes_long(piece: str) -> None:
    data = (piece * MAX_BYTES).encode()
    found_in(b"")
    began = time.process_time()
    found_in(data)
    assert time.process_time() - began < 2
