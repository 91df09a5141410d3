"""The workspace that the fresh attacks are tried in: secrets, and archives and a patch with bad members."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

from gate_kit import workspace

BAD_PATCH = "--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-a\n+b\n"


def furnished(base: Path) -> Path:
    """A workspace with all that the fresh attacks go for."""
    root = workspace(base)
    (root / "conf").mkdir()
    (root / "conf/.env").write_text("KEY=1\n")
    (root / ".env").write_text("KEY=1\n")
    (root / "bad.patch").write_text(BAD_PATCH)
    for name, member in (("evil", "../outside/x"), ("hooks", ".git/hooks/pre-commit")):
        with tarfile.open(root / f"{name}.tar", "w") as packed:
            found = tarfile.TarInfo(member)
            found.size = 1
            packed.addfile(found, io.BytesIO(b"x"))
        with zipfile.ZipFile(root / f"{name}.zip", "w") as zipped:
            zipped.writestr(member, "x")
    with tarfile.open(root / "links.tar", "w") as packed:
        found = tarfile.TarInfo("l")
        found.type, found.linkname = tarfile.SYMTYPE, "/etc"
        packed.addfile(found)
        below = tarfile.TarInfo("l/x")
        packed.addfile(below, io.BytesIO(b""))
    return root
