"""Does a C source define the function that a prototype declares? The compiler's word, in the sandbox.

Takes the prototype and a source; gives the compiler's sentence about another signature, or an empty one. A
shared object has no types, so this is what explains why a kernel of another signature crashes or is wrong.
"""

from __future__ import annotations

from pathlib import Path

from spak.cancel import Cancel
from spak.ports import Job, Launcher, Limits, Toolchain
from spak.validators.problems.prototype import Prototype


def header(prototype: Prototype) -> str:
    """The prototype as a header that a kernel can be compiled after."""
    return f"#include <stdint.h>\n{prototype.text};\n"


def misfit(
    prototype: Prototype,
    source: bytes,
    launcher: Launcher,
    toolchain: Toolchain | None,
    limits: Limits,
    folder: Path,
    cancel: Cancel | None = None,
) -> str:
    """Why the source does not fit; empty where it does, or where the compiler stumbles over something else.

    `folder` is made. Raises: Cancelled.
    """
    toolchain = toolchain or Toolchain()
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "prototype.h").write_text(header(prototype), encoding="utf-8")
    (folder / "kernel.c").write_bytes(source)
    gcc = toolchain.programs.get("gcc", "gcc")
    argv = (gcc, "-fsyntax-only", "-w", "-include", "prototype.h", "kernel.c")
    job = Job(argv, folder, writable=False, limits=limits, binds=toolchain.binds, cancel=cancel)
    lines = launcher.run(job).stderr.data.decode("utf-8", "replace").splitlines()
    wanted = ("conflicting types", f"‘{prototype.symbol}’", f"'{prototype.symbol}'")
    found = (line for line in lines if wanted[0] in line and (wanted[1] in line or wanted[2] in line))
    return next(found, "").partition("error: ")[2]
