"""Runs inside the sandbox: the tests of a project, once, and again for each candidate of a repair.

Started as `python -I -B -c TEXT PYTEST-ARGUMENTS`, with a plan in JSON on standard input; needs pytest and
the standard library. pytest imports and collects the project once. Then each test, and each candidate, is
tried in a forked child, where a candidate's code takes the place of the code of its function. What came of it
goes to a private copy of standard output, one line `<nonce> <JSON>` each, and a last line that says the guest
finished.

A child has a limit of CPU time (a timer whose signal ends it), of wall time, of memory and of the size of
files, and is the leader of its own group, which is killed after it. It judges nothing: which candidate is
accepted is decided outside.
"""

import gc
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
import types
from pathlib import Path

WALL = 20
"""Wall time that a child has, in its limits of CPU time; a sleeping child ends by it."""
LEAST_WALL_S = 4.0
MEMORY = 512 << 20
FILE = 16 << 20
SHORT_S, LOOPS = 1.0, 2
BATCH = 16
"""Candidates that are tried in one child at first."""
SHOWN = 300
GENERATED = types.ModuleType("repair_compare")
"""The names of repair_compare.py, whose text is in the plan."""


class Fork:
    """A child's side: what it found is written as lines of JSON, each after a token drawn for this child."""

    def __init__(self, write, token):
        self.write, self.token = write, token

    def say(self, value):
        data = b"\n" + self.token + json.dumps(value).encode() + b"\n"
        while data:
            data = data[os.write(self.write, data) :]


def forked(work, cpu_s):
    """The lines that `work(Fork)` said in a child, whether it came to its end, and its CPU seconds."""
    read, write = os.pipe()
    token = os.urandom(16).hex().encode() + b" "
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.setsid()
            confined(cpu_s)
            work(Fork(write, token))
            os._exit(0)
        except BaseException:
            os._exit(9)
    os.close(write)
    data, ends, late = b"", time.monotonic() + max(LEAST_WALL_S, WALL * cpu_s), False
    while True:
        left = ends - time.monotonic()
        ready = select.select([read], [], [], max(left, 0.0))[0]
        if not ready:
            late = True
            break
        piece = os.read(read, 1 << 16)
        if not piece:
            break
        data += piece
    if late:
        killed(pid)
    _, status, used = os.wait4(pid, 0)
    killed(pid)
    os.close(read)
    cpu = used.ru_utime + used.ru_stime
    died = signal.SIGPROF if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF else 0
    end = "late" if late or died else "" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else "died"
    lines = []
    for line in data.split(b"\n"):
        if not line.startswith(token):
            continue
        try:
            lines.append(json.loads(line[len(token) :]))
        except ValueError:
            continue
    return lines, end, cpu


def killed(group):
    """End whatever a child left behind in its group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def confined(cpu_s):
    """Limits of a child."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    bound = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = most if bound == resource.RLIM_INFINITY else min(most, bound)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))


class Server:
    """A plug-in of pytest whose loop of tests is ours."""

    def __init__(self, plan, pytest, out):
        self.plan, self.pytest, self.out = plan, pytest, out
        self.root = str(Path.cwd()) + "/"
        self.seen = {}
        self.errors = []
        self.quick = plan["do"] == "try"
        self.ends = ""

    def say(self, **value):
        data = f"\n{self.plan['nonce']} {json.dumps(value)}\n".encode()
        while data:
            data = data[os.write(self.out, data) :]

    # ---- hooks of pytest -----------------------------------------------------------------------------

    def pytest_collectreport(self, report):
        if report.failed:
            self.errors.append([report.nodeid, str(getattr(report, "longreprtext", ""))[-SHOWN:]])

    def pytest_runtest_makereport(self, item, call):
        """Without the texts of a traceback while candidates are tried: most of their time would go there."""
        if not self.quick or call.excinfo is None:
            return None
        if isinstance(call.excinfo.value, self.pytest.skip.Exception):
            return None
        said = f"{call.excinfo.typename}: {call.excinfo.value}"[:SHOWN]
        return self.pytest.TestReport(
            item.nodeid,
            item.location,
            {},
            "failed",
            said,
            call.when,
            (),
            call.duration,
            call.start,
            call.stop,
        )

    def pytest_runtest_logreport(self, report):
        if report.failed:
            message = getattr(getattr(report.longrepr, "reprcrash", None), "message", None)
            self.seen[report.nodeid] = ["fail", str(message or report.longrepr or "")[:SHOWN]]
        elif report.skipped:
            kind = "skip" if not hasattr(report, "wasxfail") else "xfail"
            self.seen.setdefault(report.nodeid, [kind, ""])
        elif report.when == "call":
            self.seen.setdefault(report.nodeid, ["pass", ""])

    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        if self.plan["do"] == "look":
            self.look()
        else:
            Trial(self).run()
        return True

    # ---- tests ---------------------------------------------------------------------------------------

    def ran(self, names, stop=True):
        """Run tests here, until one fails: `[name, outcome, message]` of the first that did not pass."""
        items = [self.items[name] for name in names if name in self.items]
        if len(items) < len(names):
            return [next(name for name in names if name not in self.items), "gone", ""]
        self.seen = {}
        for item, following in itertools.zip_longest(items, items[1:]):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            outcome, message = self.seen.get(item.nodeid, ["none", ""])
            if outcome != "pass" and stop:
                return [item.nodeid, outcome, message]
        return None

    def look(self):
        """Every test: what came of it, how long it took, which lines it ran. One that a short limit ends gets
        the long one; after LOOPS that did not end then either, the short limit is believed."""
        loops = 0
        for name in self.items:
            limit = min(SHORT_S, self.plan["test_s"])
            runs = [self.once(name, limit)]
            if runs[0]["outcome"] == "late" and loops < LOOPS:
                runs = [self.once(name, self.plan["test_s"])]
                loops += runs[0]["outcome"] == "late"
                limit = self.plan["test_s"]
            if runs[0]["outcome"] in ("fail", "died"):
                runs += [self.once(name, limit) for _ in range(self.plan["runs"] - 1)]
            self.say(
                test=name,
                runs=[run["outcome"] for run in runs],
                said=runs[0]["said"],
                cpu_ms=max(run["cpu_ms"] for run in runs),
                lines=self.lines(name, SHORT_S if runs[0]["outcome"] == "late" else 4 * limit),
            )

    def once(self, name, limit):
        def work(fork):
            began = time.process_time()
            bad = self.ran([name])
            fork.say({"bad": bad, "cpu": time.process_time() - began})

        lines, end, _ = forked(work, limit)
        if end or not lines:
            return {"outcome": end or "died", "said": "", "cpu_ms": limit * 1000}
        bad = lines[0]["bad"]
        outcome = "pass" if bad is None else bad[1]
        return {"outcome": outcome, "said": bad[2] if bad else "", "cpu_ms": lines[0]["cpu"] * 1000}

    def lines(self, name, limit):
        """The lines of the workspace that a test runs, by file; of one that is ended, those until then."""

        def work(fork):
            found = set()
            told = 0
            root = self.root

            def trace(frame, event, _):
                if not frame.f_code.co_filename.startswith(root):
                    return None
                found.add((frame.f_code.co_filename, frame.f_lineno))
                return line

            def line(frame, event, _):
                nonlocal told
                if event == "line":
                    place = (frame.f_code.co_filename, frame.f_lineno)
                    if place not in found:
                        found.add(place)
                        if len(found) > 2 * told:
                            told = len(found)
                            fork.say(by_file(found, root))
                return line

            sys.settrace(trace)
            try:
                self.ran([name])
            finally:
                sys.settrace(None)
            fork.say(by_file(found, root))

        lines, _, _ = forked(work, limit)
        return lines[-1] if lines else {}


def by_file(found, root):
    files = {}
    for path, line in found:
        files.setdefault(path[len(root) :], []).append(line)
    return {path: sorted(numbers) for path, numbers in sorted(files.items())}


class Trial:
    """Candidates, tried on the visible tests; those that pass, on the hidden ones and on generated inputs."""

    def __init__(self, server):
        self.server, self.plan = server, server.plan
        self.live = self.alive()
        self.candidates = [
            {**self.plan["functions"][number], "text": text} for number, text in self.plan["candidates"]
        ]

    def run(self):
        plan, candidates = self.plan, self.candidates
        passing, late, tried = [], [], 0
        while tried < len(candidates) and not self.enough(tried, passing):
            for place, bad in self.batch(tried):
                if self.enough(place, passing):
                    break
                if bad is None:
                    bad = self.tested(candidates[place], "tried", plan["first_s"])
                tried = place + 1
                if bad is None:
                    passing.append(place)
                elif bad[1] == "late":
                    late.append([place, bad[0]])
                self.server.say(tried=place, bad=bad)
        again = 0
        if not passing:
            for place, _ in late[: plan["most_late"]]:
                bad = self.tested(candidates[place], "tried", plan["second_s"])
                again += 1
                self.server.say(tried=place, bad=bad, again=True)
                if bad is None:
                    passing.append(place)
        self.server.say(searched=tried, passing=passing, late=late, again=again)
        good = []
        for place in passing:
            bad = self.tested(candidates[place], "hidden", plan["second_s"])
            self.server.say(hidden=place, bad=bad)
            if bad is None or plan["compare_all"]:
                good.append(place)
        if good and plan.get("compare", True):
            GENERATED.Comparison(self, forked).run(good)

    def enough(self, place, passing):
        """Whether no further candidate is tried after those that pass."""
        most = self.plan["most_passing"]
        return bool(passing) and (place >= passing[0] + self.plan["further"] or len(passing) >= most)

    def batch(self, start):
        """`(place, bad)` of some candidates from one on, tried one after the other in one child on their
        first test. What passes there is tried again by itself. Where the code before no longer passes a test
        at the end, something was left behind: then each is tried in a child of its own."""
        stop = min(start + BATCH, len(self.candidates))

        def work(fork):
            for place in range(start, stop):
                candidate = self.candidates[place]
                signal.setitimer(signal.ITIMER_PROF, self.plan["first_s"])
                before = [one.__code__ for one in self.functions(candidate)]
                try:
                    self.swap(candidate)
                    fork.say([place, self.server.ran(candidate["tried"][:1])])
                except Exception:
                    fork.say([place, ["", "swap", ""]])
                for function, code in zip(self.functions(candidate), before, strict=True):
                    function.__code__ = code
            signal.setitimer(signal.ITIMER_PROF, self.plan["first_s"])
            fork.say(["clean", self.server.ran(self.candidates[start]["passing"][:1])])

        lines, end, _ = forked(work, self.plan["first_s"])
        found = [line for line in lines if line[0] != "clean"]
        if len(found) == stop - start:
            clean = not end and lines[-1] == ["clean", None]
            return found if clean else [[place, None] for place, _ in found]
        return [*found, [start + len(found), ["", end or "died", ""]]]

    # ---- one candidate -------------------------------------------------------------------------------

    def tested(self, candidate, tests, cpu_s):
        """None where all its tests of a kind pass, else the first that did not: `[name, outcome, said]`."""

        def work(fork):
            self.swap(candidate)
            fork.say({"swapped": True})
            fork.say({"bad": self.server.ran(candidate[tests])})

        lines, end, _ = forked(work, cpu_s)
        if not end and len(lines) == 2:
            return lines[1]["bad"]
        return ["", end or "died", ""] if lines or end == "late" else ["", "swap", ""]

    def alive(self):
        """The functions whose code candidates replace, by place: every one alive that runs code of it."""
        root = self.server.root
        found = {(root + one["path"], one["qual"]): [] for one in self.plan["functions"]}
        for one in gc.get_objects():
            if type(one) is types.FunctionType:
                key = one.__code__.co_filename, one.__code__.co_qualname
                if key in found:
                    found[key].append(one)
        gc.collect()
        gc.freeze()
        return found

    def functions(self, candidate):
        """The functions that a candidate replaces."""
        return self.live[self.server.root + candidate["path"], candidate["qual"]]

    def swap(self, candidate):
        """Put the candidate's code in place. One that replaces nothing, or changes nothing, is an error."""
        functions = self.functions(candidate)
        new = self.code(candidate, functions[0].__code__)
        changed = False
        for function in functions:
            changed = changed or function.__code__ != new
            function.__code__ = new
        if not changed:
            raise LookupError(candidate["qual"])

    def code(self, candidate, old):
        text = "\n" * max(candidate["line"] - 1 - len(candidate["heads"]), 0)
        text += "".join(f"{' ' * depth}{head}:\n" for depth, head in enumerate(candidate["heads"]))
        flags = old.co_flags & 0x1FE0000  # what `from __future__` said in the file
        found = compile(text + candidate["text"], old.co_filename, "exec", flags, True)
        for name in candidate["qual"].split("."):
            found = next(
                one for one in found.co_consts if isinstance(one, types.CodeType) and one.co_name == name
            )
        return found


def main(arguments):
    plan = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    exec(plan["generated"], GENERATED.__dict__)
    import pytest

    sys.path.insert(0, str(Path.cwd()))
    server = Server(plan, pytest, out)
    code = int(pytest.main(arguments, plugins=[server]))
    server.say(end=code, errors=server.errors[:20])
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
