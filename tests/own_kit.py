"""A distribution of an operator, put into a folder without pip: metadata, entry points, module."""

from __future__ import annotations

import shutil
from pathlib import Path


def install(folder: Path, package: str, code: str, points: str, version: str = "1.2") -> Path:
    """The folder `site` with the distribution, in the place of what was there; for `sys.path`.

    The module is the package's name with `_`."""
    site, module = folder / "site", package.replace("-", "_")
    shutil.rmtree(site, ignore_errors=True)
    info = site / f"{module}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)
    (site / f"{module}.py").write_text(code)
    return site
