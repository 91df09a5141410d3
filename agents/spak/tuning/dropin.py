"""The tuned kernel as a folder that a project can copy: source, header, build line, test, Python wrapper.

    SYMBOL.c SYMBOL.h      the kernel and its prototype, with what it is right for
    build.sh               the build line of libSYMBOL.so, and of the test, which it runs
    test_SYMBOL.c          calls the kernel on the cases of cases.bin and compares with the reference
    SYMBOL.py              the function for numpy's arrays, by ctypes; SYMBOL_problem.py has the shapes

Takes the source, the facts of the problem and cases; gives the files. `tried` builds the folder in the
sandbox and runs its test. Nothing of it needs SPAK.

cases.bin is in the byte order of the machine: the count of cases, then of each the scalars of the prototype
(8 bytes each), and for each pointer a count of numbers followed, for inputs, by them, and for outputs by
what is right, in float64 or int64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from spak.errors import RunError, UnavailableError
from spak.ports import Job
from spak.tuning.kernel import Facts, Place
from spak.validators.problems import Case, Parameter, Problem

MARK = "// Tuned by spak for the problem"
"""What the C file of a drop-in begins with: such a folder may be written over."""
MOST_BYTES = 8 << 20
"""Of the cases; larger ones are left out, the least size never."""


def cases(problem: Problem) -> list[Case]:
    """Cases for the test: every kind at a small size, and the usual kind at the least, an odd and the timed
    size."""
    small = min(max(33, problem.least), problem.most)
    sizes = [problem.least, min(max(7, problem.least), problem.most), problem.timed]
    wanted = [
        *((n, problem.kinds[0]) for n in dict.fromkeys(sizes)),
        *((small, kind) for kind in problem.kinds),
    ]
    found: list[Case] = []
    room = MOST_BYTES
    for index, (n, kind) in enumerate(wanted):
        size = 2 * problem.traffic(n)
        if size > room and found:
            continue
        room -= size
        found.append(problem.case_of([4, index], n, kind))
    return found


def files(
    source: bytes, facts: Facts, found: Sequence[Case], shapes: Mapping[int, Mapping[str, tuple[int, ...]]],
    about: str, compiler: str, flags: Sequence[str],
) -> dict[str, bytes]:  # fmt: skip
    """The files by name. `shapes` has the shapes at each case's size, `about` says which run made it."""
    symbol = facts.prototype.symbol
    words = {
        "symbol": symbol,
        "SYMBOL": symbol.upper(),
        "problem": facts.name,
        "about": about,
        "prototype": facts.prototype.text,
        "least": str(facts.least),
        "most": str(facts.most),
        "cc": compiler,
        "flags": " ".join(["-O2", *flags]),
        "mark": MARK,
        **_test_words(facts),
        **_python_words(facts),
    }
    texts = {
        f"{symbol}.c": _SOURCE,
        f"{symbol}.h": _HEADER,
        "build.sh": _BUILD,
        f"test_{symbol}.c": _TEST,
        f"{symbol}.py": _PYTHON,
    }
    made = {name: _filled(text, words).encode() for name, text in texts.items()}
    made[f"{symbol}.c"] += source
    made["cases.bin"] = b"".join(_packed(facts, found, shapes))
    made[f"{symbol}_problem.py"] = facts.text.encode()
    return made


def tried(made: Mapping[str, bytes], facts: Facts, place: Place) -> tuple[str, bytes]:
    """What the test printed and the shared object, after build.sh ran in the sandbox.

    Raises: RunError `tune.dropin`; UnavailableError.
    """
    work = place.folder / "dropin"
    work.mkdir()
    work.chmod(0o777)
    for name, content in made.items():
        (work / name).write_bytes(content)
        (work / name).chmod(0o644)
    paths = ":".join(dict.fromkeys(str(Path(path).parent) for path in place.toolchain.programs.values()))
    done = place.launcher.run(
        Job(
            ("/bin/sh", "./build.sh"),
            work,
            limits=place.limits,
            binds=place.toolchain.binds,
            env={"PATH": f"{paths}:/usr/bin:/bin"},
        )
    )
    if done.status == "launcher":
        raise UnavailableError(
            "unavailable.sandbox", done.detail or "the sandbox did not start", "spak doctor"
        )
    library = work / f"lib{facts.prototype.symbol}.so"
    output = (done.stdout.data + done.stderr.data).decode("utf-8", "replace").strip()
    if done.status != "exited" or done.exit or not library.is_file() or library.is_symlink():
        why = output[-300:] or f"{done.status}, exit {done.exit}"
        raise RunError("tune.dropin", f"the drop-in does not build or its test fails: {why}", "spak show RUN")
    return output.splitlines()[-1], library.read_bytes()


def _packed(
    facts: Facts, found: Sequence[Case], shapes: Mapping[int, Mapping[str, tuple[int, ...]]]
) -> Iterator[bytes]:
    import math

    yield struct.pack("=q", len(found))
    for case in found:
        for item in facts.prototype.of("scalar"):
            value = case.n if item.name == "n" else case.scalars[item.name]
            yield struct.pack("=d" if item.floating else "=q", value)
        for item in facts.prototype.parameters:
            if item.role == "scalar":
                continue
            yield struct.pack("=q", math.prod(shapes[case.n][item.name]))
            if item.role == "input":
                yield case.inputs[item.name].tobytes()
            elif item.role == "output":
                yield case.outputs[item.name].tobytes()


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    return text


def _test_words(facts: Facts) -> dict[str, str]:
    """What of the test program depends on the prototype and the tolerance."""
    reads, calls, checks, frees = [], [], [], []
    for item in facts.prototype.parameters:
        name = item.name
        if item.role == "scalar":
            kind = "double" if item.floating else "int64_t"
            reads.append(f"{kind} {name} = 0;\n        bad |= fread(&{name}, 8, 1, file) != 1;")
            calls.append(f"({item.c}){name}")
            continue
        reads.append(f"int64_t count_{name} = 0;\n        bad |= fread(&count_{name}, 8, 1, file) != 1;")
        given = "file" if item.role == "input" else "0"
        reads.append(f"{item.c} *{name} = block(count_{name}, sizeof(*{name}), {given}, &bad);")
        calls.append(name)
        frees.append(f"free({name});")
        if item.role == "output":
            wide = "double" if item.floating else "int64_t"
            reads.append(f"{wide} *right_{name} = block(count_{name}, 8, file, &bad);")
            checks.append(_check(facts, item))
            frees.append(f"free(right_{name});")
    join = "\n        ".join
    return {
        "reads": join(reads),
        "call": f"{facts.prototype.symbol}({', '.join(calls)});",
        "checks": join(checks),
        "frees": join(frees),
    }


def _check(facts: Facts, item: Parameter) -> str:
    name, allowed = item.name, facts.tolerance
    if not item.floating:
        off = f"fabs((double){name}[i] - (double)right_{name}[i])"
        exact = not (allowed.abs or allowed.rel)
        bound = f"{allowed.abs!r} + {allowed.rel!r} * fabs((double)right_{name}[i])"
        wrong = f"{name}[i] != right_{name}[i]" if exact else f"!({off} <= {bound})"
        return f"for (int64_t i = 0; i < count_{name}; i++)\n            wrong += {wrong};"
    bound = f"{allowed.abs!r} + {allowed.rel!r} * fabs(right_{name}[i])"
    if allowed.ulp:
        after = "nextafterf" if item.type == "float32" else "nextafter"
        at = f"({item.c})fabs(right_{name}[i])"
        bound = f"fmax({bound}, {allowed.ulp!r} * ((double){after}({at}, INFINITY) - (double){at}))"
    return (
        f"for (int64_t i = 0; i < count_{name}; i++)\n"
        f"            wrong += !(fabs((double){name}[i] - right_{name}[i]) <= {bound});"
    )


def _python_words(facts: Facts) -> dict[str, str]:
    """What of the Python wrapper depends on the prototype."""
    given = [item for item in facts.prototype.parameters if item.role in ("scalar", "input")]
    lines, arguments, types = [], [], []
    for item in facts.prototype.parameters:
        if item.role == "scalar":
            kind = f"c_{item.type}" if not item.floating else {4: "c_float", 8: "c_double"}[item.width]
            types.append(f"ctypes.{kind}")
            arguments.append(item.name)
            continue
        make = f"_given({item.name}, " if item.role == "input" else "_fresh("
        label = f', "{item.name}"' if item.role == "input" else ""
        lines.append(f'{item.name} = {make}"{item.type}", shapes["{item.name}"]{label})')
        types.append("ctypes.c_void_p")
        arguments.append(f"{item.name}.ctypes.data")
    outputs = [item.name for item in facts.prototype.of("output")]
    return {
        "parameters": ", ".join(item.name for item in given),
        "prepare": "\n    ".join(lines),
        "arguments": ", ".join(arguments),
        "types": ", ".join(types),
        "outputs": ", ".join(outputs),
    }


_SOURCE = """\
@mark@ @problem@: @about@.
// Build: @cc@ @flags@ -shared -fPIC -o lib@symbol@.so @symbol@.c -lm
// @symbol@.h says what it is right for; sh build.sh builds it and runs its test.

"""
_HEADER = """\
// @symbol@, tuned for the problem @problem@: @about@.
//
// Right for n from @least@ to @most@. Pointers are aligned to 64 bytes, and blocks do not overlap.
// One call at a time: a kernel may keep buffers of its own.

#ifndef @SYMBOL@_H
#define @SYMBOL@_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

@prototype@;

#ifdef __cplusplus
}
#endif

#endif
"""
_BUILD = """\
#!/bin/sh
# Builds lib@symbol@.so and the test, and runs the test. CC chooses another compiler.
set -e
cd "$(dirname "$0")"
${CC:-@cc@} @flags@ -shared -fPIC -o lib@symbol@.so @symbol@.c -lm
${CC:-@cc@} @flags@ -o test_@symbol@ test_@symbol@.c @symbol@.c -lm
./test_@symbol@ cases.bin
"""
_TEST = """\
// Calls @symbol@ on the cases of a file and compares with the reference. Exit 0 if every number is right.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "@symbol@.h"

// Memory for that many numbers, aligned; read from the file, or filled with a pattern that is NaN in floats.
static void *block(int64_t count, size_t width, FILE *file, int *bad) {
    size_t bytes = ((size_t)count * width + 63) / 64 * 64;
    void *memory = *bad || count < 0 ? 0 : aligned_alloc(64, bytes);
    if (!memory) {
        fprintf(stderr, "the cases cannot be read\\n");
        exit(2);
    }
    memset(memory, 0xFF, bytes);
    if (file)
        *bad |= fread(memory, width, (size_t)count, file) != (size_t)count;
    return memory;
}

int main(int argc, char **argv) {
    FILE *file = fopen(argc > 1 ? argv[1] : "cases.bin", "rb");
    int64_t count = 0, failed = 0;
    int bad = !file || fread(&count, 8, 1, file) != 1 || count < 1;
    for (int64_t at = 0; at < count && !bad; at++) {
        int64_t wrong = 0;
        @reads@
        if (bad)
            break;
        @call@
        @checks@
        if (wrong)
            printf("case %lld: %lld numbers are wrong\\n", (long long)at, (long long)wrong);
        failed += wrong != 0;
        @frees@
    }
    if (bad) {
        fprintf(stderr, "the cases cannot be read\\n");
        return 2;
    }
    printf("@symbol@: %lld of %lld cases are right\\n", (long long)(count - failed), (long long)count);
    return failed != 0;
}
"""
_PYTHON = '''\
"""@symbol@ for numpy's arrays: the function of lib@symbol@.so, which build.sh makes.

Arrays are taken as they are where type, shape and alignment fit, else copied. One call at a time.
"""

import ctypes
import runpy
from pathlib import Path

import numpy as np

_HERE = Path(__file__).resolve().parent
_SHAPES = runpy.run_path(str(_HERE / "@symbol@_problem.py"))["shapes"]
_CALL = ctypes.CDLL(str(_HERE / "lib@symbol@.so")).@symbol@
_CALL.argtypes = [@types@]
_CALL.restype = None


def @symbol@(@parameters@):
    """@prototype@

    Gives @outputs@. Raises: ValueError for a size or a shape that the kernel is not right for.
    """
    if not @least@ <= n <= @most@:
        raise ValueError(f"n = {n}: the kernel is right from @least@ to @most@")
    shapes = _SHAPES(n)
    @prepare@
    _CALL(@arguments@)
    return @outputs@


def _given(array, kind, shape, name):
    found = np.ascontiguousarray(array, dtype=kind)
    if found.shape != tuple(shape):
        raise ValueError(f"{name} has the shape {found.shape}; {tuple(shape)} is needed")
    if found.ctypes.data % 64:
        copy = _fresh(kind, shape)
        copy[...] = found
        found = copy
    return found


def _fresh(kind, shape):
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.empty(size + 64, "u1")
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(kind).reshape(shape)
'''
