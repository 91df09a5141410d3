"""The `spak` command as a person calls it: a process, its exit code, its one JSON document."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import warm_kit
from process_kit import WAIT_S

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "specs/examples"


def spak(folder: Path, *args: str, stdin: str = "", timeout: float = WAIT_S) -> tuple[int, Any]:
    """Run `spak` in a folder; the exit code and what --json printed (or standard output as text)."""
    done = raw(folder, *args, stdin=stdin, timeout=timeout)
    assert "Traceback" not in done.stderr, done.stderr
    if "--json" in args:
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)
    return done.returncode, done.stdout


def raw(
    folder: Path, *args: str, stdin: str = "", timeout: float = WAIT_S
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPAK_")}
    line = ["-c", "from spak.cli import main; main()", *args]
    return warm_kit.run(line, cwd=folder, env=environment, input=stdin, timeout=timeout)


def run_dir(folder: Path, document: Any) -> Path:
    return folder / ".spak/runs" / str(document["run"])
