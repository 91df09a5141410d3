"""In CI nothing that a test needs may be missing: such a test fails there, and skips elsewhere."""

from __future__ import annotations

import pytest

import needs


@pytest.mark.parametrize("ci", ["", "true"])
def test_what_is_missing_skips_and_fails_in_ci(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    wanted = pytest.fail.Exception if ci else pytest.skip.Exception
    with pytest.raises(wanted, match="no-such-program is not on this machine: apt-get install a-package"):
        needs.program("no-such-program", "a-package")
    with pytest.raises(wanted, match="no_such_module is not installed: make setup"):
        needs.module("no_such_module")
    needs.program("sh")
    needs.module("json")
