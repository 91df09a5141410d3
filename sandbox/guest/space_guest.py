"""The process that checks and times a group of kernels of one author, beside each other, in one sandbox.

    space_guest.py PLAN CASES       two paths: JSON, and an .npz with inputs, references and allowed errors

Prints one line of JSON for each kernel when it was checked, `{"kernel", "code"}` with an empty code when it
is right, and one for each right kernel in the end, `{"kernel", "times"}`: nanoseconds of CPU of the thread,
the least of a burst of calls for each turn. A kernel that starts threads is wrong. Arrays move to places
drawn for each turn. The clock is this process's own: the times prove nothing about kernels of somebody else.
(The clock of the whole process moves by ticks of 4 ms once a limit of CPU time is set.) Needs numpy.
"""

import ctypes
import json
import pathlib
import random
import sys
import time

import numpy as np

GUARD = 4096
TYPES = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
}


class Arena:
    """Memory for the arrays of one call, each at a place drawn anew."""

    def __init__(self, plan, cases, draw):
        self.plan, self.cases, self.draw = plan, cases, draw
        most = max(sum(self._sizes(case)) for case in plan["cases"])
        self.memory = np.zeros(2 * most + (1 << 16), "u1")
        self.base = self.memory.ctypes.data

    def place(self, index):
        """Put the inputs of a case somewhere: the arguments of a call, and views of all arrays by name."""
        case, sizes = self.plan["cases"][index], self._sizes(self.plan["cases"][index])
        gap = self.memory.size - sum(sizes) - 64 * len(sizes) - 64
        cuts = sorted(self.draw.randrange(gap) for _ in sizes)
        arguments, views, moved = [], {}, 0
        sized = iter(zip(sizes, cuts, strict=True))
        for name, role, kind in self.plan["parameters"]:
            if role == "scalar":
                arguments.append(TYPES[kind](case["scalars"][name]))
                continue
            size, cut = next(sized)
            start = moved + cut
            start += -(self.base + start) % 64
            moved += size + 64
            guard = GUARD if role == "output" else 0
            view = self.memory[start + guard : start + size - guard].view(kind).reshape(case["shapes"][name])
            views[name] = (
                view,
                self.memory[start : start + guard],
                self.memory[start + size - guard : start + size],
            )
            if role == "input":
                view[...] = self.cases[f"{index}/in/{name}"]
            arguments.append(ctypes.c_void_p(self.base + start + guard))
        return arguments, views

    def spoil(self, views):
        """Fill outputs and scratch with NaN or a pattern, and their guards."""
        for name, role, _ in self.plan["parameters"]:
            if role in ("output", "scratch"):
                view, before, after = views[name]
                view.reshape(-1).view("u1")[:] = 0xFF
                before[:] = after[:] = 0xFF

    def _sizes(self, case):
        found = []
        for name, role, kind in self.plan["parameters"]:
            if role != "scalar":
                size = int(np.prod(case["shapes"][name])) * np.dtype(kind).itemsize
                found.append(size + (2 * GUARD if role == "output" else 0))
        return found


def judge(plan, cases, index, views):
    """The code of what is wrong after a call; empty when it is right."""
    for name, role, kind in plan["parameters"]:
        if role == "scalar" or role == "scratch":
            continue
        view, before, after = views[name]
        if role == "input":
            if not np.array_equal(
                view.reshape(-1).view("u1"), cases[f"{index}/in/{name}"].reshape(-1).view("u1")
            ):
                return "wrote_inputs"
            continue
        if kind.startswith("float") and not np.isfinite(view).all():
            return "non_finite"
        wanted = cases[f"{index}/out/{name}"]
        if kind.startswith("float"):
            right = np.abs(view.astype("f8") - wanted) <= cases[f"{index}/allowed/{name}"]
        else:
            right = view == wanted
        if not right.all():
            return "incorrect"
        if not ((before == 0xFF).all() and (after == 0xFF).all()):
            return "out_of_bounds"
    return ""


def loaded(plan, name):
    """The function of a shared object, or None and a code."""
    try:
        library = ctypes.CDLL(f"{pathlib.Path(sys.argv[1]).parent}/{name}")
    except OSError:
        return None, "load_failed"
    try:
        function = getattr(library, plan["symbol"])
    except AttributeError:
        return None, "missing_symbol"
    function.restype = None
    return function, ""


def threads():
    return sum(1 for _ in pathlib.Path("/proc/self/task").iterdir())


def checked(plan, cases, arena, function):
    before = threads()
    for index in plan["checks"]:
        arguments, views = arena.place(index)
        arena.spoil(views)
        function(*arguments)
        code = judge(plan, cases, index, views)
        if not code and threads() != before:
            code = "threads"
        if code:
            return code
    return ""


def steady(times, rule):
    fastest = sorted(times)[:3]
    return len(fastest) == 3 and 100 * fastest[2] <= (100 + rule["steady_percent"]) * fastest[0]


def taken(plan, arena, functions, draw):
    """Nanoseconds of each turn for each kernel, by name."""
    rule = plan["rule"]
    times = {name: [] for name in functions}
    for turn in range(rule["most_turns"] + 1):
        going = [name for name in functions if turn <= rule["turns"] or not steady(times[name], rule)]
        if not going:
            break
        arguments, _ = arena.place(draw.choice(plan["timed"]))
        draw.shuffle(going)
        for name in going:
            function, least = functions[name], None
            for _ in range(rule["burst"]):
                began = time.thread_time_ns()
                function(*arguments)
                ns = time.thread_time_ns() - began
                least = ns if least is None else min(least, ns)
            if turn:  # the first turn warms up
                times[name].append(least)
    return times


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    with np.load(sys.argv[2]) as file:
        cases = {name: file[name] for name in file.files}
    draw = random.Random(plan["seed"])
    arena = Arena(plan, cases, draw)
    functions = {}
    for name in plan["kernels"]:
        print(json.dumps({"kernel": name, "begins": True}), flush=True)
        function, code = loaded(plan, name)
        code = code or checked(plan, cases, arena, function)
        print(json.dumps({"kernel": name, "code": code}), flush=True)
        if not code:
            functions[name] = function
    for name, times in taken(plan, arena, functions, draw).items():
        print(json.dumps({"kernel": name, "times": times}), flush=True)


main()
