"""The attention tuner, shortened for tests: the same spec with fewer evaluations, in a folder of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from cli_kit import EXAMPLES


def shortened(folder: Path, evaluations: int) -> Path:
    """A copy of attention_tuner.spak that stops after so many evaluations, the baseline's included."""
    shutil.copytree(EXAMPLES / "attention_tuner", folder / "attention_tuner")
    text = (EXAMPLES / "attention_tuner.spak").read_text(encoding="utf-8")
    changed = re.sub(r"evaluations: \d+", f"evaluations: {evaluations}", text)
    assert changed != text
    path = folder / "attention_tuner.spak"
    path.write_text(changed, encoding="utf-8")
    return path
