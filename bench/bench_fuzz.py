"""The API under ten minutes of random requests: how many, and what they found.

schemathesis makes them of docs/openapi.yaml, half of them about things that exist, with a token that may all
that a token can (tests/web/api/test_api_fuzz.py). A finding is counted once for each operation, since the
shrinking of a failure repeats it. Each that failed is on standard error, as curl.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.bench_platform import ROOT, row
from bench.sizes import sized

SECONDS, ONLY = sized((600, []), (1, ["-k", "start_run"]))


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        figures = Path(folder) / "figures.jsonl"
        own = {"SPAK_FUZZ_SECONDS": str(SECONDS), "SPAK_FUZZ_FIGURES": str(figures), "PYTEST_ADDOPTS": ""}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/web/api/test_api_fuzz.py", *ONLY],
            cwd=ROOT, stdout=sys.stderr, check=False, env=os.environ | own,
        )  # fmt: skip
        if done.returncode not in (0, 1):
            done.check_returncode()
        operations = [json.loads(line) for line in figures.read_text().splitlines()]
    found = [finding for one in operations for finding in one["findings"]]
    title = f"API: {SECONDS} s of random requests to {len(operations)} operations"
    other = len([one for one in found if one not in ("5xx", "schema")])
    return [
        row(f"{title}, sent", sum(one["cases"] for one in operations), 0, "", ""),
        row(f"{title}, server errors", found.count("5xx"), 0, "", "<= 0"),
        row(f"{title}, answers that break the schema", found.count("schema"), 0, "", "<= 0"),
        row(f"{title}, other findings", other, 0, "", "<= 5"),
    ]
