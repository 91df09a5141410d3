"""What is taken for a value in a file of secrets, by the kinds of files that there are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.secrets.redact import Redactor
from spak.secrets.values import MAX_BYTES, is_public, values

KEY = "\n".join(["MIIEowIBAAKCAQEAzK2vRt9", "q83bLx0Pz71nQ2mmS0aVtY4", "short"])
PRIVATE = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----\n"
CERTIFICATE = f"-----BEGIN CERTIFICATE-----\n{KEY}\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "name, text, wanted",
    [
        (".env", "PASSWORD=plain words\n", {"plain words"}),
        (".env", "export PASS='one two'  # why\nKEY=\"three\\nfour\"\n", {"one two", "three\nfour"}),
        (".env", "A=hunter22 # the old one\n", {"hunter22"}),
        (".env", "#OLD_PASSWORD=before-that\n", {"before-that"}),
        (".env", "KEY=Zm9vYmFyMTI=\n", {"Zm9vYmFyMTI="}),
        (".env", 'CERT="first line\nsecond line\nlast line"\n', {"first line", "second line", "last line"}),
        (".env", "URL=postgres://us%65r:p%40ss-word@db:5432/x\n", {"p%40ss-word", "p@ss-word"}),
        (".env", "\ufeffPASSWORD=behind-a-mark\r\n", {"behind-a-mark"}),
        ("secrets.json", '{"a": {"key": ["deep down"]}, "pin": 123456789}', {"deep down", "123456789"}),
        ("secrets.json", '{"password": {"value": "in words"}}', {"in words"}),
        ("secrets.json", '{"key": "cut off he\n', {"cut off he"}),
        ("secrets.yaml", "db:\n  password: hunter22\n  list:\n    - item-one\n", {"hunter22", "item-one"}),
        ("secrets.yaml", "db: {password: hunter22, token: 'quoted one'}\n", {"hunter22", "quoted one"}),
        ("secrets.yaml", "key: |\n  first-line\n  second-line\n", {"first-line", "second-line"}),
        (
            "secrets.toml",
            '[a]\nkey = """\nhello there\n"""\nkeys = ["in one"]\n',
            {"hello there", "in one"},
        ),
        ("credentials", "[default]\naws_secret_access_key = abc/def+ghi\n", {"abc/def+ghi"}),
        (".netrc", "machine h login lena password hunter-two\n", {"hunter-two"}),
        (".pgpass", "db:5432:name:user:hunter22\n", {"hunter22"}),
        (".git-credentials", "https://me:tok-en-1@example.org\n", {"tok-en-1"}),
        (".npmrc", "//registry.example/:_authToken=abcdefgh\n", {"abcdefgh"}),
        (".htpasswd", "me:$apr1$x$y/z\n", {"$apr1$x$y/z"}),
        (".vault-token", "s.abcdefghijkl\n", {"s.abcdefghijkl"}),
        (".dockercfg", '{"auths": {"h": {"auth": "bWU6cGFzcw=="}}}', {"bWU6cGFzcw=="}),
        ("secrets.txt", "the password is hunter22b\n", {"hunter22b"}),
        ("id_rsa", PRIVATE, {"MIIEowIBAAKCAQEAzK2vRt9", "q83bLx0Pz71nQ2mmS0aVtY4"}),
        ("id_rsa", PRIVATE.replace("short", "shorttail=="), {"shorttail=="}),
    ],
)
def test_the_values_of_a_file(name: str, text: str, wanted: set[str]) -> None:
    assert wanted <= values(name, text.encode())


def test_names_and_comments_are_no_values() -> None:
    found = values(".env", b"# the database of the team\nPASSWORD=hunter22\n\n[section]\n")
    assert found == {"hunter22"}


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("APP_NAME=inventory", False), ("POSTGRES_DB=my_shop-data", False), ("SITE_NAME=My Shop", False),
        ("BASE_URL=https://api.shop.example:8443/v2", False), ("REGION=eu-north-1", False),
        ("TIMEOUT_MS=600000", False), ("DATA=/var/lib/shop/files", False), ("MAIL=team@shop.example", False),
        ("PASSWORD=inventory", True), ("DB_PWD=correct-horse", True), ("API_KEY=letters", True),
        ("PIN=123456", True), ("FOO=hunter22", True), ("FOO=QxZkPwLmRt", True), ("FOO=abc!def", True),
        ("FOO=aVeryLongWordOfManyLetters", True), ("ID=550e8400-e29b-41d4", True), ("justaword", True),
        ("FOO=https://me:pass-word@h.example", True), ("FOO=https://h.example/?a=b", True),
        ("SIX_PW=abcdef", True),
    ],
)  # fmt: skip
def test_words_under_a_name_that_promises_no_secret_are_left(line: str, kept: bool) -> None:
    assert bool(values(".env", f"{line}\n".encode())) is kept
    name, _, value = line.partition("=")
    if value:
        assert bool(values("secrets.json", json.dumps({"deep": [{name: [value]}]}).encode())) is kept
        assert bool(values("secrets.toml", f'[a]\n{name} = "{value}"\n'.encode())) is kept


def test_no_pattern_takes_long() -> None:
    for text in ("a" * 200_000, "a-" * 100_000, "A=" * 100_000, '"' * 100_000, "{" * 100_000, ":/" * 100_000):
        values(".env", text.encode())
        values("secrets.json", text.encode())


def test_bytes_and_large_files_have_none() -> None:
    assert values("key.p12", b"\x00\x01PASSWORD=x") == frozenset()
    assert values(".env", b"A=hunter22\n" + b"#" * MAX_BYTES) == frozenset()


@pytest.mark.parametrize("name", ["secrets.json", ".env"])
def test_half_of_a_surrogate_pair_is_known_as_the_file_writes_it(name: str) -> None:
    text = '{"password": "\\ud800abc12345x"}' if name == "secrets.json" else 'PASSWORD="\\ud800abc12345x"'
    assert values(name, text.encode()) == {"\\ud800abc12345x"}
    assert Redactor((), values(name, text.encode())).text(f"it says {text}").count("abc12345x") == 0


def test_certificates_are_public() -> None:
    for name in ("ca.pem", "a/CA.PEM.bak", "ca.pem~"):
        assert is_public(name, CERTIFICATE.encode() * 3) and not is_public(name, PRIVATE.encode())
        assert not is_public(name, (CERTIFICATE + PRIVATE).encode()) and not is_public(name, b"PASSWORD=x")
        assert not is_public(name, b"")
    assert not is_public("store.p12", CERTIFICATE.encode()) and not is_public("pem", CERTIFICATE.encode())
    assert values("ca.pem", CERTIFICATE.encode()) == frozenset()


@settings(max_examples=60)
@given(st.text("abcXYZ019 -_.!@/\\+'\"#=:$é", min_size=6, max_size=30).map(str.strip))
def test_any_value_of_json_is_found(value: str) -> None:
    assert not value or value in values("secrets.json", json.dumps({"key": value}).encode())


@settings(max_examples=60)
@given(st.text("abcXYZ019-_.!@/+=:$é", min_size=6, max_size=30))
def test_any_plain_value_of_env_is_found(value: str) -> None:
    value = value.lstrip("=")
    assert (
        any(
            value.endswith(one) and len(one) >= min(6, len(value))
            for one in values(".env", f"KEY={value}\n".encode())
        )
        or not value
    )


@settings(max_examples=60)
@given(st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes) -> None:
    for name in (".env", "secrets.json", "secrets.toml", "id_rsa"):
        assert all(values(name, data))
        is_public("ca.pem", data)
