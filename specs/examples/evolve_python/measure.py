"""Measures a module's `answers` on lists that it has not seen, in a process of its own.

Reads one JSON line {"nonce", "seed", "candidate"}; the candidate is a Python file. Prints {"nonce", "metrics": {"correct"}}:
1 where its answer is that of the reference. What decides is `cpu_ms`, the sandbox's own account of all that ran for the
measurement: a process that takes its CPU time from its children does not see those that nobody waited for. The process
gets the lists on standard input and gives its answer on standard output: it sees neither nonce nor reference.
"""

import bisect
import ctypes
import json
import random
import subprocess
import sys

LISTS, LENGTH = 3, 1000
PR_SET_DUMPABLE = 4
"""With 0, no other process of the same user opens the memory or the files of this one."""
RUN = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("candidate", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps(module.answers(json.load(sys.stdin))))
"""


def reference(numbers: list[int]) -> int:
    seen: list[int] = []
    count = 0
    for number in numbers:
        place = bisect.bisect_right(seen, number)
        count += len(seen) - place
        seen.insert(place, number)
    return count


def main() -> None:
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0) != 0:
        sys.exit("prctl failed: the candidate could open this process")
    given = json.loads(sys.stdin.readline())
    draw = random.Random(given["seed"])
    lists = [draw.choices(range(LENGTH // 2), k=LENGTH) for _ in range(LISTS)]
    child = [sys.executable, "-I", "-B", "-c", RUN, given["candidate"]]
    done = subprocess.run(child, input=json.dumps(lists).encode(), capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode("utf-8", "replace")[-400:])
    try:
        correct = json.loads(done.stdout) == [reference(numbers) for numbers in lists]
    except ValueError:
        correct = False
    metrics = {"correct": int(correct)}
    print(json.dumps({"nonce": given["nonce"], "metrics": metrics}))


if __name__ == "__main__":
    main()
