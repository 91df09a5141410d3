"""The process that times a kernel and a library's calls beside each other, in one sandbox.

    against_guest.py PLAN CASES KERNEL CALLS     paths: JSON, an .npz, a shared object, a file of calls

Each pair has arrays at places drawn anew and one input for both; its value for a side is the least of three
windows, which take turns with the other's in an order that is drawn. A window is as many calls as take about
100 us. Time is CPU time of this thread; the library has one, and a call after which there are more threads is
refused. Where the plan has several `threads`, time is the wall's, and a window begins when none works. The
clock is this process's own, so this is for kernels of one's own. Prints one line of JSON:
{"library", "version", "kernel", "wide", "call", "pairs": [[ours_ns, theirs_ns]], "wrong": {call: why}}, or
{"error"}. Needs numpy.
"""

import ctypes
import json
import pathlib
import random
import runpy
import sys
import threading
import time

import numpy as np

TYPES = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
}
WINDOWS, WINDOW_NS, MOST_CALLS = 3, 100_000, 1000
REST_S = 0.2
WIDE = ("SkylakeX", "Cooperlake", "SapphireRapids", "AVX512")
"""Names of kernels that use vectors of 512 bits: of OpenBLAS, and PyTorch's word for its own."""
MIDDLE = ("Haswell", "Zen", "AVX2")


def block(draw, shape, kind):
    """An array at an address of 64 bytes' alignment that is drawn."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.empty(size + 8192, "u1")
    start = -memory.ctypes.data % 64 + 64 * draw.randrange(120)
    return memory[start : start + size].view(kind).reshape(shape)


def arrays(plan, cases, index, draw):
    """The values of the parameters by name: inputs of a case, outputs and scratch without an answer."""
    case, found = plan["cases"][index], {}
    for name, role, kind in plan["parameters"]:
        if role == "scalar":
            found[name] = case["scalars"][name]
            continue
        found[name] = block(draw, case["shapes"][name], kind)
        found[name].reshape(-1).view("u1")[:] = 0xFF
        if role == "input":
            found[name][...] = cases[f"{index}/in/{name}"]
    return found


def wrong(plan, cases, index, values):
    """What is wrong with the outputs; empty when they are right."""
    for name, role, kind in plan["parameters"]:
        if role == "output":
            wanted = cases[f"{index}/out/{name}"]
            if kind.startswith("float"):
                right = np.abs(values[name].astype("f8") - wanted) <= cases[f"{index}/allowed/{name}"]
            else:
                right = values[name] == wanted
            if not right.all():
                return f"{int((~right).sum())} numbers of {name} are off by more than the tolerance"
    return ""


def ours(plan, function, values):
    """The kernel as a call without arguments, which keeps its arrays alive."""
    given = [
        TYPES[kind](values[name]) if role == "scalar" else ctypes.c_void_p(values[name].ctypes.data)
        for name, role, kind in plan["parameters"]
    ]

    def call():
        function(*given)

    call.arrays = values
    return call


def taken(call, count, threads):
    """Nanoseconds of one call, from a window of `count`."""
    clock = time.thread_time_ns
    if threads > 1:
        clock = time.perf_counter_ns
        rest()
    began = clock()
    for _ in range(count):
        call()
    return (clock() - began) // count


def rest():
    """Wait until the other threads sleep: a library's spin after a call, on the cores of the other side."""
    until = time.perf_counter() + REST_S
    mine = str(threading.get_native_id())
    others = [task / "stat" for task in pathlib.Path("/proc/self/task").iterdir() if task.name != mine]
    while any(file.read_text().rpartition(")")[2].split()[0] == "R" for file in others):
        if time.perf_counter() > until:
            return
        time.sleep(0.001)


def calls_of(call, threads):
    """How many calls a window has."""
    once = max(taken(call, 3, threads), 1)
    return min(max(WINDOW_NS // once, 1), MOST_CALLS)


def threads():
    return sum(1 for _ in pathlib.Path("/proc/self/task").iterdir())


def running(library):
    """The version of a library and the names of the kernels that it chose for this machine."""
    if library == "torch":
        import torch

        return torch.__version__, torch.backends.cpu.get_cpu_capability()
    try:
        import threadpoolctl

        found = threadpoolctl.threadpool_info()
    except ImportError:
        return np.__version__, ""
    return np.__version__, ", ".join(
        f"{each['internal_api']} {each.get('architecture') or ''}".strip() for each in found
    )


def widest(kernel):
    """Whether the kernel that was chosen is the widest for this processor; None where neither is known."""
    flags = pathlib.Path("/proc/cpuinfo").read_text().partition("flags")[2].split("\n", 1)[0].split()
    named = [word for word in kernel.replace(",", " ").split() if word in WIDE + MIDDLE]
    if not named or not ("avx512f" in flags or "avx2" in flags):
        return None
    return all(word in WIDE for word in named) or "avx512f" not in flags


def right_ways(plan, cases, bind, draw):
    """The calls that are right for every case of the plan, and why others are not."""
    failed = {}
    for index in range(len(plan["cases"])):
        values = arrays(plan, cases, index, draw)
        for name in bind(**values):
            for output, role, _ in plan["parameters"]:
                if role == "output":
                    values[output].reshape(-1).view("u1")[:] = 0xFF
            try:
                bind(**values)[name]()
                why = wrong(plan, cases, index, values)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"[:300]
            if why:
                failed.setdefault(name, why)
    return [name for name in bind(**values) if name not in failed], failed


def pairs(plan, cases, function, bind, way, draw):
    found = []
    for _ in range(plan["pairs"]):
        index = draw.randrange(len(plan["cases"]))
        sides = [
            ours(plan, function, arrays(plan, cases, index, draw)),
            bind(**arrays(plan, cases, index, draw))[way],
        ]
        for call in sides:
            call()
        counts = [calls_of(call, plan["threads"]) for call in sides]
        least = [None, None]
        for _ in range(WINDOWS):
            order = [0, 1]
            draw.shuffle(order)
            for side in order:
                ns = taken(sides[side], counts[side], plan["threads"])
                least[side] = ns if least[side] is None else min(ns, least[side])
        found.append(least)
    return found


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    with np.load(sys.argv[2]) as file:
        cases = {name: file[name] for name in file.files}
    draw = random.Random(plan["seed"])
    function = getattr(ctypes.CDLL(sys.argv[3]), plan["symbol"])
    function.restype = None
    bind = runpy.run_path(sys.argv[4])[plan["problem"]]
    version, kernel = running(plan["library"])
    for index in range(len(plan["cases"])):
        values = arrays(plan, cases, index, draw)
        ours(plan, function, values)()
        if why := wrong(plan, cases, index, values):
            return {"error": f"the kernel is not right: {why}"}
    before = threads()
    ways, failed = right_ways(plan, cases, bind, draw)
    if threads() != before and plan["threads"] == 1:
        return {"error": "the library started threads"}
    if not ways:
        return {"error": f"no call of the library is right: {failed}"}
    values = arrays(plan, cases, 0, draw)
    bound = bind(**values)
    times = {name: min(taken(bound[name], 3, plan["threads"]) for _ in range(5)) for name in ways}
    way = min(times, key=times.get)
    return {
        "library": plan["library"],
        "version": version,
        "kernel": kernel,
        "wide": widest(kernel),
        "call": way,
        "pairs": pairs(plan, cases, function, bind, way, draw),
        "wrong": failed,
    }


print(json.dumps(main()), flush=True)
