"""`spak policy commands check`: tables in order, and findings with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import spak

GOOD = 'version = 1\n\n[mytool]\ndoes = "builds"\nflags = "-v"\noperands = "reads*"\n'
BAD = {
    GOOD.replace("reads*", "reeds*"): (3, "reeds is no kind"),
    GOOD.replace("flags", "flag"): (3, "flag is no part of a table"),
    GOOD.replace('"builds"', "builds"): (4, "no TOML"),
    GOOD.replace("version = 1", ""): (1, "no `version = 1` at the top"),
    GOOD.replace("version = 1", "version = true"): (1, "no `version = 1`"),
}


def test_the_shipped_tables_are_in_order(tmp_path: Path) -> None:
    code, found = spak(tmp_path, "policy", "commands", "check", "--json")
    assert code == 0 and found == {"files": [], "ok": True, "diagnostics": []}


@pytest.mark.parametrize("text", BAD, ids=lambda text: BAD[text][1])
def test_a_wrong_table_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    code, found = spak(tmp_path, "policy", "commands", "check", "a.toml", "--json")
    (one,) = found["diagnostics"]
    assert (code, found["ok"], one["code"]) == (3, False, "commands.table")
    assert one["line"] == BAD[text][0] and BAD[text][1] in one["message"]


def test_a_table_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(GOOD.encode() + b"# \xff\n")
    code, found = spak(tmp_path, "policy", "commands", "check", "a.toml", "--json")
    assert (code, found["error"]["code"]) == (2, "usage.file") and "not UTF-8" in found["error"]["message"]


def test_a_table_in_order_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    assert spak(tmp_path, "policy", "commands", "check", "a.toml", "--json")[0] == 0
    assert spak(tmp_path, "policy", "commands", "check", "none.toml", "--json")[0] == 2
