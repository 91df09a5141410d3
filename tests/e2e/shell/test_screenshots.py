"""The README's pictures, taken of the real platform: `make screenshots` writes them, tests only take them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from platform_kit import Watched

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]

EDITOR = "/t/demo-team/specs/first-draft/edit/"
PICTURES = (
    ("platform-home", "/t/demo-team/", "light", "h1"),
    ("platform-editor", EDITOR, "light", "#editor[data-ready=true]"),
    ("platform-editor-dark", EDITOR, "dark", "#editor[data-ready=true]"),
    ("platform-spec", "/t/demo-team/specs/attention-tuner/", "light", ".graph-scroll svg"),
)


@pytest.mark.parametrize(("name", "path", "look", "ready"), PICTURES, ids=[name for name, *_ in PICTURES])
def test_pictures(
    window: Callable[..., Watched],
    pytestconfig: pytest.Config,
    tmp_path: Path,
    name: str,
    path: str,
    look: str,
    ready: str,
) -> None:
    folder = Path(pytestconfig.getoption("--screenshots") or tmp_path)
    alice = window("alice", color_scheme=look, reduced_motion="reduce")
    alice.go(path)
    alice.page.wait_for_selector(ready)
    alice.page.wait_for_load_state("networkidle")
    file = folder / f"{name}.png"
    alice.page.screenshot(path=file, animations="disabled")
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 10_000
