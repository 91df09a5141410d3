"""What docs/runs.md shows to who writes programs: the lines for a shell and the reader in Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from platform_kit import ROOT
from process_kit import WAIT_S


def block(language: str) -> str:
    """The one block of that language on the page."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / "runs.md").read_text(), re.M | re.S)
    return str(found)


def surroundings(**more: str) -> dict[str, str]:
    """Without a proxy, with `spak` on the path."""
    kept = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more}


def shell(words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """What the words say in a shell that stops at the first that fails."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", words], cwd=folder, env=surroundings(**more),
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip


def reader() -> dict[str, Any]:
    """The names of the reader."""
    names: dict[str, Any] = {"__name__": "reader"}
    exec(compile(block("python"), "docs/runs.md", "exec"), names)
    return names
