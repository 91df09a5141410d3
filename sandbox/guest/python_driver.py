"""The child of the profiler for candidates in Python: what cpu_driver.c is for shared objects.

    python_driver.py IN OUT GO DONE FILE SYMBOL PARAMETERS PACKAGES    descriptors, a path, a name, JSON

It runs inside the sandbox, in the candidate's own process, so nothing that it says is evidence: clock,
inputs, reference and verdict are the parent's. IN is the arena of inputs (opened read-only), OUT the arena
of outputs and scratch. One message on GO is one call: a slot for each parameter (a scalar's value, or a
pointer's offset in its arena), the shift, and eight sides of a shape for each pointer. A shift of -1 is no
call: the second filter is installed then, after the calls in which a candidate compiles itself. One byte on
DONE says "ready" or "returned".

The candidate may import what the sandbox shows: the standard library, and numpy or numba. Exit codes: below.
"""

import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import math
import mmap
import os
import pathlib
import platform
import struct
import sys
import types
import warnings

EXIT_LOAD, EXIT_SYMBOL, EXIT_SETUP, EXIT_RAISED, EXIT_SIGNATURE = 81, 82, 84, 85, 86
SIDES = 8
SEAL = -1
GUARD, MAP_FIXED = 1 << 20, 0x10

# System calls by architecture. What a sealed candidate may do is arithmetic, memory and the two pipes; before
# that it is loaded, imports and compiles itself, and may read files. What is not listed ends the process.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": """
        read=0 write=1 close=3 stat=4 fstat=5 lstat=6 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
        rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17 access=21 sched_yield=24
        mremap=25 madvise=28 getpid=39 uname=63 fcntl=72 getcwd=79 readlink=89 sysinfo=99 getuid=102
        getgid=104 geteuid=107 getegid=108 sigaltstack=131 gettid=186 futex=202 sched_getaffinity=204
        getdents64=217 clock_gettime=228 exit_group=231 openat=257 newfstatat=262 prlimit64=302
        seccomp=317 getrandom=318 statx=332 faccessat2=439
    """,
    "aarch64": """
        read=63 write=64 close=57 fstat=80 lseek=62 mmap=222 mprotect=226 munmap=215 brk=214
        rt_sigaction=134 rt_sigprocmask=135 rt_sigreturn=139 ioctl=29 pread64=67 faccessat=48
        sched_yield=124 mremap=216 madvise=233 getpid=172 uname=160 fcntl=25 getcwd=17 readlinkat=78
        sysinfo=179 getuid=174 getgid=176 geteuid=175 getegid=177 sigaltstack=132 gettid=178 futex=98
        sched_getaffinity=123 getdents64=61 clock_gettime=113 exit_group=94 openat=56 newfstatat=79
        prlimit64=261 seccomp=277 getrandom=278 statx=291 faccessat2=439
    """,
}
SEALED = frozenset(
    (
        *("read", "write", "mmap", "munmap", "mremap", "mprotect", "brk", "madvise", "exit_group"),
        *("rt_sigreturn", "futex", "sched_yield", "getrandom", "getpid", "gettid"),
    )
)
LOAD, EQUAL, BITS, RETURN = 0x20, 0x15, 0x45, 0x06
KILL, ALLOW = 0x80000000, 0x7FFF0000
WRITES = 3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC


def install(sealed):
    """Install the first filter, or the second on top of it."""
    machine = platform.machine()
    numbers = {name: int(number) for name, number in (word.split("=") for word in NUMBERS[machine].split())}
    lines = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    for name, number in numbers.items():
        if (name in SEALED) if sealed else (name != "openat"):
            lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    if (
        not sealed
    ):  # to read only: a flag that writes, creates or truncates is as forbidden as an unlisted call
        lines += [(EQUAL, 0, 4, numbers["openat"]), (LOAD, 0, 0, 32), (BITS, 0, 1, WRITES)]
        lines += [(RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW)]
    lines.append((RETURN, 0, 0, KILL))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(lines), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if not sealed and (libc.prctl(38, 1, 0, 0, 0) or libc.prctl(4, 0, 0, 0, 0)):  # NO_NEW_PRIVS, DUMPABLE
        leave(EXIT_SETUP, "prctl was refused")
    if libc.syscall(ctypes.c_long(numbers["seccomp"]), ctypes.c_long(1), ctypes.c_long(0), program):
        leave(EXIT_SETUP, "the filter was refused")


def mapped(fd, protection):
    """An arena between pages that nobody may touch."""
    size, whole = os.fstat(fd).st_size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    place = ctypes.CDLL(None).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    at = place(None, size + 2 * GUARD, 0, whole, -1, 0) + GUARD
    if place(at, size, protection, mmap.MAP_SHARED | MAP_FIXED, fd, 0) != at:
        leave(EXIT_SETUP, "an arena could not be mapped")
    os.close(fd)
    view = memoryview((ctypes.c_char * size).from_address(at)).cast("B")
    return view if protection & mmap.PROT_WRITE else view.toreadonly()


def leave(code, words):
    with contextlib.suppress(BaseException):
        os.write(2, str(words)[:2000].encode("utf-8", "replace"))
    os._exit(code)


def where(error):
    """The exception as one line, with the last line of the candidate that it went through. Opens no file."""
    line, at = 0, error.__traceback__
    while at is not None:
        line = at.tb_lineno if at.tb_frame.f_code.co_filename == "candidate.py" else line
        at = at.tb_next
    return f"line {line}: {type(error).__name__}: {error}"


def load(path, symbol, count):
    """The candidate's function."""
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        exec(compile(text, "candidate.py", "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        leave(EXIT_LOAD, where(error))
    call = getattr(module, symbol, None)
    if not callable(call):
        leave(EXIT_SYMBOL, f"the file defines no function {symbol}")
    try:
        shape = inspect.signature(call)
    except (TypeError, ValueError):
        return call
    try:
        shape.bind(*range(count))
    except TypeError as error:
        leave(EXIT_SIGNATURE, f"{symbol}{shape}: {error}")
    return call


def main():
    in_fd, out_fd, go, done = map(int, sys.argv[1:5])
    path, symbol = sys.argv[5:7]
    parameters, packages = json.loads(sys.argv[7]), json.loads(sys.argv[8])
    sys.path += packages["folders"]
    import numpy as np

    warnings.simplefilter("ignore")  # a warning opens the source to show its line
    np.seterr(all="ignore")
    for name in packages[
        "needed"
    ]:  # ours to import, before the filter: what it does then is not the candidate's
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    arenas = {
        "input": mapped(in_fd, mmap.PROT_READ),
        "output": mapped(out_fd, mmap.PROT_READ | mmap.PROT_WRITE),
    }
    arenas["scratch"] = arenas["output"]
    pointers = [index for index, (_, role, _) in enumerate(parameters) if role != "scalar"]
    layout = struct.Struct("=" + "8s" * len(parameters) + "q" + f"{SIDES}q" * len(pointers))
    roles = [(arenas.get(role), np.dtype(kind)) for _, role, kind in parameters]
    install(sealed=False)
    call = load(path, symbol, len(parameters))
    gc.collect()
    gc.disable()
    os.write(done, b"R")
    while len(message := os.read(go, layout.size)) == layout.size:
        parts = layout.unpack(message)
        if parts[len(parameters)] == SEAL:
            install(sealed=True)
            os.write(done, b"R")
            continue
        given, at = [], len(parameters) + 1
        for slot, (arena, kind) in zip(parts, roles, strict=False):
            if arena is None:
                (value,) = struct.unpack({"float32": "=f4x", "float64": "=d"}.get(kind.name, "=q"), slot)
                given.append(value)
                continue
            shape = [side for side in parts[at : at + SIDES] if side]
            at += SIDES
            count, (offset,) = math.prod(shape), struct.unpack("=q", slot)
            given.append(np.frombuffer(arena, kind, count, offset).reshape(shape))
        try:
            call(*given)
        except BaseException as error:
            leave(EXIT_RAISED, where(error))
        del given
        os.write(done, b"D")
    os._exit(0)


if __name__ == "__main__":
    main()
