"""What a validator lacks ends in R4 with a hint that says what to give or to install: never in a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.kernel import fit
from spak.ports import MeasureCall, Toolchain
from spak.runner import measured
from spak.validators import VALIDATORS


@pytest.mark.parametrize("name", sorted(VALIDATORS))
def test_a_validator_without_what_it_requires_fails_with_the_name_of_it(name: str) -> None:
    entry = VALIDATORS[name]().entry
    required = entry.schema.get("required", ())
    found = measured.lacking(entry, {})
    assert (found is None) == (not required)
    if found is not None:
        r4 = fit.failed_check("options", name, {"diagnostics": list(found.diagnostics)})
        assert all(f"{option}: ..." in r4["hint"] for option in required)
        assert measured.lacking(entry, dict.fromkeys(required, "x")) is None


@pytest.mark.parametrize("tool", ["ruff", "gcc"])
def test_a_linter_without_its_program_says_what_to_install(tmp_path: Path, tool: str) -> None:
    call = MeasureCall("1", "Linter", {"tool": tool}, tmp_path, None, toolchain=Toolchain())
    found = VALIDATORS["Linter"]().measure(call)
    assert found.status == "unavailable"
    r4 = fit.failed_check("validator.unavailable", "Linter", {"diagnostics": list(found.diagnostics)})
    assert r4["hint"].startswith(f"validator Linter: the toolchain has no {tool}; install {tool} (")


def test_where_and_what_and_what_to_do_are_kept_apart() -> None:
    first = {"file": "a.py", "line": 3, "code": "x", "message": "no folder", "hint": "name one"}
    body = {"diagnostics": [first]}
    assert fit.exit_r4(1, "run in step a", body)["hint"] == "run in step a: a.py:3: no folder; name one"
