"""Does a source in C or C++ define the function that a prototype declares? The compiler's word, sandboxed.

Takes the prototype and a source; gives the compiler's sentence about another signature, or an empty one. A
shared object has no types, so this is what explains why a kernel of another signature crashes or is wrong.
"""

from __future__ import annotations

from pathlib import Path

from spak.cancel import Cancel
from spak.ports import Job, Launcher, Limits, Toolchain
from spak.validators.problems.prototype import Prototype

CPP = (".cc", ".cpp", ".cxx")
"""Endings of sources in C++."""


def header(prototype: Prototype, cpp: bool = False) -> str:
    """The prototype as a header that a kernel can be compiled after."""
    language = 'extern "C" ' if cpp else ""
    return f"#include <stdint.h>\n{language}{prototype.text};\n"


def misfit(
    prototype: Prototype,
    source: bytes,
    name: str,
    launcher: Launcher,
    toolchain: Toolchain | None,
    limits: Limits,
    folder: Path,
    cancel: Cancel | None = None,
) -> str:
    """Why the source does not fit; empty where it does, or where the compiler stumbles over something else.

    `name` is that of the source, whose ending says the language; `folder` is made. Raises: Cancelled.
    """
    toolchain = toolchain or Toolchain()
    folder.mkdir()
    folder.chmod(0o755)
    cpp = name.endswith(CPP)
    (folder / "prototype.h").write_text(header(prototype, cpp), encoding="utf-8")
    kernel = "kernel.cpp" if cpp else "kernel.c"
    (folder / kernel).write_bytes(source)
    gcc = toolchain.programs.get("g++" if cpp else "gcc", "g++" if cpp else "gcc")
    argv = (gcc, "-fsyntax-only", "-w", "-include", "prototype.h", kernel)
    job = Job(argv, folder, writable=False, limits=limits, binds=toolchain.binds, cancel=cancel)
    lines = launcher.run(job).stderr.data.decode("utf-8", "replace").splitlines()
    found = (line for line in lines if "conflicting" in line and prototype.symbol in line)
    return next(found, "").partition("error: ")[2]
