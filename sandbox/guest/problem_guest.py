"""The process of a problem: it runs a problem's file in a sandbox of its own and answers requests.

    problem_guest.py REQUESTS ANSWERS PROBLEM CPU_S     two descriptors, a path, a limit

A request is a line `{"id", "do", ...}`, an answer a line `{"id", "ok", ...}` and then the bytes of arrays:

    about                           prototype, sizes, kinds, tolerance
    facts   n                       shapes of all pointers, flops
    case    n, kind, seed           arrays of the inputs, then of the reference; values of scalars
    close                           the evaluation is over; the answer's id is 0

The first process loads numpy and nothing of the problem. With the first request of an evaluation it forks a
second one, which reads the problem's file and answers until `close`: so an evaluation finds what a new
sandbox would hold, and only the start of Python and numpy is saved. The first process answers `close` when
the second one is gone; it ends too where that one did not end well, or left a file behind.

Nothing that it says is trusted: `spak.validators.problems.session` checks it again. Needs numpy only.
"""

import json
import os
import pathlib
import resource
import select
import sys
import traceback
import types

import numpy as np

NEEDED = {
    "prototype": str,
    "sizes": dict,
    "kinds": (list, tuple),
    "tolerance": dict,
    "shapes": types.FunctionType,
    "flops": types.FunctionType,
    "inputs": types.FunctionType,
    "reference": types.FunctionType,
}


FINISHED = 90
"""The exit status of a process that was asked to close."""
WRITABLE = ("/tmp", "/dev/shm")


class Fault(Exception):
    """What the problem does wrong: a code and a sentence."""

    def __init__(self, code, detail):
        super().__init__(detail)
        self.code = code


def load(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    module = types.ModuleType("problem")
    sys.modules["problem"] = module
    exec(compile(text, "problem.py", "exec"), module.__dict__)
    for name, kind in NEEDED.items():
        value = getattr(module, name, None)
        if not (callable(value) if kind is types.FunctionType else isinstance(value, kind)):
            wanted = "a function" if kind is types.FunctionType else f"of type {kind}"
            raise Fault("problem.invalid", f"{name} is missing or not {wanted}")
    return module


def about(module, asked):
    told = {name: getattr(module, name) for name in ("prototype", "sizes", "kinds", "tolerance")}
    return {**told, "kinds": list(told["kinds"])}, []


def facts(module, asked):
    n = asked["n"]
    shapes = {str(name): [int(side) for side in shape] for name, shape in module.shapes(n).items()}
    return {"shapes": shapes, "flops": int(module.flops(n))}, []


def case(module, asked):
    n = asked["n"]
    random = np.random.default_rng(np.random.SeedSequence(asked["seed"]))
    given = module.inputs(random, n, asked["kind"])
    if not isinstance(given, dict):
        raise Fault("problem.shape", f"inputs() gave {type(given).__name__}, a dict by name is needed")
    given = {"n": n, **given} if "n" in asked["scalars"] else dict(given)
    lacking = [name for name in asked["scalars"] if name not in given]
    if lacking:
        raise Fault("problem.shape", f"inputs() gave no {', '.join(lacking)}")
    scalars = {name: given[name] for name in asked["scalars"]}
    sent = {}
    for name in asked["inputs"]:
        if name not in given:
            raise Fault("problem.shape", f"inputs() gave no {name}")
        sent[name] = np.ascontiguousarray(given[name])
        sent[name].flags.writeable = False
    made = module.reference(**scalars, **sent)
    if not isinstance(made, dict):
        made = dict(zip(asked["outputs"], [made], strict=False))
    for name in asked["outputs"]:
        if name not in made:
            raise Fault("problem.shape", f"reference() gave no {name}")
        found = np.asarray(made[name])
        wide = np.float64 if found.dtype.kind == "f" else np.int64
        if found.dtype.kind not in "iufb" or found.dtype in (np.float16, np.float32):
            needed = "float64 or whole numbers are needed"
            raise Fault("problem.shape", f"reference() gave {name} of type {found.dtype}: {needed}")
        sent[name] = np.ascontiguousarray(found, dtype=wide)
    told = {
        "scalars": {
            name: value.item() if hasattr(value, "item") else value for name, value in scalars.items()
        },
        "arrays": [[name, str(array.dtype), list(array.shape)] for name, array in sent.items()],
    }
    return told, [array.tobytes() for array in sent.values()]


def where(error):
    """The last line of the problem's own that an exception went through."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "problem.py"
    ]
    return f"line {lines[-1]}: " if lines else ""


def answer(out, head, parts):
    data = b"".join([json.dumps(head).encode() + b"\n", *parts])
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


def serve(requests, out, path, cpu_s):
    """Answer an evaluation's requests; in the process that runs the problem's file."""
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # no further process, no thread
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if most == resource.RLIM_INFINITY or most > cpu_s:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    module = None
    for line in os.fdopen(requests, "rb"):
        asked = json.loads(line)
        head, parts = {"id": asked["id"], "ok": True}, []
        if asked["do"] == "close":
            return
        try:
            module = module or load(path)
            told, parts = {"about": about, "facts": facts, "case": case}[asked["do"]](module, asked)
            head |= told
            json.dumps(head)
        except Fault as fault:
            head, parts = {"id": asked["id"], "ok": False, "code": fault.code, "detail": str(fault)}, []
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the problem's too
            detail = f"{where(error)}{type(error).__name__}: {error}"[:2000]
            head, parts = {"id": asked["id"], "ok": False, "code": "problem.failed", "detail": detail}, []
        answer(out, head, parts)


def files(place):
    """What is where a sandbox can be written."""
    if os.access(place, os.W_OK):
        for entry in os.scandir(place):
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                yield from files(entry.path)


def written():
    return [path for place in WRITABLE for path in files(place)]


def main():
    requests, out, path, cpu_s = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    before, ready = written(), select.poll()
    ready.register(requests, select.POLLIN)
    while ready.poll()[0][1] & select.POLLIN:
        child = os.fork()
        if child == 0:
            try:
                serve(requests, out, path, cpu_s)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(FINISHED)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != FINISHED or written() != before:
            os._exit(code if code >= 0 else 128 - code)
        answer(out, {"id": 0, "ok": True}, [])


if __name__ == "__main__":
    main()
