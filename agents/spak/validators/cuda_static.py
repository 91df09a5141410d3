"""Static evidence on a CUDA kernel: what nvcc and ptxas say about a source file for one architecture.

Takes a call and a source file in its workspace; compiles in the sandbox and gives an Assembly per
architecture: registers, spills, stack, shared memory, barriers, hashes, machine code. Nothing is executed.

Two steps, because what the compiler prints can be written by the source (`#pragma message` puts a line
`ptxas info : Used 1 registers` into nvcc's output): nvcc makes PTX, then ptxas alone is asked about exactly
these bytes, and only its words count. `sass_hash` is over the `.text` sections of the cubin, so that it is
equal for equal machine code whatever the file was called; a candidate whose hash does not change has changed
nothing.
"""

from __future__ import annotations

import binascii
import re
import struct
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from spak import canon
from spak.diagnostics import relative
from spak.ports import MIB, MeasureCall, Measurement, Outcome
from spak.validators import launch

TO_PTX = 'T="${TMPDIR:-/tmp}"; "$@" -o "$T/kernel.ptx" 1>&2 && cat "$T/kernel.ptx"'
TO_CUBIN = (
    'T="${TMPDIR:-/tmp}"; cat > "$T/kernel.ptx"; "$@" "$T/kernel.ptx" -o "$T/kernel.cubin"'
    ' && base64 -w 0 "$T/kernel.cubin"'
)
"""Fixed text for /bin/sh; every argument comes in as a positional parameter and is never read as text."""

_COMPILING = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
_BOUNDS = re.compile(r"\.entry\s+([\w$.]+)\s*(?:\([^)]*\))?([^{;]*)")
_MAXNTID = re.compile(r"\.(?:max|req)ntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_VERSION = re.compile(r"^// Cuda compilation tools, release [\d.]+, V([\d.]+)$", re.MULTILINE)

_NVCC_LINE = re.compile(r"^(.+?)\((\d+)\): (catastrophic error|error|warning|remark)\s*(#[\w-]+)?: (.*)$")
_GCC_LINE = re.compile(r"^(.+?):(\d+):\d+: (fatal error|error|warning): (.*?)(?: \[(-W[\w=+-]+)\])?$")
_PTXAS_LINE = re.compile(r"^ptxas (?:.*?, line (\d+); )?(error|fatal|warning)\s*: (.*)$")
_NVCC_FATAL = re.compile(r"^nvcc (fatal|error)\s*: (.*)$")


@dataclass(frozen=True, slots=True)
class Kernel:
    """What ptxas says about one entry function."""

    name: str
    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    barriers: int = 0
    max_threads: int = 0
    """The largest block that `__launch_bounds__` allows; 0 when it says nothing."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """One architecture's result; `code` is empty when it compiled."""

    arch: str
    code: str = ""
    detail: str = ""
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    ptx_hash: str = ""
    sass_hash: str = ""
    nvcc: str = ""
    cubin: bytes = b""
    diagnostics: tuple[dict[str, Any], ...] = ()
    wall_ms: int = 0
    cpu_ms: int = 0


def assemble(
    call: MeasureCall, arch: str, source: str, flags: Sequence[str], timeout_s: float
) -> Assembly | Measurement:
    """Compile for one architecture, or the Measurement of a compile that was cut short."""
    nvcc = launch.program(call, "nvcc")
    ptxas = launch.program(call, "ptxas") or str(PurePosixPath(nvcc).with_name("ptxas"))
    virtual = arch.replace("sm_", "compute_")
    command = (nvcc, f"-arch={virtual}", "-ptx", *flags, f"./{source}")
    first = launch.run(
        call, ("/bin/sh", "-c", TO_PTX, "sh", *command), timeout_s=timeout_s, output_bytes=32 * MIB
    )
    broken = launch.cut_short(first)
    if broken is not None:
        return broken
    found = diagnostics(first.stderr.data.decode("utf-8", "replace"))
    ptx = first.stdout.data
    if first.exit != 0 or first.stdout.truncated:
        return _failed(arch, first, found)
    command = (ptxas, "-v", f"-arch={arch}", *(flag for flag in flags if flag.startswith("-maxrregcount=")))
    second = launch.run(
        call,
        ("/bin/sh", "-c", TO_CUBIN, "sh", *command),
        timeout_s=timeout_s,
        stdin=ptx,
        output_bytes=64 * MIB,
    )
    broken = launch.cut_short(second)
    if broken is not None:
        return broken
    messages = second.stderr.data.decode("utf-8", "replace")
    found += diagnostics(messages)
    cubin = _decoded(second)
    if second.exit != 0 or cubin is None:
        return _failed(arch, second, found)
    text = ptx.decode("utf-8", "replace")
    version = _VERSION.search(text[:1000])
    return Assembly(
        arch,
        kernels=kernels(messages, text),
        ptx_hash=canon.digest(plain_ptx(text).encode()),
        sass_hash=sass_hash(cubin),
        nvcc=version[1] if version else "",
        cubin=cubin,
        diagnostics=found,
        wall_ms=first.wall_ms + second.wall_ms,
        cpu_ms=first.cpu_ms + second.cpu_ms,
    )


def _decoded(outcome: Outcome) -> bytes | None:
    if outcome.stdout.truncated:
        return None
    try:
        return b64decode(outcome.stdout.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _failed(arch: str, outcome: Outcome, found: tuple[dict[str, Any], ...]) -> Assembly:
    worst = next((item for item in found if item["severity"] == "error"), None)
    message = worst["message"] if worst else launch.tail(outcome.stderr.data) or f"exit {outcome.exit}"
    code = "compile_error" if worst or outcome.exit not in (126, 127) else "toolchain"
    if "Unsupported gpu architecture" in message or "is not defined for option 'gpu-name'" in message:
        code = "unsupported_arch"
    return Assembly(arch, code, message, diagnostics=found, wall_ms=outcome.wall_ms, cpu_ms=outcome.cpu_ms)


def kernels(messages: str, ptx: str = "") -> dict[str, Kernel]:
    """The entry functions in what `ptxas -v` wrote, by name; launch bounds come from the PTX."""
    found: dict[str, dict[str, int]] = {}
    entry = function = ""
    for line in messages.splitlines():
        if match := _COMPILING.search(line):
            entry = function = match[1].encode("ascii", "backslashreplace").decode()
            found[entry] = {}
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif match := _FRAME.search(line):
            if function in found:
                names = ("stack", "spill_stores", "spill_loads")
                found[function].update(zip(names, map(int, match.groups()), strict=True))
        elif entry and (match := _USED.search(line)):
            found[entry]["registers"] = int(match[1])
            if barriers := _BARRIERS.search(line):
                found[entry]["barriers"] = int(barriers[1])
            if shared := _SHARED.search(line):
                found[entry]["shared_bytes"] = sum(int(part) for part in shared.groups() if part)
    bounds = _launch_bounds(ptx)
    return {
        name: Kernel(name, max_threads=bounds.get(name, 0), **values)
        for name, values in sorted(found.items())
        if "registers" in values
    }


def _launch_bounds(ptx: str) -> dict[str, int]:
    bounds = {}
    for match in _BOUNDS.finditer(ptx):
        if limit := _MAXNTID.search(match[2]):
            bounds[match[1]] = int(limit[1]) * int(limit[2] or 1) * int(limit[3] or 1)
    return bounds


def plain_ptx(ptx: str) -> str:
    """The PTX without comments, blank lines and debug positions: what two equal kernels share."""
    lines = (line.split("//", 1)[0].strip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith((".file", ".loc")))


def sass_hash(cubin: bytes) -> str:
    """The hash of a cubin's machine code, or an empty string when it is not an ELF file with code."""
    try:
        code = sorted(_sections(cubin))
    except (struct.error, IndexError, ValueError):
        return ""
    return canon.content_hash([[name, canon.digest(data)] for name, data in code]) if code else ""


def _sections(cubin: bytes) -> list[tuple[str, bytes]]:
    """Name and bytes of the `.text` sections of a 64-bit little-endian ELF file."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + index * size) for index in range(count)]
    names_offset = headers[names_at][4]
    found = []
    for name, kind, _, _, offset, length in headers:
        start = names_offset + name
        text = cubin[start : cubin.index(b"\0", start)].decode("ascii", "replace")
        if kind == 1 and text.startswith(".text"):
            found.append((text, cubin[offset : offset + length]))
    return found


def diagnostics(messages: str) -> tuple[dict[str, Any], ...]:
    """What nvcc, its host compiler and ptxas complain about: severity, file, line, code, message."""
    found: list[dict[str, Any]] = []
    for line in messages.splitlines():
        if match := _NVCC_LINE.match(line):
            file, at, kind, code, text = match.groups()
        elif match := _GCC_LINE.match(line):
            file, at, kind, text, code = match.groups()
        elif match := _PTXAS_LINE.match(line):
            (at, kind, text), file, code = match.groups(), "", "ptxas"
        elif match := _NVCC_FATAL.match(line):
            (kind, text), file, at, code = match.groups(), "", None, "nvcc"
        else:
            continue
        severity = {"warning": "warning", "remark": "info"}.get(kind, "error")
        item = {
            "severity": severity,
            "file": relative(file),
            "line": int(at or 0),
            "code": (code or kind).lstrip("#"),
            "message": text,
        }
        if item not in found:
            found.append(item)
    return tuple(found[:200])
