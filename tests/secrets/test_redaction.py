"""Secrets are taken out in every usual writing, the rest stays, and what cannot be done safely is refused."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.errors import RunError
from spak.secrets.contents import SHAPES
from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret

KEY = 'sk+ca/nary"0123-456789'
MADE = Redactor([Secret(KEY), Secret("another-one-99")])

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"
EXAMPLES: dict[str, str] = {
    "pem": PEM,
    "anthropic": "sk-ant-api03-" + "a1B2" * 10,
    "openai": "sk-proj-" + "a1B2" * 10,
    "google": "AIza" + "a1B2c" * 7,
    "google_oauth": "ya29.a0" + "a1B2" * 10,
    "github": "ghp_" + "a1B2" * 9,
    "gitlab": "glpat-" + "a1B2" * 5,
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "slack": "xoxb-123456789012-abcdef",
    "stripe": "sk_live_" + "a1B2" * 5,
    "npm": "npm_" + "a1B2" * 9,
    "pypi": "pypi-" + "a1B2" * 12,
    "huggingface": "hf_" + "a1B2" * 9,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "bearer": "Authorization: Bearer abcdef123456",
    "url_password": "postgres://user:hunter2secret@db/x",
}
INNOCENT = (
    "the task-runner asks sk- for a skein of sky",
    "https://example.org/a:b@c and mailto:alice@example.org and http://h:80/@x",
    "sha256 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "import hf_hub; npm_config = 3; AKIA is a prefix",
)


def test_every_shape_has_its_example() -> None:
    assert set(EXAMPLES) == set(SHAPES)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_known_shape_is_replaced_wherever_it_stands(kind: str) -> None:
    example = EXAMPLES[kind]
    for text in (example, f"a\n{example}\nb", json.dumps(example), f"\x1b[1;31m{example}\x1b[0m"):
        found = MADE.text(text)
        assert f"[redacted:{kind}]" in found
        assert (
            "a1B2" not in found and "MIIE" not in found and "hunter2" not in found and "abcdef" not in found
        )
        assert MADE.text(found) == found


def test_a_key_block_that_was_cut_is_taken_to_its_end() -> None:
    assert MADE.text(f"see {PEM[:45]}") == "see [redacted:pem]"


@pytest.mark.parametrize("text", INNOCENT)
def test_ordinary_text_stays(text: str) -> None:
    assert MADE.text(text) == text


WRITINGS = {
    "plain": KEY,
    "percent": quote(KEY, safe=""),
    "json": json.dumps(KEY)[1:-1],
    "json with slashes": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "hex": KEY.encode().hex(),
    "HEX": KEY.encode().hex().upper(),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_configured_secret_is_found_in_every_writing(writing: str) -> None:
    assert MADE.text(f"<{WRITINGS[writing]}>") == "<[redacted:key]>"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_in_base64_no_offset_hides_it(encode: Any, before: bytes, after: bytes) -> None:
    text = encode(before + KEY.encode() + after).decode()
    found = MADE.text(text)
    assert "[redacted:key]" in found
    rest = found.split("[redacted:key]")
    assert sum(map(len, rest)) <= len(text) - len(KEY), "at most the letters that it shares are left"


@given(st.text(max_size=200))
def test_twice_is_once(text: str) -> None:
    once = MADE.text(text)
    assert MADE.text(once) == once


def test_values_are_walked_whole() -> None:
    value = {"a": [KEY, 1, None, True, 2.5], f"k{KEY}": {"b": EXAMPLES["github"]}}
    assert MADE.value(value) == {
        "a": ["[redacted:key]", 1, None, True, 2.5],
        "k[redacted:key]": {"b": "[redacted:github]"},
    }


def deep(levels: int) -> Any:
    value: Any = KEY
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [b"bytes", {1, 2}, object(), {1: "a"}, deep(5_000), "\ud800", {f"x{KEY}": 1, "x[redacted:key]": 2}],
    ids=["bytes", "set", "object", "number as a name", "deep", "half a pair", "names that fall together"],
)
def test_what_cannot_be_done_safely_is_refused(value: Any) -> None:
    with pytest.raises(RunError) as caught:
        MADE.value(value)
    assert caught.value.code == "llm.redaction"
    assert KEY not in str(caught.value) and caught.value.__cause__ is None


def test_a_secret_too_short_to_find_is_refused() -> None:
    with pytest.raises(RunError) as caught:
        Redactor([Secret("abc")])
    assert caught.value.code == "llm.redaction" and "abc" not in str(caught.value)


def test_nothing_of_it_shows_in_a_repr() -> None:
    assert "canary" not in repr(MADE) and KEY not in repr(MADE)


def test_hostile_text_takes_no_longer() -> None:
    """Quadratic work on this much would take hours, and the suite's limit end it."""
    for piece in ("-eyJaaaaaaaa", "://a", "-----BEGIN PRIVATE KEY-----", "authorization: ", "sk-"):
        found = MADE.text(piece * 100_000)
        assert MADE.text(found) == found


FORMS: dict[str, Callable[[str], str]] = {
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a file": lambda text: base64.b64encode(f"KEY={text}\n".encode()).decode(),
    "percent": lambda text: quote(text, safe=""),
    "percent, path": quote,
    "percent, form": lambda text: quote_plus(text),
    "percent, small": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    "percent, as browsers do": lambda text: quote(text, safe="!'()*"),
    "percent, a whole address": lambda text: quote(text, safe="!'()*/:@&=+$,;?#"),
    "json": json.dumps,
    "json, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
}
VALUES = ("correct horse/battery+9", "hunter22-Kp3x", "Tr0ub4dor&3/x+y=", 'Zürich\'s "9" <a&b>\\(x)!/%')


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_of_a_file_is_taken_out_in_every_form_that_is_promised(how: str, value: str) -> None:
    redactor = Redactor().knowing([value])
    shown = FORMS[how](value)
    found = redactor.text(f"before {shown} after")
    assert "redacted" in found and shown not in found
    assert redactor.text(found) == found
    assert found.startswith("before ") and found.endswith(" after")
    assert redactor.holds(f"\xff{shown}".encode("latin-1" if shown.isascii() else "utf-8"))


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text[::-1],
        str.swapcase,
        "x".join,
        lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
        lambda text: zlib.compress(text.encode()).hex(),
    ],
)
def test_forms_of_a_programs_own_are_not_promised(form: Callable[[str], str]) -> None:
    """What docs/sandbox.md names as not found: if one is, the page has to say so."""
    shown = form("hunter22-Kp3x")
    assert Redactor().knowing(["hunter22-Kp3x"]).text(shown) == shown


def test_lines_are_joined_by_no_chance() -> None:
    redactor = Redactor().knowing(["abcdefg"])
    assert redactor.text("abc\ndefg") == "abc\ndefg"
