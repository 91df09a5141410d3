"""Runs inside the sandbox: calls of functions, and what they answer now.

Started as `python -I -B -c TEXT`, with a plan in JSON on standard input, in the workspace, which it only
reads; needs the standard library. Each function of the plan is called in a forked child that imports its
module: with the calls that the plan has, or, where it has none, with arguments that other code passes as
literals, then with values of the annotated types, then with plain values. It writes one line of JSON: for
each function the calls with their answers, those that run new lines first. It says nothing about whether an
answer is right.
"""

import ast
import builtins
import importlib
import inspect
import json
import os
import random
import resource
import select
import signal
import sys
import typing
from pathlib import Path

CALLS, KEPT, CALL_S, CHILD_S, TEXT = 120, 6, 1.0, 20, 400
"""Calls that are tried and kept of a function; seconds of one and of all; characters of an answer."""
VALUES = {
    int: [0, 1, 2, -1, 7, 100],
    float: [0.0, 1.5, -2.25, 100.0],
    str: ["", "a", "Hello World", "12", "a,b"],
    bool: [True, False],
    bytes: [b"", b"ab"],
    type(None): [None],
}
ANY = [1, "a", [1, 2, 3], {"a": 1}, 0, -2, 2.5, "Hello World", [], ["b", "a"], (1, 2), True, None]
NOISE = (TypeError, AttributeError, NameError, ImportError, OSError, RecursionError, MemoryError)
"""Errors that say that the arguments were not meant, or depend on the machine."""


class Late(BaseException):
    """A call that takes too long."""


def text(value):
    """The literal of a value, the same in every process, or None where it has none."""
    if type(value) in (set, frozenset) and value:
        parts = [text(one) for one in value]
        made = None if None in parts else "{" + ", ".join(sorted(parts)) + "}"
        return f"frozenset({made})" if made and type(value) is frozenset else made
    made = repr(value)
    try:
        same = repr(ast.literal_eval(made)) == made and len(made) <= TEXT
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return made if same else None


def answered(source, names):
    """What a call gives: `["=", literal]` or `["raises", name]`; None where it cannot be pinned."""
    signal.setitimer(signal.ITIMER_REAL, CALL_S)
    try:
        made = text(eval(source, dict(names)))
        return made and ["=", made]
    except NOISE:
        return None
    except Exception as error:
        name = type(error).__name__
        return ["raises", name] if getattr(builtins, name, None) is type(error) else None
    except Late:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def passed(name):
    """Arguments that the code of the workspace passes to a function of this name, as literals."""
    found = {}
    for folder, below, files in os.walk("."):
        below[:] = sorted(one for one in below if one[0] != "." and one not in ("node_modules", "venv"))
        for file in sorted(files):
            try:
                data = Path(folder, file).read_bytes() if file.endswith(".py") else b""
                tree = ast.parse(data) if name.encode() in data else ast.Module([], [])
            except (OSError, SyntaxError, ValueError, RecursionError):
                continue
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call) or called(node.func) != name:
                    continue
                words = [*node.args, *(one.value for one in node.keywords)]
                try:
                    for one in words:
                        ast.literal_eval(one)
                except (ValueError, TypeError):
                    continue
                parts = [ast.unparse(one) for one in node.args]
                parts += [f"{one.arg}={ast.unparse(one.value)}" for one in node.keywords]
                found[", ".join(parts)] = None
    return list(found)[:20]


def called(node):
    """The last name of what is called."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def values(kind, default, draw):
    """Values for a parameter; `kind` is its annotation."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in VALUES:
        return VALUES[kind]
    if kind in (list, tuple, set, dict) or origin in (list, tuple, set, dict):
        made = origin or kind
        parts = [values(one, inspect.Parameter.empty, draw) for one in inner if one is not Ellipsis]
        if made is dict:
            keys, items = parts or (VALUES[str], VALUES[int])
            return [{}, *(dict(zip(keys[1 : 1 + size], items, strict=False)) for size in (1, 3))]
        if made is tuple and inner and Ellipsis not in inner:
            return [tuple(draw.choice(one) for one in parts) for _ in range(5)]
        pool = parts[0] if parts else VALUES[int]
        return [made(draw.choice(pool) for _ in range(size)) for size in (0, 1, 2, 4)]
    if inner and kind is not inspect.Parameter.empty:  # a union, or an abstract container
        if str(origin).startswith("<class 'collections.abc."):
            return values(dict[inner] if len(inner) == 2 else list[inner[0]], default, draw)
        return [one for part in inner for one in values(part, default, draw)]
    if type(default) in VALUES and default is not None:
        return [default, *VALUES[type(default)]]
    return ANY


def arguments(function, draw, bound=0):
    """Texts of arguments for a function, and whether all are of annotated types."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        hints = {}
    parameters = list(inspect.signature(function).parameters.values())[bound:]
    parameters = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    typed = all(one.name in hints for one in parameters)
    pools = [values(hints.get(one.name, one.empty), one.default, draw) for one in parameters]
    same = [[pool[number % len(pool)] for pool in pools] for number in range(len(ANY))]
    drawn = [[draw.choice(pool) for pool in pools] for _ in range(CALLS)]
    found = {}
    for row in [*same[:3], *drawn, *same[3:]] if parameters else [[]]:
        words = [
            f"{one.name}={value!r}" if one.kind is one.KEYWORD_ONLY else repr(value)
            for one, value in zip(parameters, row, strict=True)
        ]
        found[", ".join(words)] = None
    return list(found), typed


def calls(module, qual):
    """Calls that may be pinned, with whether an exception of each counts."""
    draw = random.Random(qual)
    head, _, name = qual.rpartition(".")
    if not head:
        made, typed = arguments(getattr(module, name), draw)
        return [(f"{name}({one})", True) for one in passed(name)] + [
            (f"{name}({one})", typed) for one in made
        ]
    owner = getattr(module, head)
    found = inspect.getattr_static(owner, name)
    plain = isinstance(found, (staticmethod, classmethod))
    begin = owner.__init__ if inspect.isfunction(owner.__init__) else owner
    made, _ = arguments(begin, draw, bound=begin is not owner)
    makers = [""] if plain else [f"({one})" for one in (passed(head) + made[:8])[:8]]
    if isinstance(found, property):
        return [(f"{head}{maker}.{name}", False) for maker in makers]
    made, typed = arguments(getattr(owner, name), draw, bound=not plain)
    rows = [(one, True) for one in passed(name)] + [(one, typed) for one in made]
    return [(f"{head}{maker}.{name}({one})", counts) for one, counts in rows for maker in makers]


def child(item, say):
    """Call one function and say what came of it."""
    sys.path.insert(0, str(Path(item["base"]).absolute()))
    module = importlib.import_module(item["module"])
    names = vars(module)
    if "calls" in item:
        for source in item["calls"]:
            say([source, answered(source, names), 0])
        return
    seen, answers = set(), []
    for source, counts in calls(module, item["qual"])[:CALLS]:
        fresh = set()

        def trace(frame, event, _, fresh=fresh):
            fresh.add((frame.f_code.co_filename, frame.f_lineno))
            return trace

        sys.settrace(trace)
        try:
            answer = answered(source, names)
        finally:
            sys.settrace(None)
        if (
            answer
            and (counts or answer[0] == "=")
            and (not fresh <= seen or (answer not in answers and len(answers) < 4))
        ):
            seen |= fresh
            answers.append(answer)
            say([source, answer, len(fresh)])
        if len(answers) == KEPT:
            return


def forked(item):
    """The lines that a child said, and why it has no more."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.close(read)
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (CHILD_S, CHILD_S))

            def late(*_):
                raise Late

            signal.signal(signal.SIGALRM, late)

            def say(value):
                os.write(write, json.dumps(value).encode() + b"\n")

            try:
                child(item, say)
            except BaseException as error:
                say(f"{type(error).__name__}: {error}"[:TEXT])
        finally:
            os._exit(0)
    os.close(write)
    data = b""
    while select.select([read], [], [], CHILD_S)[0] and (part := os.read(read, 65536)):
        data += part
    os.close(read)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(pid, 0)
    said = [json.loads(line) for line in data.split(b"\n")[:-1]]
    return [one for one in said if isinstance(one, list)], next(
        (one for one in said if isinstance(one, str)), ""
    )


def main():
    """Print what all functions answer."""
    out = []
    for item in json.load(sys.stdin)["functions"]:
        pins, why = forked(item)
        out.append({**item, "pins": [[source, *answer] for source, answer, _ in pins if answer], "why": why})
    print(json.dumps(out))


if __name__ == "__main__":
    main()
