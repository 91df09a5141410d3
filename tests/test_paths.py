"""Paths as text: refusals by name, and one spelling for each path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak import paths
from spak.errors import UsageError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("./a//b/.", ("a", "b")),
        (".", ()),
        ("a/..", ()),
        ("a/../b", ("b",)),
        ("src/..a.py", ("src", "..a.py")),
        ("src/.../a", ("src", "...", "a")),
        ("~/x", ("~", "x")),
        ("-rf", ("-rf",)),
        ("..\\a", ("..\\a",)),
        ("..%2fa", ("..%2fa",)),
        ("..\uff0fa", ("..\uff0fa",)),
        ("src/日本.py", ("src", "日本.py")),
        ("/ws/src/a.py", ("src", "a.py")),
        ("/ws", ()),
    ],
)
def test_one_spelling(text: str, parts: tuple[str, ...]) -> None:
    assert paths.normalise(text) == parts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "path.empty"),
        ("\0", "path.control"),
        ("a\nb", "path.control"),
        ("a\x7fb", "path.control"),
        ("\ud800", "path.control"),
        ("/etc/passwd", "path.absolute"),
        ("//etc", "path.absolute"),
        ("/wsx/a", "path.absolute"),
        ("..", "path.parent"),
        ("../a", "path.parent"),
        ("./../a", "path.parent"),
        ("a/../../b", "path.parent"),
        ("a/../../a/b", "path.parent"),
        ("/ws/../etc", "path.parent"),
        ("a" * 256, "path.too_long"),
        ("é" * 128, "path.too_long"),
        ("a/" * 2048 + "a", "path.too_long"),
    ],
)
def test_refusals_have_names(text: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        paths.normalise(text)
    assert caught.value.code == code


def test_components_keep_the_way_up_after_a_name() -> None:
    assert paths.components("a/../../b") == ("a", "..", "..", "b")


@given(st.text())
def test_a_path_is_below_the_root_or_refused(text: str) -> None:
    try:
        parts = paths.normalise(text)
    except UsageError as error:
        assert error.code.startswith("path.")
        return
    assert not {"", ".", ".."} & set(parts) and not any("/" in part or "\0" in part for part in parts)
    assert not parts or paths.normalise(paths.join(parts)) == parts
