"""What a shared object asks of others, and how it was compiled.

Takes the bytes of an ELF file; gives the names imported through relocations, which are the ones that the
loader binds whatever the section headers say. A second belt only: code can find a function without asking
for it, and the filters of the driver are what stops a call.

The compiler and its flags are read from the sections that `cc` has it write. They are evidence for people; an
object made by other means has none, and whether its answers are right is found by asking it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_WORDS = """
    memcpy memmove memset memcmp malloc calloc realloc free aligned_alloc posix_memalign
    exp expf exp2 exp2f expm1 expm1f log logf log2 log2f pow powf sqrt sqrtf fabs fabsf fmax fmaxf fmin fminf
    floor floorf ceil ceilf round roundf rint rintf nearbyint nearbyintf lrint lrintf trunc truncf
    ldexp ldexpf frexp frexpf scalbn scalbnf fma fmaf tanh tanhf fmod fmodf copysign copysignf
    __expf_finite __exp2f_finite __exp_finite __stack_chk_fail __memcpy_chk __memset_chk __memmove_chk
    __cxa_finalize __cxa_atexit __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable
    _Znwm _Znam _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZnwmSt11align_val_t _ZnamSt11align_val_t _ZdlPvSt11align_val_t
    _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t _ZSt17__throw_bad_allocv
    _ZSt20__throw_length_errorPKc _ZSt28__throw_bad_array_new_lengthv _ZSt9terminatev _ZSt7nothrow
    __cxa_pure_virtual
    __cxa_begin_catch __cxa_end_catch __cxa_rethrow __gxx_personality_v0 _Unwind_Resume __stack_chk_guard
"""
ALLOWED = frozenset(_WORDS.split())
"""Arithmetic, memory, what the compiler adds by itself, and what containers of C++ need."""

THREADS = frozenset(("GOMP_parallel", "GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads"))
"""What a kernel with `#pragma omp` asks of OpenMP's library: for those that may use several threads."""

VECTOR_MATH = ("_ZGVb", "_ZGVc", "_ZGVd", "_ZGVe", "_ZGVn")
"""Prefixes of the C library's vector functions (libmvec)."""

_PT_LOAD, _PT_DYNAMIC = 1, 2
_STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL, _PLTRELSZ = 5, 6, 7, 8, 23, 2
_MAX_RELOCATIONS = 100_000
_MAX_SEGMENTS, _MAX_ENTRIES, _MAX_NAME, _MAX_TEXT = 64, 1024, 1024, 64 << 10
"""More than a linker writes; a file made by hand must not cost the reader more time than it is worth."""


COMMAND_LINE, COMMENT = ".GCC.command.line", ".comment"
"""Sections that gcc and clang write: their flags (-frecord-gcc-switches) and their versions."""
FAST_MATH = (
    "-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math",
    "-ffinite-math-only",
)  # fmt: skip
_ASKED = re.compile(
    rb"fast-math|Ofast|unsafe-math-optimizations|associative-math|reciprocal-math|finite-math-only"
    rb"|float_control\s*\(\s*precise\s*,\s*off|\bfp\s+(?:reassociate|reciprocal)\s*\(\s*on|fastmath\s*="
)


@dataclass(frozen=True, slots=True)
class Built:
    """How an object was compiled, as its compiler wrote it down; empty where it did not."""

    compiler: str = ""
    flags: tuple[str, ...] = ()

    @property
    def fast_math(self) -> str:
        """The flag that lets the compiler reorder arithmetic, if one was given."""
        return next((flag for flag in self.flags if flag in FAST_MATH), "")


def built(binary: bytes) -> Built:
    """The compiler and its flags. Raises: ValueError when the file makes no sense."""
    try:
        found = dict(_sections(binary))
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError("a truncated or malformed ELF file") from error
    line = found.get(COMMAND_LINE, b"").replace(b"\0", b" ").decode("utf-8", "replace").split()
    compilers = [row.decode("utf-8", "replace") for row in found.get(COMMENT, b"").split(b"\0") if row]
    clang = [row for row in compilers if "clang" in row]
    return Built((clang or compilers or [""])[0][:200], tuple(flag[:200] for flag in line if flag[0] == "-"))


def asks_for_fast_math(source: bytes) -> str:
    """What a source says by itself (a pragma, an attribute, an option of numba) to reorder arithmetic."""
    found = _ASKED.search(source)
    return found[0].decode("ascii") if found else ""


def _sections(binary: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of the two sections, where the file has section headers."""
    start, size, count, names = (
        struct.unpack_from("<Q", binary, 40)[0],
        *struct.unpack_from("<HHH", binary, 58),
    )
    if not start or count > _MAX_ENTRIES or names >= count:
        return
    heads = [struct.unpack_from("<IIQQQQ", binary, start + index * size) for index in range(count)]
    table = heads[names][4]
    for name, _, _, _, offset, length in heads:
        for wanted in (COMMAND_LINE, COMMENT):
            word = wanted.encode() + b"\0"
            if binary[table + name : table + name + len(word)] == word and length <= _MAX_TEXT:
                yield wanted, binary[offset : offset + length]


def forbidden(binary: bytes, threads: int = 1) -> tuple[str, ...]:
    """Names imported beyond the list, sorted; where there may be several threads, the list has theirs.

    Raises: ValueError when it is no 64-bit ELF shared object."""
    names = set(imports(binary)) - (THREADS if threads > 1 else frozenset())
    return tuple(sorted(name for name in names - ALLOWED if not name.startswith(VECTOR_MATH)))


def imports(binary: bytes) -> set[str]:
    """Names that the loader will look up elsewhere. Raises: ValueError when the file makes no sense."""
    try:
        return set(_imports(binary))
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError("a truncated or malformed ELF file") from error


def _imports(binary: bytes) -> Iterator[str]:
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    segments = _segments(binary)
    dynamic = _dynamic(binary, segments)
    strings, symbols = _offset(segments, dynamic[_STRTAB]), _offset(segments, dynamic[_SYMTAB])
    tables = (
        (dynamic.get(_RELA), dynamic.get(_RELASZ, 0)),
        (dynamic.get(_JMPREL), dynamic.get(_PLTRELSZ, 0)),
    )
    for address, size in tables:
        if address is None:
            continue
        start = _offset(segments, address)
        if size // 24 > _MAX_RELOCATIONS:
            raise ValueError("too many relocations")
        for at in range(start, start + size, 24):
            index = struct.unpack_from("<Q", binary, at + 8)[0] >> 32
            name, _, _, section = struct.unpack_from("<IBBH", binary, symbols + 24 * index)
            if index and section == 0:
                end = binary.index(b"\0", strings + name, strings + name + _MAX_NAME)
                yield binary[strings + name : end].decode("latin-1")


def _segments(binary: bytes) -> list[tuple[int, int, int, int]]:
    """(type, file offset, address, size in the file) of each program header."""
    start, size, count = (
        struct.unpack_from("<Q", binary, 32)[0],
        *struct.unpack_from("<HH", binary, 54),
    )
    if count > _MAX_SEGMENTS:
        raise ValueError("too many segments")
    found = []
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", binary, start + index * size)
        found.append((kind, offset, address, length))
    return found


def _dynamic(binary: bytes, segments: list[tuple[int, int, int, int]]) -> dict[int, int]:
    entries: dict[int, int] = {}
    for kind, offset, _, length in segments:
        if kind == _PT_DYNAMIC:
            if length > 16 * _MAX_ENTRIES:
                raise ValueError("too many dynamic entries")
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", binary, at)
                if tag == 0:
                    break
                entries[tag] = value
    if _STRTAB not in entries or _SYMTAB not in entries:
        raise ValueError("no dynamic symbols: not a shared object")
    return entries


def _offset(segments: list[tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, length in segments:
        if kind == _PT_LOAD and start <= address < start + length:
            return offset + address - start
    raise ValueError("an address outside the file")
