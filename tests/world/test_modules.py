"""Which file a Python import means, by the paths of a tree."""

from __future__ import annotations

import pytest

from spak.world.modules import Modules


@pytest.mark.timeout(20)
def test_a_tree_that_is_a_package_itself() -> None:
    """An `__init__.py` at the top: no folder is above it, so the search for the roots ends there."""
    modules = Modules(["__init__.py", "a.py", "part/__init__.py", "part/b.py"])
    assert modules.python("a.py", 0, "os") is None
    assert modules.python("part/b.py", 0, "a") == ("M", "a.py")
