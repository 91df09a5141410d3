"""Measures a module's `groups` on words that it has not seen, in a process of its own.

Reads one JSON line {"nonce", "seed", "candidate"}; the candidate is a Python file. Prints {"nonce", "metrics": {"correct"}}:
1 where its answer is that of the reference. What decides is `cpu_ms`, the sandbox's own account of all that ran for the
measurement: a process that takes its CPU time from its children does not see those that nobody waited for. The process
gets the words on standard input and gives its answer on standard output: it sees neither nonce nor reference.
"""

import ctypes
import json
import random
import subprocess
import sys

WORDS = 2500
PR_SET_DUMPABLE = 4
"""With 0, no other process of the same user opens the memory or the files of this one."""
RUN = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("candidate", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps(module.groups(json.load(sys.stdin))))
"""


def reference(words: list[str]) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault("".join(sorted(word)), []).append(word)
    return list(found.values())


def main() -> None:
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0) != 0:
        sys.exit("prctl failed: the candidate could open this process")
    given = json.loads(sys.stdin.readline())
    draw = random.Random(given["seed"])
    words = ["".join(draw.choices("abcde", k=draw.randint(3, 7))) for _ in range(WORDS)]
    child = [sys.executable, "-I", "-B", "-c", RUN, given["candidate"]]
    done = subprocess.run(child, input=json.dumps(words).encode(), capture_output=True)
    try:
        correct = done.returncode == 0 and json.loads(done.stdout) == reference(words)
    except ValueError:
        correct = False
    if not correct:
        print(done.stderr.decode("utf-8", "replace")[-400:], file=sys.stderr)
    metrics = {"correct": int(correct)}
    print(json.dumps({"nonce": given["nonce"], "metrics": metrics}))


if __name__ == "__main__":
    main()
