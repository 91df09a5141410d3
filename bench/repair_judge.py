"""Runs inside the sandbox: whether a mended function answers as the reference does. JSON in, JSON out.

Inputs are the arguments that all tests of the problem call it with, and changed copies of these (the
generator of repair_compare.py with another seed). Where the reference raises, the input counts for nothing.
Prints the first input on which the two differ, or null, and whether a test of the problem fails.
"""

import copy
import json
import random
import signal
import sys
import types

REFERENCE_S, MENDED_S = 1.0, 4.0
"""CPU time for an answer. What the reference takes long for is asked with more, so that no load decides."""


class Late(Exception):
    """An answer took too long."""


def late(number, frame):
    raise Late


def answer(function, args, render, cpu_s):
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        given = copy.deepcopy(args)
        return "= " + render(function(*given)) + render(given)
    except Exception as error:
        return "raise " + type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def fails(tests, function):
    signal.setitimer(signal.ITIMER_PROF, 5.0)
    try:
        tests["check"](function)
        return False
    except Exception:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main():
    plan = json.load(sys.stdin)
    generated = types.ModuleType("repair_compare")
    exec(plan["generated"], generated.__dict__)
    spaces = []
    for text in (plan["reference"], plan["mended"]):
        space = {"__name__": "solution"}
        exec(compile(text, "solution.py", "exec"), space)
        spaces.append(space)
    reference, mended = (space[plan["entry"]] for space in spaces)
    calls = []

    def recorder(*args):
        calls.append(copy.deepcopy(list(args)))
        return reference(*args)

    tests = {"__name__": "tests"}
    exec(compile(plan["test"], "tests.py", "exec"), tests)
    try:
        tests["check"](recorder)
    except Exception:
        pass
    signal.signal(signal.SIGPROF, late)
    different = None
    for args, _ in generated.inputs(calls, plan["inputs"], random.Random(plan["seed"])):
        wanted = answer(reference, args, generated.render, REFERENCE_S)
        if wanted.startswith("= ") and answer(mended, args, generated.render, MENDED_S) != wanted:
            different = generated.render(args)[:300]
            break
    print("\n" + json.dumps({"calls": len(calls), "different": different, "fails": fails(tests, mended)}))


main()
