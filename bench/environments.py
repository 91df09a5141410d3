"""Environments that a line of a list made: whether a file in one is as `python -m venv` writes it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

NAME = "name-of-an-environment"


def is_plain(root: Path, path: str, before: Collection[str]) -> bool:
    """Whether a file is one that `python -m venv` writes into an environment that was not there, word for
    word: it comes with what a line may make."""
    top = Path(path).parent.parent
    settings = str(top / "pyvenv.cfg")
    if settings in before or not (root / settings).is_file() or (root / path).is_symlink():
        return False
    made = _environment().get(Path(path).relative_to(top).as_posix(), "")
    return bool(made) and made.replace(NAME, top.name) == (root / path).read_text().replace(
        f"/ws/{top}", top.name
    )


@cache
def _environment() -> Mapping[str, str]:
    """What `python -m venv` of the sandbox writes into `bin`, with NAME for its place and its name."""
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve() / NAME
        subprocess.run([python, "-m", "venv", "--without-pip", str(place)], check=True)
        texts = [path for path in (place / "bin").iterdir() if not path.is_symlink()]
        return {f"bin/{path.name}": path.read_text().replace(str(place), NAME) for path in texts}
