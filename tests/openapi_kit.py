"""The schema of the API as docs/openapi.yaml has it, read once and by libyaml: it is long."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[1] / "docs/openapi.yaml"


def read(text: str) -> Any:
    """A document of YAML."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def run_shape() -> dict[str, Any]:
    """What an answer says of a run."""
    shape: dict[str, Any] = read(FILE.read_text())["components"]["schemas"]["RunShape"]
    return shape
